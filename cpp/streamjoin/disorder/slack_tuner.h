// SlackTuner: decides the slack K, every interval L of event time, by the recall model.
//
//   arrivals -> StreamStatistics (delays, skew)  -+
//   join     -> Productivity (results by delay)  -+->  RecallModel -> smallest K for the requirement
//   join     -> ResultMonitor (last P - L)       -+
//
// The requirement is what the next interval must reach for the whole period P to reach the target. The
// estimate is the model's with its losses corrected: multiplied by lost over foretold of the last P - L. Time
// here is that of the rows released to the join; before the first interval K is zero. Cost: O(1) a row; an
// adaptation costs O(largest delay / g) and one pass over the histograms. Owned by the DisorderStage. One
// thread.

#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "streamjoin/disorder/productivity.h"
#include "streamjoin/disorder/recall_model.h"
#include "streamjoin/disorder/stream_statistics.h"

namespace streamjoin {

struct RecallOptions {
  double target = 0.99;
  Duration period = 60'000'000;
  Duration adapt_every = 1'000'000;
  Duration granularity = 10'000;
  Duration basic_window = 10'000;
  bool learned_selectivity = true;
  /// windows[j][i]: how far before a row of i its partners of j may lie.
  std::vector<std::vector<Duration>> windows = {};
};

enum class WhySlack : uint8_t {
  kStart,            // no interval has ended yet
  kSame,             // the same slack is still the smallest that is enough
  kDelaysGrew,       // the old slack would no longer reach even the old requirement
  kDelaysShrank,     // a smaller slack now reaches the old requirement
  kRequirementRose,  // the period has fallen behind its target
  kRequirementFell,  // the period is ahead of its target
};
const char* in_words(WhySlack why);

class SlackTuner {
 public:
  explicit SlackTuner(RecallOptions options);

  /// A row arrived: returns its coarse delay. `skew` is how far its stream was ahead of the slowest.
  uint32_t arrive(size_t stream, Duration delay, Duration skew) {
    const uint32_t coarse = coarse_delay(delay, options_.granularity);
    statistics_[stream].add(coarse, skew);
    return coarse;
  }
  /// Rows without delay arrived, while the slowest of the other streams was at `slowest`.
  void arrive_in_order(size_t stream, std::span<const Time> times, Time slowest) {
    statistics_[stream].add_in_order(times, slowest);
  }
  /// A row in order reached the join and gave `results` rows.
  void add_in_order(size_t stream, Time time, uint32_t delay, uint64_t results);
  /// A row at `time` came behind the join's clock.
  void add_out_of_order(size_t stream, Time clock, Time time, uint32_t delay);

  /// Whether an interval ends before a row at `time`.
  bool is_due(Time time) const { return time >= next_; }
  /// When the interval ends; kBeginning before the first row.
  Time interval_end() const { return next_; }
  /// Ends the interval and chooses the slack for the next, which holds `time`.
  void adapt(Time time);

  Duration slack() const { return choice_.slack; }
  double estimated_recall() const { return choice_.recall; }
  double requirement() const { return requirement_; }
  /// Results lost in the last period over those that the model foretold to be lost.
  double correction() const { return correction_; }
  /// What the model must reach for the corrected estimate to reach `requirement`. A correction to the better
  /// is not taken advantage of: it is made of few results, and delays may be what they were again.
  double asked_of_model(double requirement) const {
    return 1 - (1 - requirement) / std::max(1.0, correction_);
  }
  WhySlack why() const { return why_; }
  uint64_t adaptations() const { return adaptations_; }
  uint64_t steps() const { return choice_.steps; }
  const StreamStatistics& statistics(size_t stream) const { return statistics_[stream]; }

  /// The model as the next adaptation would build it, without an interval's end.
  RecallModelInput model_input() const;
  std::string validate() const;
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  /// Times of the rows of a stream that the join holds, as far as some other stream's window reaches.
  struct Held {
    std::vector<Time> times;
    size_t begin = 0;
    std::vector<size_t> heads;  // per other stream: the first row inside its window
  };
  double cross_results(size_t stream, Time time);
  void hold(size_t stream, Time time);

  RecallOptions options_;
  std::vector<StreamStatistics> statistics_;
  std::vector<Held> held_;
  std::vector<Duration> reaches_;  // how long a row of the stream stays joinable
  Productivity productivity_;
  ResultMonitor monitor_;
  Productivity::Interval last_;
  SlackChoice choice_;
  double requirement_;
  double modelled_ = 1;  // the model's own recall of the slack in force
  double correction_ = 1;
  WhySlack why_ = WhySlack::kStart;
  Time next_ = kBeginning;
  uint64_t adaptations_ = 0;
};

}  // namespace streamjoin
