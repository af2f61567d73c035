// Question: does a punctuation cost what it purges, whatever else is stored?
// Expected: a fixed time per purged row, tens to a few hundreds of nanoseconds (the rows of a key lie far
// apart in memory); 100 rows take less than a hundredth of what 100,000 take (`percent_of_100k`); a
// punctuation of an unknown key costs one entry among the promises. A range costs its keys, and the same
// whether 2^20 or 2^16 other keys are stored (`vs_few_others` about 1, but for what caches explain).
//
// One axis in each benchmark, 2^20 rows stored on the left, punctuations come from the right:
//   one_key          rows of the one key that a single punctuation names, every tenth of those stored; the
//                    others have a key each
//   one_key_scattered  the same, but spread over all that is stored: the fewer, the farther apart. Each of
//                    few rows then costs a miss of every cache, which neighbours share, so here a row of 100
//                    costs many times a row of 100,000
//   one_key_random   the same, at random places among all that is stored, the 100,000 they are compared with
//                    as well: like with like, though those of 100,000 are still ten times as close
//   until_half_gone  rows of each key; punctuations purge keys at random until half of all rows are gone, so
//                    the time has all sweeps in it that purging causes: the amortised price
//   unknown_keys     punctuations of keys that are not stored
//   range            keys that one range names, among keys that touch; ranges come in random order
//   rows_after_range values that one range spans before the measurement begins; then rows go on as before

#include <benchmark/benchmark.h>

#include "bench_join.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kStored = size_t{1} << 20;
constexpr size_t kReference = 100'000;

void fill(BinaryJoin& join, const TimedKeys& stream) {
  Results results;
  push(join, kLeft, stream, 0, stream.keys.size(), results);
  require(join.state(kLeft).live_rows(), stream.keys.size(), "rows stored");
}

/// Results are taken away all the time, as a caller would: a million of them would be measured as well.
void punctuate_each(BinaryJoin& join, const std::vector<Code>& keys, Results& results) {
  for (const Code key : keys) {
    join.punctuate(kRight, key, 1, results);
    results.punctuations.clear();
  }
}

TimedKeys keys_that_touch(size_t count) {
  TimedKeys stream = one_row_per_unit(count, [](size_t row) { return row; });
  std::iota(stream.keys.begin(), stream.keys.end(), int64_t{0});
  return stream;
}

/// Which rows have the one key: every `step`th, or as many at random.
std::vector<bool> rows_of_key(size_t rows, size_t step) {
  std::vector<bool> of_key(kStored);
  for (size_t i = 0; i < rows; ++i) of_key[i * step] = true;
  return of_key;
}
std::vector<bool> random_rows_of_key(size_t rows) {
  static const std::vector<size_t> order = shuffled_numbers(kStored, kStored);
  std::vector<bool> of_key(kStored);
  for (size_t i = 0; i < rows; ++i) of_key[order[i]] = true;
  return of_key;
}

/// Seconds that one punctuation takes of the key of these rows. Others come before it: code and promises are
/// warm, as in a stream they would be.
double purge_one_key(const std::vector<bool>& of_key) {
  const TimedKeys stream = one_row_per_unit(kStored, [&](size_t row) { return of_key[row] ? kStored : row; });
  const auto rows = static_cast<size_t>(std::count(of_key.begin(), of_key.end(), true));
  const Code key = one_row_per_unit(1, [](size_t) { return kStored; }).keys[0];
  BinaryJoin join(unbounded(), nullptr);
  fill(join, stream);
  Results results;
  for (const Code unknown : one_row_per_unit(100, [](size_t row) { return 2 * kStored + row; }).keys) {
    join.punctuate(kRight, unknown, 1, results);
  }
  const double seconds = seconds_of([&] { join.punctuate(kRight, key, 1, results); });
  require(join.counters(kLeft).purged, rows, "rows purged");
  require(join.state(kLeft).live_rows(), kStored - rows, "rows left");
  return seconds;
}

void report_one_key(benchmark::State& state, const std::vector<bool>& of_key,
                    const std::vector<bool>& reference) {
  Samples seconds, references;
  for (auto _ : state) {
    seconds.add(purge_one_key(of_key));
    references.add(purge_one_key(reference));
    state.SetIterationTime(seconds.last());
  }
  state.counters["ns_per_row"] = 1e9 * seconds.median() / static_cast<double>(state.range(0));
  state.counters["percent_of_100k"] = 100 * seconds.median() / references.median();
}

void one_key(benchmark::State& state) {
  constexpr size_t kStep = kStored / kReference;
  report_one_key(state, rows_of_key(static_cast<size_t>(state.range(0)), kStep),
                 rows_of_key(kReference, kStep));
}
void one_key_scattered(benchmark::State& state) {
  const size_t rows = static_cast<size_t>(state.range(0));
  report_one_key(state, rows_of_key(rows, kStored / rows), rows_of_key(kReference, kStored / kReference));
}
void one_key_random(benchmark::State& state) {
  report_one_key(state, random_rows_of_key(static_cast<size_t>(state.range(0))),
                 random_rows_of_key(kReference));
}

void until_half_gone(benchmark::State& state) {
  const size_t rows = static_cast<size_t>(state.range(0));
  const size_t keys = kStored / rows;
  const TimedKeys stream = one_row_per_unit(kStored, [&](size_t row) { return row % keys; });
  const std::vector<size_t> order = shuffled_numbers(keys, keys);
  std::vector<Code> purged_keys;
  for (size_t i = 0; i < keys / 2; ++i) purged_keys.push_back(stream.keys[order[i]]);
  const size_t stored_of_purged = [&] {  // the first kStored % keys keys have a row more
    size_t count = 0;
    for (size_t i = 0; i < keys / 2; ++i) count += kStored / keys + (order[i] < kStored % keys);
    return count;
  }();
  Samples seconds;
  for (auto _ : state) {
    BinaryJoin join(unbounded(), nullptr);
    fill(join, stream);
    Results results;
    seconds.add(seconds_of([&] {
      punctuate_each(join, purged_keys, results);
      join.state(kLeft).sweep_all();
    }));
    require(join.counters(kLeft).purged, stored_of_purged, "rows purged");
    require(join.state(kLeft).live_rows(), kStored - stored_of_purged, "rows left");
    require(join.punctuations_out(PropagationKind::kImmediate), keys / 2, "punctuations propagated");
    state.SetIterationTime(seconds.last());
  }
  state.counters["ns_per_row"] = 1e9 * seconds.median() / static_cast<double>(stored_of_purged);
  state.counters["ns_per_punctuation"] = 1e9 * seconds.median() / static_cast<double>(keys / 2);
}

void unknown_keys(benchmark::State& state) {
  const size_t count = static_cast<size_t>(state.range(0));
  const TimedKeys stream = one_row_per_unit(kStored, [](size_t row) { return row; });
  const TimedKeys unknown = one_row_per_unit(count, [](size_t row) { return kStored + row; });
  Samples seconds;
  for (auto _ : state) {
    BinaryJoin join(unbounded(), nullptr);
    fill(join, stream);
    Results results;
    seconds.add(seconds_of([&] { punctuate_each(join, unknown.keys, results); }));
    require(join.state(kLeft).live_rows(), kStored, "rows left");
    require(join.punctuations_out(PropagationKind::kImmediate), count, "punctuations propagated");
    state.SetIterationTime(seconds.last());
  }
  state.counters["ns_per_punctuation"] = 1e9 * seconds.median() / static_cast<double>(count);
}

struct RangeCost {
  double first;     // seconds of the first range: whatever is built for ranges is built then
  double each_key;  // seconds per key of the others
};

RangeCost purge_ranges(size_t stored, size_t width) {
  const size_t most_keys = size_t{1} << 15;
  const size_t ranges = std::min(stored / 2, most_keys) / width + 1;
  const TimedKeys stream = keys_that_touch(stored);
  const std::vector<size_t> order = shuffled_numbers(stored / width, stored / width);
  BinaryJoin join(unbounded(), nullptr);
  fill(join, stream);
  Results results;
  const auto purge = [&](size_t i) {
    const Code low = static_cast<Code>(order[i] * width);
    join.punctuate_range(kRight, low, low + static_cast<Code>(width) - 1, 1, results);
  };
  RangeCost cost;
  cost.first = seconds_of([&] { purge(0); });
  cost.each_key = seconds_of([&] {
                    for (size_t i = 1; i < ranges; ++i) purge(i);
                  }) /
                  static_cast<double>((ranges - 1) * width);
  require(join.counters(kLeft).purged, ranges * width, "rows purged");
  require(join.state(kLeft).live_rows(), stored - ranges * width, "rows left");
  return cost;
}

void range(benchmark::State& state) {
  const size_t width = static_cast<size_t>(state.range(0));
  Samples firsts, many, few;
  for (auto _ : state) {
    const RangeCost cost = purge_ranges(kStored, width);
    firsts.add(cost.first);
    many.add(cost.each_key);
    few.add(purge_ranges(size_t{1} << 16, width).each_key);
    state.SetIterationTime(cost.each_key * static_cast<double>(width));
  }
  state.counters["first_us"] = 1e6 * firsts.median();
  state.counters["ns_per_key"] = 1e9 * many.median();
  state.counters["vs_few_others"] = many.median() / few.median();
}

/// Seconds to push a window's worth of rows through both sides, after a range of `width` unused values.
double slide_after_range(size_t width) {
  constexpr size_t kWindowRows = size_t{1} << 18;
  constexpr size_t kBatch = 1024;
  static const auto streams = paired_unique_keys({.rows = 2 * kWindowRows, .window_rows = kWindowRows});
  BinaryJoin join(within(static_cast<Duration>(kWindowRows)), nullptr);
  size_t pairs = 0;
  const auto slide = [&](size_t begin, size_t end) {
    for (; begin < end; begin += kBatch) {
      Results results;
      push(join, kLeft, streams.first, begin, begin + kBatch, results);
      push(join, kRight, streams.second, begin, begin + kBatch, results);
      pairs += results.rows.size();
    }
  };
  slide(0, kWindowRows);
  Results results;
  // Zero is no key of the streams, and the few that lie close to it would be noticed by the count of pairs.
  if (width > 0) join.punctuate_range(kRight, 0, static_cast<Code>(width) - 1, 1, results);
  const double seconds = seconds_of([&] { slide(kWindowRows, 2 * kWindowRows); });
  require(pairs, 2 * kWindowRows, "pairs of two streams in which each key comes once");
  return seconds;
}

void rows_after_range(benchmark::State& state) {
  Samples after, without;
  for (auto _ : state) {
    after.add(slide_after_range(static_cast<size_t>(state.range(0))));
    without.add(slide_after_range(0));
    state.SetIterationTime(after.last());
  }
  state.counters["vs_no_range"] = after.median() / without.median();
}

#define MEASURED(iterations) Iterations(iterations)->UseManualTime()->Unit(benchmark::kMicrosecond)
BENCHMARK(one_key)->Arg(1)->Arg(100)->Arg(10'000)->Arg(100'000)->MEASURED(5);
BENCHMARK(one_key_scattered)->Arg(1)->Arg(100)->Arg(10'000)->MEASURED(5);
BENCHMARK(one_key_random)->Arg(1)->Arg(100)->Arg(10'000)->MEASURED(5);
BENCHMARK(until_half_gone)->Arg(1)->Arg(100)->Arg(10'000)->MEASURED(5);
BENCHMARK(unknown_keys)->Arg(1'000)->Arg(100'000)->MEASURED(5);
BENCHMARK(range)->Arg(1)->Arg(100)->Arg(10'000)->MEASURED(5);
BENCHMARK(rows_after_range)->Arg(1'000)->Arg(100'000)->MEASURED(3);

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
