// Question: what do K-slack and synchronizer cost a row beside the join behind them?
// Expected: at 10% disorder at most a fifth of the join's time a row, at one match a row and 2^20 rows a
// side.
//
// One axis: the share of rows that are delayed, evenly by up to 1000 rows; the slack holds the largest delay.
// Stage and join run in turns, round after round, over the same streams in batches of 4096; the ratio is that
// of the medians. The stage must release every row in time order, the join must find one match a row.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "bench_join.h"
#include "stream_generator.h"
#include "streamjoin/disorder/disorder_stage.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kBatch = 4096;
constexpr size_t kRounds = 3;
constexpr Duration kLargestDelay = 1000;

/// Counts what comes, and whether it comes in order.
class InOrderCounter : public JoinSink {
 public:
  void join(std::span<const ReleasedRow> rows, std::span<uint64_t>) override {
    for (const ReleasedRow& row : rows) {
      in_order += row.row.time >= last_;
      last_ = row.row.time;
    }
  }
  size_t in_order = 0;

 private:
  Time last_ = kBeginning;
};

/// The times in order of arrival when the given share of the rows is late.
std::vector<Time> delayed(const std::vector<Time>& times, double share, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::pair<Time, Time>> arrivals;
  for (const Time time : times) {
    const bool late = static_cast<double>(random() >> 11) * 0x1p-53 < share;
    arrivals.push_back({time + (late ? 1 + static_cast<Time>(slot_of(random(), kLargestDelay)) : 0), time});
  }
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Time> arrived;
  for (const auto& [at, time] : arrivals) arrived.push_back(time);
  return arrived;
}

double stage_seconds(const std::vector<Time> (&times)[2]) {
  DisorderStage stage({.streams = 2, .slack = kLargestDelay});
  InOrderCounter sink;
  const size_t rows = times[0].size();
  std::vector<uint32_t> indexes(kBatch);
  const double seconds = seconds_of([&] {
    for (size_t begin = 0; begin < rows; begin += kBatch) {
      const size_t size = std::min(kBatch, rows - begin);
      std::iota(indexes.begin(), indexes.end(), static_cast<uint32_t>(begin));
      for (const uint32_t stream : {0, 1})
        stage.push(stream, std::span(times[stream]).subspan(begin, size), std::span(indexes).first(size),
                   sink);
    }
    stage.finish(sink);
  });
  require(sink.in_order, 2 * rows, "rows in order");
  return seconds;
}

double join_seconds(const TimedKeys (&streams)[2], size_t window_rows) {
  BinaryJoin join(within(static_cast<Duration>(window_rows)), nullptr);
  Results results;
  size_t pairs = 0;
  double start = 0;
  const size_t rows = streams[0].times.size();
  for (size_t begin = 0; begin < rows; begin += kBatch) {
    if (begin <= window_rows) start = cpu_seconds();  // from full windows on
    for (const Side side : {kLeft, kRight}) {
      results.rows.clear();
      push(join, side, streams[side], begin, std::min(rows, begin + kBatch), results,
           static_cast<uint32_t>(begin / kBatch % 1024));
      pairs += results.rows.size();
    }
  }
  const double seconds = cpu_seconds() - start;
  require(pairs, rows, "pairs");
  return seconds * static_cast<double>(rows) / static_cast<double>(rows - window_rows);
}

void stage_beside_join(benchmark::State& state) {
  const size_t window_rows = size_t{1} << 20;
  TimedKeys streams[2];
  std::tie(streams[0], streams[1]) =
      paired_unique_keys({.rows = 2 * window_rows, .window_rows = window_rows});
  const double share = static_cast<double>(state.range(0)) / 100;
  const std::vector<Time> times[2] = {delayed(streams[0].times, share, 1),
                                      delayed(streams[1].times, share, 2)};
  Samples stage, join;
  for (auto _ : state) {
    for (size_t round = 0; round < kRounds; ++round) {
      stage.add(stage_seconds(times));
      join.add(join_seconds(streams, window_rows));
    }
    state.SetIterationTime(stage.median());
  }
  const double rows = 2 * static_cast<double>(streams[0].times.size());
  state.counters["stage_ns"] = stage.median() / rows * 1e9;
  state.counters["join_ns"] = join.median() / rows * 1e9;
  state.counters["share_of_join"] = stage.median() / join.median();
}

BENCHMARK(stage_beside_join)->ArgName("percent_delayed")->Arg(10)->Iterations(1)->UseManualTime();

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
