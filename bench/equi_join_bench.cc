// Equal keys, 2 to 6 streams: what do the indexes of HW-join save against NLW-join, and are the three
// algorithms ahead of the joins that the W-join paper adapts (figures 7 and 8)?
//
// Streams of 1000 rows a second each come in slices of 20 ms. Windows hold 5000 rows a stream, as in the
// paper's real data (5000 sales an hour, an hour), and so many keys that a row meets about one row of each
// other stream. `hash` is what `Operator` runs: of two streams the binary join, of more MultiJoin. Expected:
// hash at least 10 times nested_loop; service time per row flat over a run of 12 windows (`hash_growth`, the
// last quarter beside the second, near 1); nested_loop and merge ahead of the ripple join, hash ahead of
// XJoin, both cleaned every 10,000 rows. Counts of results must agree.

#include <benchmark/benchmark.h>

#include "older_joins.h"

namespace streamjoin::bench {
namespace {

constexpr Duration kWindow = 5 * kSecondUs;
constexpr Duration kSlice = 20'000;
constexpr double kRate = 1000;
constexpr uint64_t kKeys = 5000;
constexpr size_t kRowsEach = 15'000;
constexpr size_t kLongRun = 60'000;

std::vector<TimedRow> rows_of(size_t streams, size_t rows_each) {
  return in_slices(
      make_streams(
          {.rates = std::vector(streams, kRate), .rows_each = rows_each, .seconds = 0, .keys = kKeys}),
      kSlice);
}

void equi_join(benchmark::State& state) {
  const auto streams = static_cast<size_t>(state.range(0));
  const auto rows = rows_of(streams, kRowsEach);
  const auto long_run = rows_of(streams, kLongRun);
  const std::vector<UpperBounds> windows{one_window(streams, kWindow)};
  const OlderJoinOptions older{.window = kWindow};
  Samples hash_vs_loop, hash_growth, loop_vs_ripple, merge_vs_ripple, hash_vs_x, hash_us;
  size_t results = 0;
  for (auto _ : state) {
    const RunTimes hash = run_hash(streams, kWindow, rows);
    const RunTimes x_join = run_x_join(streams, older, rows);
    const RunTimes loop = run_rows(OperatorRun(MultiAlgorithm::kNestedLoop, windows), rows);
    const RunTimes ripple = run_ripple_join(streams, older, rows);
    const RunTimes merge = run_rows(OperatorRun(MultiAlgorithm::kMergeGca, windows), rows);
    results = ripple.results;
    for (const RunTimes& run : {hash, x_join, loop, merge})
      require(run.results, ripple.results, "results of the ripple join");
    state.SetIterationTime(hash.seconds());
    hash_vs_loop.add(loop.seconds() / hash.seconds());
    hash_growth.add(run_hash(streams, kWindow, long_run).growth());
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
BENCHMARK(equi_join)->DenseRange(2, 6)->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
