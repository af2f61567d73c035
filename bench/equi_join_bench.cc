// Equal keys, 2 to 6 streams: what do the indexes of HW-join save against NLW-join, and are the three
// algorithms ahead of the joins that the W-join paper adapts (figures 7 and 8)?
//
// Streams of 1000 rows a second each, read as they happen, windows of half a second, keys from as many values
// as make a row meet one row of each other stream on average. Expected: hash at least 10 times nested_loop;
// service time per row flat over the run (`hash_growth` near 1); nested_loop and merge ahead of the ripple
// join, hash ahead of XJoin, both cleaned every 10,000 rows. Counts of results must agree.

#include <benchmark/benchmark.h>

#include "older_joins.h"

namespace streamjoin::bench {
namespace {

constexpr Duration kWindow = kSecondUs / 2;
constexpr double kRate = 1000;
constexpr uint64_t kKeys = 500;  // as many as rows of a stream in the window

void equi_join(benchmark::State& state) {
  const auto streams = static_cast<size_t>(state.range(0));
  // Several clean-ups of the older joins, whatever the number of streams.
  const auto rows = by_time(make_streams(
      {.rates = std::vector(streams, kRate), .rows_each = 40'000 / streams, .seconds = 0, .keys = kKeys}));
  const std::vector<UpperBounds> windows{one_window(streams, kWindow)};
  const OlderJoinOptions older{.streams = streams, .window = kWindow};
  Samples hash_vs_loop, hash_growth, loop_vs_ripple, merge_vs_ripple, hash_vs_x, hash_us;
  size_t results = 0;
  for (auto _ : state) {
    const RunTimes hash = run_rows(OperatorRun(MultiAlgorithm::kHash, windows), rows);
    const RunTimes x_join = run_rows(XJoin(older), rows);
    const RunTimes loop = run_rows(OperatorRun(MultiAlgorithm::kNestedLoop, windows), rows);
    const RunTimes ripple = run_rows(RippleJoin(older), rows);
    const RunTimes merge = run_rows(OperatorRun(MultiAlgorithm::kMergeGca, windows), rows);
    results = ripple.results;
    for (const RunTimes& run : {hash, x_join, loop, merge})
      require(run.results, ripple.results, "results of the ripple join");
    state.SetIterationTime(hash.seconds());
    hash_vs_loop.add(loop.seconds() / hash.seconds());
    hash_growth.add(hash.growth());
    loop_vs_ripple.add(ripple.seconds() / loop.seconds());
    merge_vs_ripple.add(ripple.seconds() / merge.seconds());
    hash_vs_x.add(x_join.seconds() / hash.seconds());
    hash_us.add(hash.service_us());
  }
  state.counters["hash_vs_nested_loop"] = hash_vs_loop.median();
  state.counters["hash_growth"] = hash_growth.median();
  state.counters["nested_loop_vs_ripple"] = loop_vs_ripple.median();
  state.counters["merge_vs_ripple"] = merge_vs_ripple.median();
  state.counters["hash_vs_xjoin"] = hash_vs_x.median();
  state.counters["hash_us_a_row"] = hash_us.median();
  state.counters["results"] = static_cast<double>(results);
}
BENCHMARK(equi_join)->DenseRange(2, 6)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
