// How much does the sweep of MW-join save against NLW-join when streams come at different rates?
//
// Figure 9a of the W-join paper: streams of 100 to 1000 rows a second, read in turns, a row each, so the slow
// ones run ahead in time and states hold rows that lie outside every window. The condition is one that no
// index serves: here keys are compared, not looked up. Expected: merge at least 10 times nested_loop in rows
// a second. Figure 9b, all at 1000 rows a second: merge not slower than nested_loop. Counts of results must
// agree.

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

void merge_vs_nested_loop(benchmark::State& state, bool variable) {
  const auto streams = static_cast<size_t>(state.range(0));
  const auto rows =
      in_turns(make_streams({.rates = rates_of(streams, variable), .rows_each = kRowsEach, .seconds = 0}));
  const std::vector<UpperBounds> windows{one_window(streams, kWindow)};
  Samples gca, lca, hash, merge_us;
  size_t results = 0;
  for (auto _ : state) {
    const RunTimes plain = run_rows(OperatorRun(MultiAlgorithm::kNestedLoop, windows), rows);
    const RunTimes by_gca = run_rows(OperatorRun(MultiAlgorithm::kMergeGca, windows), rows);
    const RunTimes by_lca = run_rows(OperatorRun(MultiAlgorithm::kMergeLca, windows), rows);
    const RunTimes by_hash = run_rows(OperatorRun(MultiAlgorithm::kHash, windows), rows);
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

BENCHMARK_CAPTURE(merge_vs_nested_loop, variable_rates, true)
    ->DenseRange(2, 6)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(merge_vs_nested_loop, comparable_rates, false)
    ->DenseRange(2, 5)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
