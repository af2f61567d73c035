// Question: how many rows a second does a plain symmetric hash window join take, by window size?
// Expected: tens of millions while two windows fit into L2, a few millions when every row misses all caches.
//
// One axis: rows a window holds, 2^12 to 2^22 a side. Both streams advance together in batches; the windows
// are full before the clock starts. Items are rows of both streams. The join is first checked against nested
// loops on a small stream.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>

#include "plain_window_join.h"
#include "stream_generator.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kBatch = 1024;

void push_both(PlainWindowJoin& join, const TimedKeys& left, const TimedKeys& right, size_t begin, size_t end,
               PlainWindowJoin::Pairs& out, size_t& pairs) {
  for (; begin < end; begin += kBatch) {
    const size_t size = std::min(kBatch, end - begin);
    for (int side = 0; side < 2; ++side) {
      const TimedKeys& stream = side == 0 ? left : right;
      join.push(side, std::span(stream.times).subspan(begin, size),
                std::span(stream.keys).subspan(begin, size), begin, out);
    }
    pairs += out.size();
    out.clear();
  }
}

/// Of this thread: what else the machine does meanwhile should not count.
double cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void check(bool truth, const char* claim) {
  if (truth) return;
  std::fprintf(stderr, "plain_window_join_bench: wrong answer: %s\n", claim);
  std::exit(1);
}

size_t nested_loop_count(const TimedKeys& left, const TimedKeys& right, Duration window) {
  size_t pairs = 0;
  for (size_t l = 0; l < left.keys.size(); ++l) {
    for (size_t r = 0; r < right.keys.size(); ++r) {
      const Duration apart = right.times[r] - left.times[l];
      pairs += left.keys[l] == right.keys[r] && -window <= apart && apart <= window;
    }
  }
  return pairs;
}

void check_against_nested_loops() {
  for (const size_t window_rows : {1, 50, 700}) {
    for (const double matches : {0.1, 1.0, 20.0}) {
      const UniformKeysOptions options{.rows = 5000, .window_rows = window_rows, .matches_per_row = matches};
      const TimedKeys left = uniform_keys(options);
      TimedKeys right = left;
      std::reverse(right.keys.begin(), right.keys.end());
      const Duration window = static_cast<Duration>(window_rows);
      PlainWindowJoin join(window, window, 0);
      PlainWindowJoin::Pairs out;
      size_t pairs = 0;
      push_both(join, left, right, 0, options.rows, out, pairs);
      check(pairs == nested_loop_count(left, right, window), "the pairs are not those of nested loops");
    }
  }
}

/// Returns the number of pairs of the whole streams.
size_t run(benchmark::State& state, const TimedKeys& left, const TimedKeys& right, size_t window_rows) {
  static const bool checked = (check_against_nested_loops(), true);
  benchmark::DoNotOptimize(checked);
  const Duration window = static_cast<Duration>(window_rows);
  const size_t rows = left.times.size(), measured_from = window_rows;
  size_t early_pairs = 0, pairs = 0;
  for (auto _ : state) {
    PlainWindowJoin join(window, window, window_rows + 2 * kBatch);
    PlainWindowJoin::Pairs out;
    early_pairs = pairs = 0;
    push_both(join, left, right, 0, measured_from, out, early_pairs);
    const double start = cpu_seconds();
    push_both(join, left, right, measured_from, rows, out, pairs);
    state.SetIterationTime(cpu_seconds() - start);
  }
  const size_t measured = 2 * (rows - measured_from);
  state.SetItemsProcessed(static_cast<int64_t>(measured) * state.iterations());
  state.counters["pairs_per_row"] = static_cast<double>(pairs) / static_cast<double>(measured);
  return early_pairs + pairs;
}

size_t rows_for(size_t window_rows) {
  return window_rows + std::max<size_t>(window_rows, size_t{1} << 20);
}

void exactly_one_match(benchmark::State& state) {
  const size_t window_rows = static_cast<size_t>(state.range(0));
  const auto [left, right] = paired_unique_keys({.rows = rows_for(window_rows), .window_rows = window_rows});
  const size_t pairs = run(state, left, right, window_rows);
  check(pairs == left.keys.size(), "every row must have exactly one match");
}

void uniform(benchmark::State& state, double matches_per_row) {
  const size_t window_rows = static_cast<size_t>(state.range(0));
  UniformKeysOptions options{
      .rows = rows_for(window_rows), .window_rows = window_rows, .matches_per_row = matches_per_row};
  const TimedKeys left = uniform_keys(options);
  options.seed = 2;
  run(state, left, uniform_keys(options), window_rows);
}

#define BY_WINDOW_ROWS \
  RangeMultiplier(4)->Range(1 << 12, 1 << 22)->UseManualTime()->Unit(benchmark::kMillisecond)
BENCHMARK(exactly_one_match)->BY_WINDOW_ROWS;
BENCHMARK_CAPTURE(uniform, one_match, 1.0)->BY_WINDOW_ROWS;
BENCHMARK_CAPTURE(uniform, selective, 0.01)->BY_WINDOW_ROWS;

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
