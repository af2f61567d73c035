// Question: do the claims of PWJoin's experiments hold here? Runs figures 8 to 12 and writes their series.
//
//   pwjoin_figures FOLDER                       writes FOLDER/pwjoin.csv and FOLDER/pwjoin_findings.csv
//   pwjoin_figures --once PWJoin|WJoin SECONDS  figure 9's streams, one join, once: for callgrind
//
//   figure  streams                               what is drawn
//   8       two of punct-asc-100-40               rows in state by time; windows 1, 5, 15 s; equation (1)
//   9       the same                              rows out by processor time; windows 5 and 15 s
//   10      punct-asc-30-40, punct-random-30-40   rows out by processor time; punctuations irrelevant; 5 s
//   11      the same, relevant                    punctuations out by time; PWJoin at 1 s, PJoin
//   12      no punctuations, punct-asc-30-40      punctuations out by time; window of the second 5 s
//
// Every variant must put out the same rows. What the paper leaves open and was chosen here: a run has as many
// values as segments; rows that do not match their segment's punctuation are drawn evenly from the values
// that end later; figure 10's window.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "paper/figure_files.h"
#include "paper/pwjoin_runs.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kRepetitions = 60;

enum class Variant : uint8_t { kPWJoin, kWJoin, kPJoin };

using Streams = std::array<std::vector<StreamEvent>, 2>;

Time end_of(const Streams& streams) {
  const Time last = std::min(streams[kLeft].back().time, streams[kRight].back().time);
  return last / (2 * kSecond) * (2 * kSecond);
}

Experiment experiment(const Streams& streams, Bounds bounds, Variant variant, Duration step,
                      size_t repetitions) {
  Experiment made{
      .streams = streams, .options = {}, .step = step, .end = end_of(streams), .repetitions = repetitions};
  made.options.bounds = bounds;
  made.options.use_punctuations = variant != Variant::kWJoin;
  made.options.use_windows = variant != Variant::kPJoin;
  return made;
}

/// "PWJoin-15": a join and its window in seconds.
std::string named(const char* join, int window) {
  std::string name(join);
  name += '-';
  name += std::to_string(window);
  return name;
}

template <typename X, typename Y>
void add(FigureFiles& files, int figure, const std::string& name, const std::vector<Sample>& samples, X x,
         Y y) {
  for (const Sample& sample : samples) files.point(figure, name, x(sample), y(sample));
}

double seconds(const Sample& sample) {
  return sample.seconds;
}
double milliseconds(const Sample& sample) {
  return sample.milliseconds;
}

/// Equation (1) for both states: of the rows inside the window, the share of values that the other stream has
/// ended by then is gone. Distinct values are counted in the stream, rates are those of the whole run.
std::vector<double> predicted_state(const Streams& streams, Duration window,
                                    const std::vector<Sample>& samples) {
  std::vector<double> predicted(samples.size(), 0);
  for (const int side : {kLeft, kRight}) {
    std::set<Code> seen;
    size_t at = 0;
    size_t other_at = 0;
    double ended_by_other = 0;
    const auto& mine = streams[side];
    const auto& others = streams[1 - side];
    const double rate = 1e6 / (kMillisecondsBetweenRows * kMillisecond);
    for (size_t step = 0; step < samples.size(); ++step) {
      const Time now = static_cast<Time>(std::llround(samples[step].seconds * kSecond));
      for (; at < mine.size() && mine[at].time < now; ++at) {
        if (!mine[at].is_punctuation) seen.insert(mine[at].value);
      }
      for (; other_at < others.size() && others[other_at].time < now; ++other_at) {
        ended_by_other += others[other_at].is_punctuation;
      }
      const double full = rate * std::min(static_cast<double>(window) / kSecond, samples[step].seconds);
      predicted[step] += full * std::max(0.0, 1 - ended_by_other / static_cast<double>(seen.size()));
    }
  }
  return predicted;
}

void require_same_rows(const std::vector<std::vector<Sample>>& runs) {
  for (const auto& run : runs) {
    require(run.back().rows_out, runs.front().back().rows_out, "rows out of another variant");
  }
}

double mean_state(const std::vector<Sample>& samples, double from_seconds) {
  double sum = 0;
  size_t count = 0;
  for (const Sample& sample : samples) {
    if (sample.seconds < from_seconds) continue;
    sum += static_cast<double>(sample.state_rows);
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

Streams streams_of_figure_9() {
  constexpr size_t kSegments = 120;
  const ArrivalPattern pattern = arrival_pattern("punct-asc-100-40");
  return {punctuated_stream(pattern, kSegments, 1), punctuated_stream(pattern, kSegments, 2)};
}

void once(Variant variant, int window) {
  const Bounds bounds(-window * kSecond, window * kSecond);
  const Streams streams = streams_of_figure_9();
  const Sample end = run_once(experiment(streams, bounds, variant, 2 * kSecond, 0)).back();
  std::printf("%zu rows in, %zu rows out, %zu punctuations out\n",
              streams[kLeft].size() + streams[kRight].size(), end.rows_out, end.punctuations_out);
}

void figures_8_and_9(FigureFiles& files, Progress& progress) {
  const Streams streams = streams_of_figure_9();
  for (const int window : {1, 5, 15}) {
    const Bounds bounds(-window * kSecond, window * kSecond);
    const bool timed = window > 1;
    const size_t repetitions = timed ? kRepetitions : 0;
    const auto runs = run_in_turn({experiment(streams, bounds, Variant::kPWJoin, 2 * kSecond, repetitions),
                                   experiment(streams, bounds, Variant::kWJoin, 2 * kSecond, repetitions)});
    require_same_rows(runs);
    const char* names[] = {"PWJoin", "WJoin"};
    for (int i = 0; i < 2; ++i) {
      const auto rows = [](const Sample& sample) { return sample.state_rows; };
      add(files, 8, named(names[i], window), runs[i], seconds, rows);
      if (timed) {
        const auto out = [](const Sample& sample) { return sample.rows_out; };
        add(files, 9, named(names[i], window), runs[i], milliseconds, out);
      }
    }
    const std::vector<double> predicted = predicted_state(streams, window * kSecond, runs[0]);
    size_t step = 0;
    add(files, 8, named("equation (1)", window), runs[0], seconds,
        [&](const Sample&) { return predicted[step++]; });
    const double saved = 1 - mean_state(runs[0], window) / mean_state(runs[1], window);
    const std::string at = " at a window of " + std::to_string(window) + " s";
    files.finding(8, "rows held by PWJoin" + at, mean_state(runs[0], window));
    files.finding(8, "rows held by WJoin" + at, mean_state(runs[1], window));
    files.finding(8, "percent saved" + at, 100 * saved);
    if (timed) {
      files.finding(9, "rate of PWJoin / WJoin" + at,
                    runs[1].back().milliseconds / runs[0].back().milliseconds);
    }
    progress.step();
  }
}

void figures_10_and_11(FigureFiles& files, Progress& progress) {
  constexpr size_t kSegments = 400;
  ArrivalPattern ascending = arrival_pattern("punct-asc-30-40");
  ArrivalPattern random = arrival_pattern("punct-random-30-40");
  const Streams relevant{punctuated_stream(ascending, kSegments, 3), punctuated_stream(random, kSegments, 4)};
  ascending.irrelevant = random.irrelevant = true;
  const Streams irrelevant{punctuated_stream(ascending, kSegments, 3),
                           punctuated_stream(random, kSegments, 4)};

  const Bounds five(-5 * kSecond, 5 * kSecond);
  const auto timed = run_in_turn({experiment(irrelevant, five, Variant::kPWJoin, kSecond, kRepetitions),
                                  experiment(irrelevant, five, Variant::kWJoin, kSecond, kRepetitions)});
  require_same_rows(timed);
  const auto out = [](const Sample& sample) { return sample.rows_out; };
  add(files, 10, "PWJoin", timed[0], milliseconds, out);
  add(files, 10, "WJoin", timed[1], milliseconds, out);
  files.finding(10, "rate of PWJoin / WJoin with irrelevant punctuations",
                timed[1].back().milliseconds / timed[0].back().milliseconds);
  progress.step();

  const Bounds one(-kSecond, kSecond);
  const auto runs = run_in_turn({experiment(relevant, one, Variant::kPWJoin, kSecond, 0),
                                 experiment(relevant, one, Variant::kPJoin, kSecond, 0)});
  require_same_rows(runs);
  const auto punctuations = [](const Sample& sample) { return sample.punctuations_out; };
  add(files, 11, "PWJoin", runs[0], seconds, punctuations);
  add(files, 11, "PJoin", runs[1], seconds, punctuations);
  const size_t half = runs[0].size() / 2;
  for (const auto& [name, run] : {std::pair("PWJoin", runs[0]), std::pair("PJoin", runs[1])}) {
    files.finding(11, std::string("punctuations out of ") + name + " after half of the run",
                  static_cast<double>(run[half].punctuations_out));
    files.finding(11, std::string("punctuations out of ") + name + " at the end",
                  static_cast<double>(run.back().punctuations_out));
  }
  progress.step();
}

void figure_12(FigureFiles& files, Progress& progress) {
  constexpr size_t kSegments = 400;
  const ArrivalPattern none{.segment_size = 30, .punctuated = false, .unended_values = 15000};
  const ArrivalPattern ascending = arrival_pattern("punct-asc-30-40");
  const Streams streams{punctuated_stream(none, kSegments, 5), punctuated_stream(ascending, kSegments, 6)};
  // A row of the second stream stays joinable for 5 s; what ends a row of the first is a punctuation alone.
  const Bounds bounds(-5 * kSecond, std::nullopt);
  const auto runs = run_in_turn({experiment(streams, bounds, Variant::kPWJoin, kSecond, 0),
                                 experiment(streams, bounds, Variant::kPJoin, kSecond, 0)});
  require_same_rows(runs);
  const auto punctuations = [](const Sample& sample) { return sample.punctuations_out; };
  add(files, 12, "PWJoin", runs[0], seconds, punctuations);
  add(files, 12, "PJoin", runs[1], seconds, punctuations);
  files.finding(12, "punctuations out of PWJoin", static_cast<double>(runs[0].back().punctuations_out));
  files.finding(12, "punctuations out of PJoin", static_cast<double>(runs[1].back().punctuations_out));
  size_t longest_pause = 0;
  for (size_t i = 1, since = 0; i < runs[0].size(); ++i) {
    since = runs[0][i].punctuations_out > runs[0][i - 1].punctuations_out ? 0 : since + 1;
    if (runs[0][i].seconds > 10) longest_pause = std::max(longest_pause, since);
  }
  files.finding(12, "longest pause of PWJoin after the first 10 s in s", static_cast<double>(longest_pause));
  progress.step();
}

}  // namespace
}  // namespace streamjoin::bench

int main(int arguments, char** argument) {
  using namespace streamjoin::bench;
  const std::string first = arguments > 1 ? argument[1] : "";
  const std::string join = arguments == 4 ? argument[2] : "";
  if (first == "--once" && (join == "PWJoin" || join == "WJoin")) {
    once(join == "PWJoin" ? Variant::kPWJoin : Variant::kWJoin, std::max(1, std::atoi(argument[3])));
    return 0;
  }
  if (arguments != 2 || first.starts_with("--")) {
    std::fprintf(stderr, "usage: pwjoin_figures FOLDER | --once PWJoin|WJoin SECONDS\n");
    return 2;
  }
  FigureFiles files(first, "pwjoin");
  Progress progress(6);
  figures_8_and_9(files, progress);
  figures_10_and_11(files, progress);
  figure_12(files, progress);
  if (files.good()) return 0;
  std::fprintf(stderr, "cannot write %s/pwjoin.csv\n", first.c_str());
  return 1;
}
