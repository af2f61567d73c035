// Does the service time of MW-join fall when one stream slows down? (Figure 9c of the W-join paper.)
//
// Four streams of 1000 rows a second; the fourth changes between 1000 and 10 rows a second every 100 of its
// rows, or stays at 1000. Rows come in slices of 2 ms, windows are 50 ms. Expected: `merge_falls_to`, the
// service time beside that with all streams fast, well below 1: most rows find no row of the slow stream in
// their period and are passed over. Counts of results must agree with the nested loop.

#include <benchmark/benchmark.h>

#include "w_join_experiments.h"

namespace streamjoin::bench {
namespace {

void slow_stream(benchmark::State& state) {
  const std::vector<UpperBounds> windows{one_window(4, kSlowStreamWindow)};
  const auto fast = slow_stream_rows(1000);
  const auto slow = slow_stream_rows(10);
  Samples merge_falls, loop_falls, hash_falls;
  for (auto _ : state) {
    const auto falls_to = [&](MultiAlgorithm algorithm) {
      const RunTimes with_slow = run_rows(OperatorRun(algorithm, windows), slow);
      const RunTimes all_fast = run_rows(OperatorRun(algorithm, windows), fast);
      return std::pair(with_slow.service_us() / all_fast.service_us(),
                       std::pair(with_slow.results, all_fast.results));
    };
    const auto [merge, merged] = falls_to(MultiAlgorithm::kMergeGca);
    const auto [loop, looped] = falls_to(MultiAlgorithm::kNestedLoop);
    const auto [hash, hashed] = falls_to(MultiAlgorithm::kHash);
    for (const auto& found : {merged, hashed}) {
      require(found.first, looped.first, "results of the nested loop, one stream slow");
      require(found.second, looped.second, "results of the nested loop");
    }
    merge_falls.add(merge);
    loop_falls.add(loop);
    hash_falls.add(hash);
    state.SetIterationTime(1);
  }
  state.counters["merge_falls_to"] = merge_falls.median();
  state.counters["nested_loop_falls_to"] = loop_falls.median();
  state.counters["hash_falls_to"] = hash_falls.median();
}
BENCHMARK(slow_stream)->UseManualTime()->Iterations(3);

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
