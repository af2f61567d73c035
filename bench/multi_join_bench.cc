// How much does the sweep of MW-join save against NLW-join when streams come at different rates?
//
// Figure 9a of the W-join paper: streams of 100 to 1000 rows a second, read in turns, a row each, so the slow
// ones run ahead in time and states hold rows that lie outside every window. The condition is one that no
// index serves: values of streams that follow each other differ by at most 5 of 100. Beside it the same with
// equal keys, which nested_loop and merge compare: nested_loop then looks at one array alone. Expected of
// 4 streams and the arbitrary condition: merge at least 10 times nested_loop in rows a second. Figure 9b, all
// at 1000 rows a second: merge not slower than nested_loop. Counts of results must agree.

#include <benchmark/benchmark.h>

#include "m_way_streams.h"

namespace streamjoin::bench {
namespace {

constexpr Duration kWindow = 20'000;  // 20 ms in microseconds
constexpr size_t kRowsEach = 8000;

std::vector<double> rates_of(size_t streams, bool variable) {
  std::vector<double> rates(streams, 1000);
  if (!variable) return rates;
  for (size_t i = 0; i < streams; ++i)
    rates[i] = 1000 - 900 * static_cast<double>(i) / static_cast<double>(streams - 1);
  return rates;
}

enum class Condition { kBand, kEqualKeys };

void merge_vs_nested_loop(benchmark::State& state, bool variable, Condition condition) {
  const auto streams = static_cast<size_t>(state.range(0));
  const bool by_band = condition == Condition::kBand;
  const std::optional<int64_t> band = by_band ? std::optional<int64_t>(5) : std::nullopt;
  const auto rows = in_turns(make_streams({.rates = rates_of(streams, variable),
                                           .rows_each = kRowsEach,
                                           .seconds = 0,
                                           .keys = by_band ? uint64_t{100} : 10}));
  const std::vector<UpperBounds> windows{one_window(streams, kWindow)};
  Samples gca, lca, hash, merge_us;
  size_t results = 0;
  for (auto _ : state) {
    const RunTimes plain = run_rows(OperatorRun(MultiAlgorithm::kNestedLoop, windows, band), rows);
    const RunTimes by_gca = run_rows(OperatorRun(MultiAlgorithm::kMergeGca, windows, band), rows);
    const RunTimes by_lca = run_rows(OperatorRun(MultiAlgorithm::kMergeLca, windows, band), rows);
    const RunTimes by_hash = run_rows(OperatorRun(MultiAlgorithm::kHash, windows, band), rows);
    results = plain.results;
    for (const RunTimes& run : {by_gca, by_lca, by_hash})
      require(run.results, plain.results, "results of the nested loop");
    state.SetIterationTime(by_gca.seconds());
    gca.add(plain.seconds() / by_gca.seconds());
    lca.add(plain.seconds() / by_lca.seconds());
    hash.add(plain.seconds() / by_hash.seconds());
    merge_us.add(by_gca.service_us());
  }
  state.counters["gca_vs_nested_loop"] = gca.median();
  state.counters["lca_vs_nested_loop"] = lca.median();
  state.counters["hash_vs_nested_loop"] = hash.median();
  state.counters["merge_us_a_row"] = merge_us.median();
  state.counters["results"] = static_cast<double>(results);
}

// Up to how many rows of a stream in a row's period does comparing keys beat looking them up? The choice of
// `auto` (FEW_ROWS in algorithms.py) is made from this: `merge_vs_hash` above 1.
void merge_vs_hash(benchmark::State& state) {
  constexpr double kRate = 1000;
  const auto in_period = static_cast<double>(state.range(0));
  const auto streams = static_cast<size_t>(state.range(1));
  const auto rows = in_slices(make_streams({.rates = std::vector(streams, kRate),
                                            .rows_each = 20'000,
                                            .seconds = 0,
                                            .keys = std::max<uint64_t>(2, static_cast<uint64_t>(in_period))}),
                              20'000);
  const std::vector<UpperBounds> windows{
      one_window(streams, static_cast<Duration>(in_period / 2 / kRate * kSecondUs))};
  Samples ratio;
  for (auto _ : state) {
    const RunTimes merge = run_rows(OperatorRun(MultiAlgorithm::kMergeGca, windows), rows);
    const RunTimes hash = run_rows(OperatorRun(MultiAlgorithm::kHash, windows), rows);
    require(merge.results, hash.results, "results of the hash join");
    state.SetIterationTime(merge.seconds());
    ratio.add(hash.seconds() / merge.seconds());
  }
  state.counters["merge_vs_hash"] = ratio.median();
}
BENCHMARK(merge_vs_hash)
    ->ArgNames({"rows", "streams"})
    ->ArgsProduct({{4, 16, 64, 128, 256, 512}, {3, 5}})
    ->UseManualTime()
    ->Iterations(7)
    ->Unit(benchmark::kMillisecond);

void all(benchmark::internal::Benchmark* benchmark, int most) {
  benchmark->DenseRange(2, most)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(merge_vs_nested_loop, variable_rates, true, Condition::kBand)->Apply([](auto* each) {
  all(each, 6);
});
BENCHMARK_CAPTURE(merge_vs_nested_loop, comparable_rates, false, Condition::kBand)->Apply([](auto* each) {
  all(each, 5);
});
BENCHMARK_CAPTURE(merge_vs_nested_loop, variable_rates_equal_keys, true, Condition::kEqualKeys)
    ->Apply([](auto* each) { all(each, 6); });
BENCHMARK_CAPTURE(merge_vs_nested_loop, comparable_rates_equal_keys, false, Condition::kEqualKeys)
    ->Apply([](auto* each) { all(each, 5); });

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
