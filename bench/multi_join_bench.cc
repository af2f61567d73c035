// How much do the periods of MW-join and the indexes of HW-join save against NLW-join?
//
// Four streams of 1000, 700, 400 and 100 rows a second are read in turns, a row each, as in figure 9a of the
// W-join paper: the slow ones run ahead in time, and states hold rows that lie outside every window.
// Expected: merge at least 10 times nested_loop in rows a second; hash, on equal keys, more. Counts of
// results must agree.

#include <benchmark/benchmark.h>

#include <random>

#include "streamjoin/join/multi_join.h"

namespace streamjoin {
namespace {

constexpr Duration kWindow = 20000;  // 20 ms in microseconds
constexpr size_t kStreams = 4;
constexpr size_t kRowsEach = 2000;

/// Rows of every stream at its own rate, with exponential gaps; keys from a small set.
struct Input {
  std::vector<std::vector<Time>> times{kStreams};
  std::vector<std::vector<Code>> keys{kStreams};
};

Input make_input(const std::vector<double>& rates) {
  Input input;
  std::mt19937 random(7);
  for (size_t s = 0; s < kStreams; ++s) {
    std::exponential_distribution<double> gap(rates[s] / 1e6);
    double now = 0;
    for (size_t i = 0; i < kRowsEach; ++i) {
      now += gap(random);
      input.times[s].push_back(static_cast<Time>(now));
      input.keys[s].push_back(static_cast<Code>(random() % 10));
    }
  }
  return input;
}

uint64_t run(MultiAlgorithm algorithm, const Input& input) {
  MultiJoinOptions options;
  options.algorithm = algorithm;
  options.alternatives = {{std::vector(kStreams, std::vector<std::optional<Duration>>(kStreams, kWindow))}};
  options.classes.assign(kStreams, {0});
  options.value_slots.assign(kStreams, 0);
  MultiJoin join(options, {nullptr});
  for (uint32_t i = 0; i < kRowsEach; ++i) {
    for (size_t s = 0; s < kStreams; ++s) {
      MultiResults results;
      join.push(s, {i, {&input.times[s][i], 1}, {{&input.keys[s][i], 1}}, nullptr, {}}, results);
    }
  }
  return join.rows_out();
}

void compare(benchmark::State& state, MultiAlgorithm algorithm, const std::vector<double>& rates) {
  const Input input = make_input(rates);
  const uint64_t expected = run(MultiAlgorithm::kNestedLoop, input);
  for (auto _ : state) {
    if (run(algorithm, input) != expected)
      state.SkipWithError("results differ from those of the nested loop");
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kStreams * kRowsEach));
  state.counters["results"] = static_cast<double>(expected);
}

const std::vector<double> kVariable{1000, 700, 400, 100};
const std::vector<double> kComparable{1000, 1000, 1000, 1000};

#define SJ_COMPARE(rates)                                                              \
  BENCHMARK_CAPTURE(compare, nested_loop_##rates, MultiAlgorithm::kNestedLoop, rates); \
  BENCHMARK_CAPTURE(compare, merge_gca_##rates, MultiAlgorithm::kMergeGca, rates);     \
  BENCHMARK_CAPTURE(compare, merge_lca_##rates, MultiAlgorithm::kMergeLca, rates);     \
  BENCHMARK_CAPTURE(compare, hash_##rates, MultiAlgorithm::kHash, rates)
SJ_COMPARE(kVariable);
SJ_COMPARE(kComparable);

}  // namespace
}  // namespace streamjoin

BENCHMARK_MAIN();
