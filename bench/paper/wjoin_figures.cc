// Question: do the claims of the W-join paper's experiments hold here? Runs figures 7, 8, 9, 13 and 14.
//
//   wjoin_figures FOLDER        writes FOLDER/wjoin.csv and FOLDER/wjoin_findings.csv
//
//   figure  streams                                                 x                  y: us a row of
//   7       2, 3, 4 of 1000 rows a second, 2000 rows in a window    thousands of rows  NLW, MW, ripple join
//   8       the same                                                thousands of rows  HW, XJoin
//   9a      2 to 6 of 100 to 1000 rows a second, in turns           streams            NLW, MW, HW
//   9b      2 to 5 of 1000 rows a second, in turns                  streams            NLW, MW, HW
//   9c      4 of 1000, the fourth at times of 10                    thousands of rows  NLW, MW, HW
//   13      4, one pair with 1 s, the others with 0.8 or 0.1 s      thousands of rows  GCA, LCA
//   14      4 along a path, rates 1000 to 900 or 1000 to 100        thousands of rows  LCA, NLW as a pipeline
//
// All joins of a figure must put out the same number of results; every run is repeated, and each point is the
// median. What the paper leaves open and was chosen here: synthetic streams stand for its sales data, keys
// are drawn evenly, windows of 9a and 9b are 20 ms, of 14 20 ms a step.

#include <string>

#include "paper/figure_files.h"
#include "w_join_experiments.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kRepetitions = 5;

/// What a run takes: of every stretch the median over the repetitions.
template <typename Run>
RunTimes repeated(Run&& run) {
  std::vector<RunTimes> runs;
  for (size_t i = 0; i < kRepetitions; ++i) {
    runs.push_back(run());
    require(runs.back().results, runs.front().results, "results of the repetition before");
  }
  RunTimes median = runs.front();
  for (size_t stretch = 0; stretch < median.stretches.size(); ++stretch) {
    Samples samples;
    for (const RunTimes& each : runs) samples.add(each.stretches[stretch]);
    median.stretches[stretch] = samples.median();
  }
  return median;
}

RunTimes of(MultiAlgorithm algorithm, const UpperBounds& windows, const std::vector<TimedRow>& rows) {
  return repeated([&] { return run_rows(OperatorRun(algorithm, {windows}), rows); });
}

/// Service time of every thousand rows, by thousands of rows.
void draw(FigureFiles& files, const char* figure, const std::string& name, const RunTimes& times) {
  for (size_t i = 0; i < times.stretches.size(); ++i)
    files.point(figure, name, i + 1, 1e3 * times.stretches[i]);
}

void same(const RunTimes& one, const RunTimes& other) {
  require(one.results, other.results, "results of another join");
}

std::string streams_of(const char* what, size_t streams) {
  return std::string(what) + "; " + std::to_string(streams) + " streams";
}

void figures_7_and_8(FigureFiles& files) {
  constexpr Duration kWindow = 2 * kSecondUs;
  for (const size_t streams : {2, 3, 4}) {
    const auto rows = in_slices(make_streams({.rates = std::vector<double>(streams, 1000),
                                              .rows_each = 40'000 / streams,
                                              .seconds = 0,
                                              .keys = 2000}),
                                20'000);
    const UpperBounds windows = one_window(streams, kWindow);
    const OlderJoinOptions older{.window = kWindow};
    const RunTimes loop = of(MultiAlgorithm::kNestedLoop, windows, rows);
    const RunTimes merge = of(MultiAlgorithm::kMergeGca, windows, rows);
    const RunTimes ripple = repeated([&] { return run_ripple_join(streams, older, rows); });
    const RunTimes hash = repeated([&] { return run_hash(streams, kWindow, rows); });
    const RunTimes x_join = repeated([&] { return run_x_join(streams, older, rows); });
    for (const RunTimes& run : {merge, ripple, hash, x_join}) same(run, loop);
    draw(files, "7", streams_of("NLW-join", streams), loop);
    draw(files, "7", streams_of("MW-join", streams), merge);
    draw(files, "7", streams_of("ripple join", streams), ripple);
    draw(files, "8", streams_of("HW-join", streams), hash);
    draw(files, "8", streams_of("XJoin", streams), x_join);
    files.finding("7", streams_of("time of the ripple join / NLW-join", streams),
                  ripple.seconds() / loop.seconds());
    files.finding("7", streams_of("time of the ripple join / MW-join", streams),
                  ripple.seconds() / merge.seconds());
    files.finding("8", streams_of("time of XJoin / HW-join", streams), x_join.seconds() / hash.seconds());
  }
}

void figure_9_by_streams(FigureFiles& files, const char* figure, size_t most, double slowest) {
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
    files.point(figure, "NLW-join", streams, loop.service_us());
    files.point(figure, "MW-join", streams, merge.service_us());
    files.point(figure, "HW-join", streams, hash.service_us());
    files.finding(figure, streams_of("time of NLW-join / MW-join", streams),
                  loop.seconds() / merge.seconds());
  }
}

void figure_9c(FigureFiles& files) {
  const UpperBounds windows = one_window(4, kSlowStreamWindow);
  const auto fast = slow_stream_rows(1000);
  const auto slow = slow_stream_rows(10);
  const std::pair<const char*, MultiAlgorithm> joins[] = {{"NLW-join", MultiAlgorithm::kNestedLoop},
                                                          {"MW-join", MultiAlgorithm::kMergeGca},
                                                          {"HW-join", MultiAlgorithm::kHash}};
  for (const auto& [name, algorithm] : joins) {
    const RunTimes all_fast = of(algorithm, windows, fast);
    const RunTimes with_slow = of(algorithm, windows, slow);
    draw(files, "9c", std::string(name) + "; comparable rates", all_fast);
    draw(files, "9c", std::string(name) + "; one slow stream", with_slow);
    files.finding("9c", std::string("time of ") + name + " with a slow stream / without",
                  with_slow.service_us() / all_fast.service_us());
  }
}

void figure_13(FigureFiles& files) {
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
    const std::string suffix = narrow_ms == 800 ? "; windows of 0.8 and 1 s" : "; windows of 0.1 and 1 s";
    draw(files, "13", "GCA" + suffix, gca);
    draw(files, "13", "LCA" + suffix, lca);
    files.finding("13", "time of GCA / LCA" + suffix, gca.seconds() / lca.seconds());
  }
}

void figure_14(FigureFiles& files) {
  for (const double slowest : {900.0, 100.0}) {
    std::vector<double> rates;
    for (size_t i = 0; i < 4; ++i) rates.push_back(1000 - (1000 - slowest) * static_cast<double>(i) / 3);
    const auto rows = in_turns(make_streams({.rates = rates, .rows_each = 4000, .seconds = 0}));
    const UpperBounds windows = along_a_path(20'000);
    const RunTimes lca = of(MultiAlgorithm::kMergeLca, windows, rows);
    const RunTimes pipeline = of(MultiAlgorithm::kNestedLoopPipeline, windows, rows);
    same(pipeline, lca);
    const std::string suffix =
        slowest > 500 ? "; small variation of the rates" : "; large variation of the rates";
    draw(files, "14", "LCA" + suffix, lca);
    draw(files, "14", "NLW-join" + suffix, pipeline);
    files.finding("14", "time of NLW-join / LCA" + suffix, pipeline.seconds() / lca.seconds());
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
  FigureFiles files(argument[1], "wjoin");
  Progress progress(6);
  const auto step = [&](auto&& figure) {
    figure();
    progress.step();
  };
  step([&] { figures_7_and_8(files); });
  step([&] { figure_9_by_streams(files, "9a", 6, 100); });
  step([&] { figure_9_by_streams(files, "9b", 5, 1000); });
  step([&] { figure_9c(files); });
  step([&] { figure_13(files); });
  step([&] { figure_14(files); });
  if (files.good()) return 0;
  std::fprintf(stderr, "cannot write to %s\n", argument[1]);
  return 1;
}
