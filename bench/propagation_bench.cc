// Question: how many punctuations a second does the join send on, and what do they cost it?
// Expected: some millions a second of each kind: a propagation is a few steps on an index slot that was just
// read. The promises a join remembers take no lasting memory: neighbours become ranges, what both streams
// have promised is forgotten.
//
// One axis: whether keys touch (0: they count up, so old promises join into ranges) or not (1: they are
// spread over 64 bits and every promise is kept by itself), for each kind of propagation. Times are of the
// whole stream, rows included; every key has a row on either side, in batches of 1,024, and is punctuated
// behind its batch.
//   regular     no window; left punctuates, then right: the second promise releases the key
//   early       a window; only left punctuates, and a key is released when its last left row expires
//   immediate   left punctuates keys of which it has no row
// `share_of_time` is the part spent in calls of punctuate; with `early`, where the work is done by expiry,
// `vs_windows_only` compares with the same rows without punctuations.
//
// remembered: bytes that a million promises of one stream take at their most and in the end, by the order in
// which they come: 0 ascending, 1 shuffled within stretches of 4,096, 2 shuffled as a whole, 3 the same, with
// the other stream promising each key a thousand punctuations later. Expected in the end: next to nothing in
// every order. At most: flat but for order 2, where promises far apart can share no range until the gaps
// between them fill.

#include <benchmark/benchmark.h>

#include "bench_join.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kKeys = size_t{1} << 20;
constexpr size_t kBatch = 1024;
constexpr Duration kWindow = 1 << 16;

TimedKeys make_stream(bool keys_touch) {
  TimedKeys rows = one_row_per_unit(kKeys, [](size_t row) { return row; });
  if (keys_touch) std::iota(rows.keys.begin(), rows.keys.end(), int64_t{0});
  return rows;
}

struct Run {
  double seconds = 0;
  double punctuating = 0;
};

void punctuate(BinaryJoin& join, Side side, const TimedKeys& stream, size_t begin, size_t end,
               Results& results) {
  for (size_t i = begin; i < end; ++i) join.punctuate(side, stream.keys[i], stream.times[end - 1], results);
}

void require_output(const BinaryJoin& join, size_t pairs, PropagationKind kind, size_t punctuations) {
  require(join.rows_out(), pairs, "pairs");
  require(join.punctuations_out(kind), punctuations, "punctuations of the kind in question");
  size_t all = 0;
  for (const auto each : {PropagationKind::kRegular, PropagationKind::kEarly, PropagationKind::kImmediate}) {
    all += join.punctuations_out(each);
  }
  require(all, punctuations, "punctuations of all kinds");
}

template <typename Batch>
Run run(BinaryJoin& join, Batch&& batch) {
  Run cost;
  const double start = cpu_seconds();
  for (size_t begin = 0; begin < kKeys; begin += kBatch) {
    Results results;
    batch(begin, begin + kBatch, results, cost.punctuating);
  }
  cost.seconds = cpu_seconds() - start;
  require_valid(join);
  return cost;
}

Run run_regular(const TimedKeys& stream) {
  BinaryJoin join(unbounded(), nullptr);
  const Run cost = run(join, [&](size_t begin, size_t end, Results& results, double& punctuating) {
    push(join, kLeft, stream, begin, end, results);
    push(join, kRight, stream, begin, end, results);
    punctuating += seconds_of([&] {
      punctuate(join, kLeft, stream, begin, end, results);
      punctuate(join, kRight, stream, begin, end, results);
    });
  });
  require_output(join, kKeys, PropagationKind::kRegular, kKeys);
  require(join.state(kLeft).live_rows() + join.state(kRight).live_rows(), 0, "rows left");
  return cost;
}

Run run_early(const TimedKeys& stream, bool with_punctuations) {
  BinaryJoin join(within(kWindow), nullptr);
  Run cost = run(join, [&](size_t begin, size_t end, Results& results, double& punctuating) {
    push(join, kLeft, stream, begin, end, results);
    push(join, kRight, stream, begin, end, results);
    if (!with_punctuations) return;
    punctuating += seconds_of([&] { punctuate(join, kLeft, stream, begin, end, results); });
  });
  Results results;
  cost.seconds += seconds_of([&] { join.advance(kRight, static_cast<Time>(kKeys) + kWindow + 1, results); });
  require_output(join, kKeys, PropagationKind::kEarly, with_punctuations ? kKeys : 0);
  return cost;
}

Run run_immediate(const TimedKeys& stream) {
  BinaryJoin join(within(kWindow), nullptr);
  const Run cost = run(join, [&](size_t begin, size_t end, Results& results, double& punctuating) {
    push(join, kRight, stream, begin, end, results);
    punctuating += seconds_of([&] { punctuate(join, kLeft, stream, begin, end, results); });
  });
  require_output(join, 0, PropagationKind::kImmediate, kKeys);
  require(join.state(kRight).live_rows(), 0, "rows left");
  return cost;
}

template <typename OneRun>
void report(benchmark::State& state, OneRun one_run, bool against_windows_only = false) {
  const TimedKeys stream = make_stream(state.range(0) == 0);
  Samples seconds, punctuating, windows_only;
  for (auto _ : state) {
    const Run cost = one_run(stream);
    seconds.add(cost.seconds);
    punctuating.add(cost.punctuating);
    if (against_windows_only) windows_only.add(run_early(stream, false).seconds);
    state.SetIterationTime(cost.seconds);
  }
  state.counters["punctuations_per_s"] = static_cast<double>(kKeys) / seconds.median();
  state.counters["ns_per_key_punctuating"] = 1e9 * punctuating.median() / static_cast<double>(kKeys);
  state.counters["share_of_time"] = punctuating.median() / seconds.median();
  if (against_windows_only) state.counters["vs_windows_only"] = seconds.median() / windows_only.median();
}

void regular(benchmark::State& state) {
  report(state, run_regular);
}
void early(benchmark::State& state) {
  report(state, [](const TimedKeys& stream) { return run_early(stream, true); }, true);
}
void immediate(benchmark::State& state) {
  report(state, run_immediate);
}

void remembered(benchmark::State& state) {
  const int64_t arrival = state.range(0);
  const size_t stretch = arrival == 0 ? 1 : arrival == 1 ? 4096 : kKeys;
  const size_t lag = 1000;
  const std::vector<size_t> order = shuffled_numbers(kKeys, stretch);
  size_t largest = 0, in_the_end = 0;
  for (auto _ : state) {
    BinaryJoin join(unbounded(), nullptr);
    const double start = cpu_seconds();
    for (size_t i = 0; i < kKeys; ++i) {
      Results results;
      join.punctuate(kLeft, static_cast<Code>(order[i]), 1, results);
      require(results.punctuations.size(), 1, "punctuations propagated by one");
      if (arrival == 3 && i >= lag) join.punctuate(kRight, static_cast<Code>(order[i - lag]), 1, results);
      if (i % kBatch == 0) largest = std::max(largest, join.memory_bytes());
    }
    state.SetIterationTime(cpu_seconds() - start);
    in_the_end = join.memory_bytes();
    // With both promised, each key is forgotten; else it must still be known, be it in a range.
    for (size_t i = 0; i < kKeys; ++i) {
      const bool known = join.promises(kLeft).flag(static_cast<Code>(order[i])) != PunctuationFlag::kNone;
      if (known != (arrival != 3 || i + lag >= kKeys))
        require(i, kKeys, "a promise is not remembered as it should be");
    }
  }
  state.counters["largest_bytes"] = static_cast<double>(largest);
  state.counters["bytes_in_the_end"] = static_cast<double>(in_the_end);
}

#define MEASURED(iterations) Iterations(iterations)->UseManualTime()->Unit(benchmark::kMillisecond)
BENCHMARK(regular)->Arg(0)->Arg(1)->MEASURED(5);
BENCHMARK(early)->Arg(0)->Arg(1)->MEASURED(5);
BENCHMARK(immediate)->Arg(0)->Arg(1)->MEASURED(5);
BENCHMARK(remembered)->DenseRange(0, 3)->MEASURED(1);

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
