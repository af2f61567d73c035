// The experiments on quality-driven disorder handling: figures 6 to 11 and table II as series.
//
//   disorder_experiments FOLDER [--quick | --full | --steps] [DATA SET]
//
// --steps only adapts, at g = 10 ms and every target, on two minutes of each data set: for counting
// instructions, in all and (with the second option, by the totals of what is dumped) of each step,
//   valgrind --tool=callgrind --toggle-collect='*SlackTuner::adapt*' --dump-after='*SlackTuner::adapt*'
//       disorder_experiments FOLDER --steps
//
// The rows go through the operators' own DisorderStage; a join that only counts stands behind it, so that
// half an hour of data takes seconds. Recall is measured over the last P of event time, once every L: results
// that came, by their time, against those of the same rows in order. Writes FOLDER/disorder.csv,
// FOLDER/disorder_recall.csv and FOLDER/disorder_findings.csv; draw_disorder.py makes the figures of them.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>

#include "data_sets.h"
#include "streamjoin/disorder/disorder_stage.h"

namespace streamjoin::bench {
namespace {

constexpr Duration kBin = 1'000;  // ms

struct Setting {
  SlackPolicy policy = SlackPolicy::kRecall;
  Duration slack = 0;
  double target = 0.99;
  bool learned = true;
  Duration period = 60'000;
  Duration every = 1'000;
  Duration granularity = 10;
};

struct Outcome {
  std::vector<double> produced;  // by second of event time
  double average_slack = 0;
  double step_us = 0;
  double largest_step_us = 0;
  uint64_t steps = 0;
  uint64_t most_steps = 0;  // times that the model was asked in one adaptation
  double error = 0;         // mean |estimated - true| recall of an interval
  double bias = 0;
  std::vector<double> estimated;  // recall by second; -1 before the first estimate
};

double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// Joins what the stage releases, and counts results by second.
class Counter : public JoinSink {
 public:
  explicit Counter(const DataSet& set) : set_(set), join_(set) {}
  void join(std::span<const ReleasedRow> rows, std::span<uint64_t> results) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const DataRow& row = set_.rows[rows[i].row.index];
      const uint64_t found = join_.add(row, rows[i].behind, clock_);
      clock_ = std::max(clock_, row.time);
      if (!results.empty()) results[i] = found;
      const auto bin = static_cast<size_t>(row.time / kBin);
      if (bin >= produced.size()) produced.resize(bin + 1);
      produced[bin] += static_cast<double>(found);
    }
  }
  std::vector<double> produced;

 private:
  const DataSet& set_;
  CountingJoin join_;
  Time clock_ = 0;
};

std::vector<double> true_results(const DataSet& set) {
  DataSet sorted = set;
  std::stable_sort(sorted.rows.begin(), sorted.rows.end(),
                   [](const DataRow& a, const DataRow& b) { return a.time < b.time; });
  CountingJoin join(sorted);
  std::vector<double> found;
  for (const DataRow& row : sorted.rows) {
    const auto bin = static_cast<size_t>(row.time / kBin);
    if (bin >= found.size()) found.resize(bin + 1);
    found[bin] += static_cast<double>(join.add(row, false, 0));
  }
  return found;
}

Outcome run(const DataSet& set, const Setting& setting, const std::vector<double>& truth) {
  DisorderOptions options{.streams = set.streams, .policy = setting.policy, .slack = setting.slack};
  options.recall = {setting.target,
                    setting.period,
                    setting.every,
                    setting.granularity,
                    10,
                    setting.learned,
                    std::vector(set.streams, std::vector<Duration>(set.streams, set.window))};
  DisorderStage stage(options);
  Counter sink(set);
  Outcome outcome;
  double slacks = 0, rows = 0, time_us = 0;
  uint64_t seen = 0;
  struct Estimate {
    Time from;
    double recall;
  };
  std::vector<Estimate> estimates;
  for (uint32_t i = 0; i < set.rows.size(); ++i) {
    const DataRow& row = set.rows[i];
    stage.push(row.stream, {&row.time, 1}, {&i, 1}, sink);
    slacks += static_cast<double>(stage.slack());
    rows += 1;
    const SlackTuner* tuner = stage.tuner();
    if (tuner == nullptr || tuner->adaptations() == seen) continue;
    seen = tuner->adaptations();
    estimates.push_back({stage.clock(), tuner->estimated_recall()});
    const double start = cpu_us();
    const SlackChoice choice =
        RecallModel(tuner->model_input()).smallest(tuner->asked_of_model(tuner->requirement()));
    const double taken = cpu_us() - start;
    time_us += taken;
    outcome.steps += choice.steps;
    outcome.most_steps = std::max(outcome.most_steps, choice.steps);
    outcome.largest_step_us = std::max(outcome.largest_step_us, taken);
  }
  stage.finish(sink);
  outcome.produced = sink.produced;
  outcome.produced.resize(truth.size());
  outcome.average_slack = slacks / rows;
  if (seen > 0) outcome.step_us = time_us / static_cast<double>(seen);
  outcome.estimated.assign(truth.size(), -1);
  for (size_t i = 0; i < estimates.size(); ++i) {
    const Time until = i + 1 < estimates.size() ? estimates[i + 1].from : set.rows.back().time;
    for (Time at = estimates[i].from + kBin; at < until + kBin; at += kBin) {
      if (static_cast<size_t>(at / kBin) < truth.size())
        outcome.estimated[static_cast<size_t>(at / kBin)] = estimates[i].recall;
    }
  }
  // Where an estimate holds: rows that arrive from then on, which join a slack later.
  double weight = 0;
  for (size_t i = 60; i + 1 < estimates.size(); ++i) {
    const auto bin = static_cast<size_t>(estimates[i].from / kBin) + 1;
    if (bin >= truth.size() || truth[bin] == 0) continue;
    const double difference = estimates[i].recall - outcome.produced[bin] / truth[bin];
    outcome.error += std::abs(difference);
    outcome.bias += difference;
    weight += 1;
  }
  if (weight > 0) {
    outcome.error /= weight;
    outcome.bias /= weight;
  }
  return outcome;
}

std::vector<double> period_recalls(const Outcome& outcome, const std::vector<double>& truth,
                                   Duration period) {
  const auto bins = static_cast<size_t>(period / kBin);
  std::vector<double> recalls;
  double produced = 0, due = 0;
  for (size_t bin = 0; bin < truth.size(); ++bin) {
    produced += outcome.produced[bin];
    due += truth[bin];
    if (bin + 1 < bins) continue;
    recalls.push_back(due > 0 ? produced / due : 1);
    produced -= outcome.produced[bin + 1 - bins];
    due -= truth[bin + 1 - bins];
  }
  return recalls;
}

/// Mean difference between the recall of a period and what was estimated for its seconds.
double period_error(const Outcome& outcome, const std::vector<double>& truth, size_t bins) {
  double error = 0, count = 0, produced = 0, due = 0, estimated = 0;
  size_t first = 0;
  while (first < truth.size() && outcome.estimated[first] < 0) ++first;
  for (size_t bin = first; bin < truth.size(); ++bin) {
    produced += outcome.produced[bin];
    due += truth[bin];
    estimated += truth[bin] * outcome.estimated[bin];
    if (bin + 1 < first + bins) continue;
    if (due > 0) {
      error += std::abs(estimated - produced) / due;
      count += 1;
    }
    produced -= outcome.produced[bin + 1 - bins];
    due -= truth[bin + 1 - bins];
    estimated -= truth[bin + 1 - bins] * outcome.estimated[bin + 1 - bins];
  }
  return count > 0 ? error / count : 0;
}

double share_of(const std::vector<double>& recalls, double bound) {
  const auto reached = std::count_if(recalls.begin(), recalls.end(), [&](double r) { return r >= bound; });
  return recalls.empty() ? 1 : static_cast<double>(reached) / static_cast<double>(recalls.size());
}

/// What fixed slacks would have reached, each tried once.
class Hindsight {
 public:
  Hindsight(const DataSet& set, const std::vector<double>& truth) : set_(set), truth_(truth) {}

  /// The smallest slack, to 10 ms, whose period recalls please `judge`; larger ones are taken to please it
  /// too.
  template <typename Judge>
  double smallest_seconds(Judge&& judge) {
    Duration enough = 26'000, too_small = -10;
    while (enough - too_small > 10) {
      const Duration middle = (enough + too_small) / 20 * 10;
      (judge(recalls(middle)) ? enough : too_small) = middle;
    }
    return static_cast<double>(enough) / 1000;
  }

 private:
  const std::vector<double>& recalls(Duration slack) {
    auto [at, is_new] = recalls_.try_emplace(slack);
    if (is_new) {
      const Setting setting{.policy = SlackPolicy::kFixed, .slack = slack};
      at->second = period_recalls(run(set_, setting, truth_), truth_, 60'000);
    }
    return at->second;
  }
  const DataSet& set_;
  const std::vector<double>& truth_;
  std::map<Duration, std::vector<double>> recalls_;
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

class Report {
 public:
  explicit Report(const std::string& folder)
      : series_(folder + "/disorder.csv"),
        recalls_(folder + "/disorder_recall.csv"),
        findings_(folder + "/disorder_findings.csv") {
    findings_ << "data,target,K,largest_delay_K,hindsight_K_99,hindsight_K_mean,share_at_99,mean_recall,"
                 "estimate_error\n";
    series_ << "figure,data,policy,selectivity,target,period_s,every_s,granularity_ms,average_slack_s,"
               "share_at_99,share_at_target,average_recall,period_error,interval_error,bias,step_us,largest_"
               "step_us,model_steps\n";
    recalls_ << "data,policy,target,second,recall\n";
  }
  /// What the documents quote of a run at the default parameters.
  void find(const DataSet& set, double target, const Outcome& outcome, const std::vector<double>& truth,
            double largest, Hindsight& hindsight) {
    const std::vector<double> recalls = period_recalls(outcome, truth, 60'000);
    const double smallest = hindsight.smallest_seconds(
        [&](const std::vector<double>& tried) { return share_of(tried, 0.99 * target) >= 0.97; });
    const double as_good =
        hindsight.smallest_seconds([&](const std::vector<double>& tried) { return mean(tried) >= target; });
    findings_ << set.name << ',' << target << ',' << outcome.average_slack / 1000 << ',' << largest / 1000
              << ',' << smallest << ',' << as_good << ',' << share_of(recalls, 0.99 * target) << ','
              << mean(recalls) << ',' << period_error(outcome, truth, 60) << std::endl;
    std::printf(
        "    K %.1f%% below the largest delay's. Smallest fixed K in hindsight: %.3f s for 97%% of the "
        "measurements at 0.99 of the target, %.3f s for the target on average\n",
        100 * (1 - outcome.average_slack / largest), smallest, as_good);
  }
  Outcome add(const std::string& figure, const DataSet& set, const Setting& setting,
              const std::vector<double>& truth, bool timeline = false) {
    const Outcome outcome = run(set, setting, truth);
    const std::vector<double> recalls = period_recalls(outcome, truth, setting.period);
    static constexpr std::array kNames{"slack", "max_slack", "recall"};
    const std::string policy = kNames[static_cast<size_t>(setting.policy)];
    const double average = mean(recalls);
    const double error = period_error(outcome, truth, static_cast<size_t>(setting.period / kBin));
    const double at_99 = share_of(recalls, 0.99 * setting.target);
    series_ << figure << ',' << set.name << ',' << policy << ',' << (setting.learned ? "learned" : "equal")
            << ',' << setting.target << ',' << setting.period / 1000 << ','
            << static_cast<double>(setting.every) / 1000 << ',' << setting.granularity << ','
            << outcome.average_slack / 1000 << ',' << at_99 << ',' << share_of(recalls, setting.target) << ','
            << average << ',' << error << ',' << outcome.error << ',' << outcome.bias << ','
            << outcome.step_us << ',' << outcome.largest_step_us << ',' << outcome.steps << std::endl;
    for (size_t i = 0; timeline && i < recalls.size(); ++i)
      recalls_ << set.name << ',' << policy << ',' << setting.target << ',' << i + 60 << ',' << recalls[i]
               << '\n';
    std::printf(
        "%-9s %-11s %-9s %-7s target %.3f P %3llds L %.1fs g %4lldms: K %7.3f s, at 0.99 of it %5.1f%%, "
        "recall %.4f, |est - true| %.4f a period, %.4f a second, step %.1f us (largest %.1f; %llu slacks "
        "looked at)\n",
        figure.c_str(), set.name.c_str(), policy.c_str(), setting.learned ? "learned" : "equal",
        setting.target, static_cast<long long>(setting.period / 1000),
        static_cast<double>(setting.every) / 1000, static_cast<long long>(setting.granularity),
        outcome.average_slack / 1000, 100 * at_99, average, error, outcome.error, outcome.step_us,
        outcome.largest_step_us, static_cast<unsigned long long>(outcome.most_steps));
    std::fflush(stdout);
    return outcome;
  }

 private:
  std::ofstream series_;
  std::ofstream recalls_;
  std::ofstream findings_;
};

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "disorder_experiments FOLDER [--quick | --full | --steps] [DATA SET]\n";
    return 2;
  }
  const std::string mode = count > 2 ? arguments[2] : "--full";
  const bool quick = mode == "--quick";
  const Time minute = 60'000;
  Report report(arguments[1]);
  if (mode == "--steps") {
    for (const DataSet& set : {soccer_like(2 * minute), three_way(2 * minute), four_way(2 * minute)}) {
      const std::vector<double> truth = true_results(set);
      for (const double target : {0.9, 0.95, 0.99, 0.999})
        report.add("steps", set, {.target = target}, truth);
    }
    return 0;
  }
  const std::vector<DataSet> sets{soccer_like((quick ? 5 : 23) * minute),
                                  three_way((quick ? 6 : 30) * minute), four_way((quick ? 6 : 30) * minute)};
  const std::string only = count > 3 ? arguments[3] : "";
  for (const DataSet& set : sets) {
    if (!only.empty() && set.name != only) continue;
    const std::vector<double> truth = true_results(set);
    Hindsight hindsight(set, truth);
    report.add("figure 6", set, {.policy = SlackPolicy::kFixed}, truth, true);
    const double largest =
        report.add("table II", set, {.policy = SlackPolicy::kLargestDelay}, truth, true).average_slack;
    for (const double target : {0.9, 0.95, 0.99, 0.999}) {
      for (const bool learned : {false, true}) {
        const Outcome outcome =
            report.add("figure 7", set, {.target = target, .learned = learned}, truth, learned);
        if (!learned) continue;
        report.find(set, target, outcome, truth, largest, hindsight);
      }
    }
    for (const Duration period : {30, 60, 180}) {
      for (const double target : {0.95, 0.99})
        report.add("figure 8", set, {.target = target, .period = period * 1'000}, truth);
    }
    for (const Duration every : {100, 500, 1'000, 5'000, 10'000}) {
      report.add("figure 9", set, {.target = 0.99, .every = every}, truth);
    }
    for (const Duration granularity : {1, 10, 100, 1'000}) {
      for (const double target : {0.9, 0.99, 0.999})
        report.add("figure 10", set, {.target = target, .granularity = granularity}, truth);
    }
  }
  return 0;
}

}  // namespace
}  // namespace streamjoin::bench

int main(int count, char** arguments) {
  return streamjoin::bench::main(count, arguments);
}
