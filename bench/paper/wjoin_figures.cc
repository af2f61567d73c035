// Question: do the claims of the W-join paper's experiments hold here? Runs figures 7, 8, 9, 13 and 14 and
// writes their series as CSV.
//
//   wjoin_figures FOLDER        writes FOLDER/wjoin.csv: figure, series, x, y
//
// | figure | streams                                              | x                 | y (us a row) | | 7 |
// 2, 3, 4 of 1000 rows a second, 2000 rows in a window | thousands of rows | NLW, MW, ripple join    | | 8 |
// the same                                             | thousands of rows | HW, XJoin               | | 9a
// | 2 to 6 of 100 to 1000 rows a second, in turns        | streams           | NLW, MW, HW             | | 9b
// | 2 to 5 of 1000 rows a second, in turns               | streams           | NLW, MW, HW             | | 9c
// | 4 of 1000, the fourth at times of 10                 | thousands of rows | NLW, MW, HW             | | 13
// | 4, one pair with 1 s, the others with 0.8 or 0.1 s   | thousands of rows | GCA, LCA                | | 14
// | 4 along a path, rates 1000 to 900 or 1000 to 100     | thousands of rows | LCA, NLW as a pipeline  |
//
// All joins of a figure must put out the same number of results. What the paper leaves open and was chosen
// here: synthetic streams stand for its sales data, keys are drawn evenly, windows of 9a and 9b are 20 ms, of
// 14 20 ms a step.

#include <cstdio>
#include <fstream>
#include <string>

#include "streamjoin/join/nested_loop_pipeline.h"
#include "w_join_experiments.h"

namespace streamjoin::bench {
namespace {

class Series {
 public:
  explicit Series(const std::string& path) : out_(path) { out_ << "figure,series,x,y\n"; }

  void point(const char* figure, const std::string& name, double x, double y) {
    out_ << figure << ',' << name << ',' << x << ',' << y << '\n';
  }
  /// Service time of every thousand rows, by thousands of rows.
  void run(const char* figure, const std::string& name, const RunTimes& times) {
    for (size_t i = 0; i < times.stretches.size(); ++i)
      point(figure, name, static_cast<double>(i + 1), 1e3 * times.stretches[i]);
  }
  bool good() const { return out_.good(); }

 private:
  std::ofstream out_;
};

std::string of_streams(const char* join, size_t streams) {
  return std::string(join) + "-" + std::to_string(streams);
}

class PipelineRun {
 public:
  explicit PipelineRun(const UpperBounds& windows)
      : streams_(windows.size()), pipeline_(WindowMatrix({windows}), [](auto tuple, const PipelineRow& row) {
          return tuple.back().key == row.key;
        }) {}
  size_t push(std::span<const TimedRow> rows) {
    results_.clear();
    for (const TimedRow& row : rows) pipeline_.push(row.stream, {row.time, row.key, {row.row, 0}}, results_);
    return results_.size() / streams_;
  }

 private:
  size_t streams_;
  NestedLoopPipeline pipeline_;
  std::vector<PipelineRow> results_;
};

RunTimes of(MultiAlgorithm algorithm, const UpperBounds& windows, const std::vector<TimedRow>& rows) {
  return run_rows(OperatorRun(algorithm, {windows}), rows);
}

void same(const RunTimes& one, const RunTimes& other) {
  require(one.results, other.results, "results of another join");
}

void figures_7_and_8(Series& series) {
  constexpr Duration kWindow = 2 * kSecondUs;
  for (const size_t streams : {2, 3, 4}) {
    const auto rows = in_slices(make_streams({.rates = std::vector<double>(streams, 1000),
                                              .rows_each = 32'000 / streams,
                                              .seconds = 0,
                                              .keys = 2000}),
                                20'000);
    const UpperBounds windows = one_window(streams, kWindow);
    const OlderJoinOptions older{.window = kWindow};
    const RunTimes loop = of(MultiAlgorithm::kNestedLoop, windows, rows);
    const RunTimes merge = of(MultiAlgorithm::kMergeGca, windows, rows);
    const RunTimes ripple = run_ripple_join(streams, older, rows);
    const RunTimes hash = of(MultiAlgorithm::kHash, windows, rows);
    const RunTimes x_join = run_x_join(streams, older, rows);
    for (const RunTimes& run : {merge, ripple, hash, x_join}) same(run, loop);
    series.run("7", of_streams("NLW-join", streams), loop);
    series.run("7", of_streams("MW-join", streams), merge);
    series.run("7", of_streams("ripple join", streams), ripple);
    series.run("8", of_streams("HW-join", streams), hash);
    series.run("8", of_streams("XJoin", streams), x_join);
    std::printf("figure 7, %zu streams: ripple join / NLW-join %.2f, / MW-join %.2f\n", streams,
                ripple.seconds() / loop.seconds(), ripple.seconds() / merge.seconds());
    std::printf("figure 8, %zu streams: XJoin / HW-join %.2f\n", streams, x_join.seconds() / hash.seconds());
  }
}

void figure_9_by_streams(Series& series, const char* figure, size_t most, double slowest) {
  for (size_t streams = 2; streams <= most; ++streams) {
    std::vector<double> rates;
    for (size_t i = 0; i < streams; ++i)
      rates.push_back(1000 - (1000 - slowest) * static_cast<double>(i) / static_cast<double>(streams - 1));
    const auto rows = in_turns(make_streams({.rates = rates, .rows_each = 8000, .seconds = 0}));
    const UpperBounds windows = one_window(streams, 20'000);
    const RunTimes loop = of(MultiAlgorithm::kNestedLoop, windows, rows);
    const RunTimes merge = of(MultiAlgorithm::kMergeGca, windows, rows);
    const RunTimes hash = of(MultiAlgorithm::kHash, windows, rows);
    same(merge, loop);
    same(hash, loop);
    const auto x = static_cast<double>(streams);
    series.point(figure, "NLW-join", x, loop.service_us());
    series.point(figure, "MW-join", x, merge.service_us());
    series.point(figure, "HW-join", x, hash.service_us());
    std::printf("figure %s, %zu streams: NLW-join / MW-join %.2f\n", figure, streams,
                loop.seconds() / merge.seconds());
  }
}

void figure_9c(Series& series) {
  const UpperBounds windows = one_window(4, kSlowStreamWindow);
  const auto fast = slow_stream_rows(1000);
  const auto slow = slow_stream_rows(10);
  const std::pair<const char*, MultiAlgorithm> joins[] = {{"NLW-join", MultiAlgorithm::kNestedLoop},
                                                          {"MW-join", MultiAlgorithm::kMergeGca},
                                                          {"HW-join", MultiAlgorithm::kHash}};
  for (const auto& [name, algorithm] : joins) {
    const RunTimes all_fast = of(algorithm, windows, fast);
    const RunTimes with_slow = of(algorithm, windows, slow);
    series.run("9c", std::string(name) + ", comparable rates", all_fast);
    series.run("9c", std::string(name) + ", one slow stream", with_slow);
    std::printf("figure 9c, %s: service time with a slow stream / without %.2f\n", name,
                with_slow.service_us() / all_fast.service_us());
  }
}

void figure_13(Series& series) {
  for (const Duration narrow_ms : {800, 100}) {
    const auto rows = in_slices(make_streams({.rates = {1000, 1000, 1000, 1000},
                                              .rows_each = 4000,
                                              .seconds = 0,
                                              .keys = static_cast<uint64_t>(narrow_ms)}),
                                2000);
    const UpperBounds windows = one_wide_pair(narrow_ms * 1000, kSecondUs);
    const RunTimes gca = of(MultiAlgorithm::kMergeGca, windows, rows);
    const RunTimes lca = of(MultiAlgorithm::kMergeLca, windows, rows);
    same(lca, gca);
    const std::string suffix = narrow_ms == 800 ? ", 0.8 and 1 s" : ", 0.1 and 1 s";
    series.run("13", "GCA" + suffix, gca);
    series.run("13", "LCA" + suffix, lca);
    std::printf("figure 13%s: GCA / LCA %.2f\n", suffix.c_str(), gca.seconds() / lca.seconds());
  }
}

void figure_14(Series& series) {
  for (const double slowest : {900.0, 100.0}) {
    std::vector<double> rates;
    for (size_t i = 0; i < 4; ++i) rates.push_back(1000 - (1000 - slowest) * static_cast<double>(i) / 3);
    const auto rows = in_turns(make_streams({.rates = rates, .rows_each = 4000, .seconds = 0}));
    const UpperBounds windows = along_a_path(20'000);
    const RunTimes lca = of(MultiAlgorithm::kMergeLca, windows, rows);
    const RunTimes pipeline = run_rows(PipelineRun(windows), rows);
    same(pipeline, lca);
    const std::string suffix = slowest > 500 ? ", small variation" : ", large variation";
    series.run("14", "LCA" + suffix, lca);
    series.run("14", "NLW-join" + suffix, pipeline);
    std::printf("figure 14%s: NLW-join / LCA %.2f\n", suffix.c_str(), pipeline.seconds() / lca.seconds());
  }
}

}  // namespace
}  // namespace streamjoin::bench

int main(int arguments, char** argument) {
  using namespace streamjoin::bench;
  if (arguments != 2) {
    std::fprintf(stderr, "usage: wjoin_figures FOLDER\n");
    return 2;
  }
  Series series(std::string(argument[1]) + "/wjoin.csv");
  figures_7_and_8(series);
  figure_9_by_streams(series, "9a", 6, 100);
  figure_9_by_streams(series, "9b", 5, 1000);
  figure_9c(series);
  figure_13(series);
  figure_14(series);
  if (series.good()) return 0;
  std::fprintf(stderr, "cannot write %s/wjoin.csv\n", argument[1]);
  return 1;
}
