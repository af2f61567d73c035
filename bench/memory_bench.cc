// Question: how many bytes of state does a stored row take, beside its payload?
// Expected: at most 64, whatever the number of rows and of rows a key: 32 for the T-Node, the rest for its
// share of the index, whose slots are never far from half full. With many rows a key little more than 32.
//
// `bytes_per_row` is BinaryJoin::memory_bytes() over the live rows of both streams at the end;
// `largest_bytes_per_row` is the largest reading: `growing`, `sliding` and `after_expiry` read after every
// batch, the others once.
// Time is not the question here: each case runs once. One axis in each benchmark:
//   rows           2^16, 2^20, 1.3 * 2^20, 2^21 rows, a key each
//   rows_per_key   1, 4, 100 rows of each key, 2^20 rows
//   growing        from 2^20 to 2^21 rows, measured all along: no size in between may fall out of line
//   sliding        windows of 2^16 and 2^20 rows a side that have moved on three times their length;
//                  rows that are dead and not yet freed count as bytes, not as rows
//   after_expiry   what is left when 50, 90, 99 percent of 2^20 rows have expired
//   after_purge    the same after punctuations, of keys at random

#include <benchmark/benchmark.h>

#include "bench_join.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kMillion = size_t{1} << 20;
constexpr size_t kBatch = 1024;
constexpr Duration kAlways = Duration{1} << 40;

class Meter {
 public:
  void read(const BinaryJoin& join) {
    last_ = static_cast<double>(join.memory_bytes()) /
            static_cast<double>(join.state(kLeft).live_rows() + join.state(kRight).live_rows());
    largest_ = std::max(largest_, last_);
  }
  void report(benchmark::State& state) const {
    state.counters["bytes_per_row"] = last_;
    state.counters["largest_bytes_per_row"] = largest_;
  }

 private:
  double last_ = 0;
  double largest_ = 0;
};

/// Stores the stream on the left, reading the meter from `from` rows on.
void store(BinaryJoin& join, const TimedKeys& stream, size_t from, Meter& meter) {
  Results results;
  for (size_t begin = 0; begin < stream.keys.size(); begin += kBatch) {
    const size_t end = std::min(begin + kBatch, stream.keys.size());
    push(join, kLeft, stream, begin, end, results);
    if (end >= from) meter.read(join);
  }
  require(join.state(kLeft).live_rows(), stream.keys.size(), "rows stored");
}

void rows(benchmark::State& state) {
  const size_t count = static_cast<size_t>(state.range(0));
  const TimedKeys stream = one_row_per_unit(count, [](size_t row) { return row; });
  for (auto _ : state) {
    BinaryJoin join(within(kAlways), nullptr);
    Meter meter;
    store(join, stream, count, meter);
    require(join.state(kLeft).lists().size(), count, "keys stored");
    meter.report(state);
  }
}

void rows_per_key(benchmark::State& state) {
  const size_t keys = kMillion / static_cast<size_t>(state.range(0));
  const TimedKeys stream = one_row_per_unit(kMillion, [&](size_t row) { return row % keys; });
  for (auto _ : state) {
    BinaryJoin join(within(kAlways), nullptr);
    Meter meter;
    store(join, stream, kMillion, meter);
    require(join.state(kLeft).lists().size(), keys, "keys stored");
    meter.report(state);
  }
}

void growing(benchmark::State& state) {
  const TimedKeys stream = one_row_per_unit(2 * kMillion, [](size_t row) { return row; });
  for (auto _ : state) {
    BinaryJoin join(within(kAlways), nullptr);
    Meter meter;
    store(join, stream, kMillion, meter);
    meter.report(state);
  }
}

void sliding(benchmark::State& state) {
  const size_t window_rows = static_cast<size_t>(state.range(0));
  const size_t count = 4 * window_rows;
  const auto [left, right] = paired_unique_keys({.rows = count, .window_rows = window_rows});
  for (auto _ : state) {
    BinaryJoin join(within(static_cast<Duration>(window_rows)), nullptr);
    Meter meter;
    size_t pairs = 0;
    for (size_t begin = 0; begin < count; begin += kBatch) {
      Results results;
      push(join, kLeft, left, begin, begin + kBatch, results);
      push(join, kRight, right, begin, begin + kBatch, results);
      pairs += results.rows.size();
      if (begin >= window_rows) meter.read(join);
    }
    require(pairs, count, "pairs of two streams in which each key comes once");
    meter.report(state);
  }
}

size_t percent_of(size_t count, int64_t percent) {
  return count * static_cast<size_t>(percent) / 100;
}

void after_expiry(benchmark::State& state) {
  const size_t gone = percent_of(kMillion, state.range(0));
  const TimedKeys stream = one_row_per_unit(kMillion, [](size_t row) { return row; });
  for (auto _ : state) {
    BinaryJoin join(within(kAlways), nullptr);
    Meter meter;
    store(join, stream, kMillion, meter);
    Results results;
    for (size_t row = 0; row < gone; row += std::min(kBatch, gone - row)) {
      join.advance(kRight, kAlways + static_cast<Time>(row + std::min(kBatch, gone - row)) + 1, results);
      meter.read(join);
    }
    require(join.state(kLeft).live_rows(), kMillion - gone, "rows left");
    meter.report(state);
  }
}

void after_purge(benchmark::State& state) {
  const size_t gone = percent_of(kMillion, state.range(0));
  const TimedKeys stream = one_row_per_unit(kMillion, [](size_t row) { return row; });
  const std::vector<size_t> order = shuffled_numbers(kMillion, kMillion);
  for (auto _ : state) {
    BinaryJoin join(within(kAlways), nullptr);
    Meter stored;
    store(join, stream, kMillion, stored);
    Results results;
    for (size_t i = 0; i < gone; ++i) {
      const Code key = stream.keys[order[i]];
      join.punctuate(kRight, key, 1, results);
      join.punctuate(kLeft, key, 1, results);  // both have: the promise is forgotten and takes no room here
      results.punctuations.clear();
    }
    require(join.state(kLeft).live_rows(), kMillion - gone, "rows left");
    require(join.counters(kLeft).purged, gone, "rows purged");
    Meter left;
    left.read(join);
    left.report(state);
  }
}

#define ONCE Iterations(1)->Unit(benchmark::kMillisecond)
BENCHMARK(rows)->Arg(1 << 16)->Arg(1 << 20)->Arg(kMillion * 13 / 10)->Arg(1 << 21)->ONCE;
BENCHMARK(rows_per_key)->Arg(1)->Arg(4)->Arg(100)->ONCE;
BENCHMARK(growing)->ONCE;
BENCHMARK(sliding)->Arg(1 << 16)->Arg(1 << 20)->ONCE;
BENCHMARK(after_expiry)->Arg(50)->Arg(90)->Arg(99)->ONCE;
BENCHMARK(after_purge)->Arg(50)->Arg(90)->Arg(99)->ONCE;

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
