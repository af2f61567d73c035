// Productivity: what the rows of the last interval yielded, by coarse delay; and the results per interval.
//
//   row in order      adds its own cross-join and join results at its delay
//   row out of order  was not probed: it adds the mean of either over the rows in order of its interval
//
// The paper takes the largest instead of the mean. Where a few rows have many partners that is far too much:
// every row out of order then seems to have lost more than there was, and the slack grows to the largest
// delay.
//
// ResultMonitor keeps, for the intervals of the last P - L, how many results came, how many were due, and how
// many the model had given up: it sees neither the gaps between rows nor how skew and delay go together, and
// its losses are corrected by what was really lost. Cost: O(1) a row, O(largest delay) an interval. Owned by
// the SlackTuner. One thread.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "streamjoin/base/archive.h"

namespace streamjoin {

class Productivity {
 public:
  void add_in_order(uint32_t delay, double cross, double joined) {
    at(cross_, delay) += cross;
    at(joined_, delay) += joined;
    ++in_order_;
    crossed_ += cross;
    produced_ += joined;
  }
  void add_out_of_order(uint32_t delay) { ++at(out_of_order_, delay); }
  /// Results that came in this interval.
  double produced() const { return produced_; }

  struct Interval {
    std::vector<double> cross;
    std::vector<double> joined;
    double produced = 0;
    double due = 0;  // the estimate of what a join in perfect order would have given
  };
  /// Closes the interval and starts the next.
  Interval end_interval() {
    Interval interval{std::move(cross_), std::move(joined_), produced_, 0};
    const size_t size = std::max(interval.cross.size(), out_of_order_.size());
    interval.cross.resize(size);
    interval.joined.resize(size);
    const double mean_cross = in_order_ > 0 ? crossed_ / in_order_ : 0;
    const double mean_joined = in_order_ > 0 ? produced_ / in_order_ : 0;
    for (size_t d = 0; d < out_of_order_.size(); ++d) {
      interval.cross[d] += out_of_order_[d] * mean_cross;
      interval.joined[d] += out_of_order_[d] * mean_joined;
    }
    interval.due = std::accumulate(interval.joined.begin(), interval.joined.end(), 0.0);
    *this = {};
    return interval;
  }

  void save(ArchiveWriter& out) const {
    for (const auto* values : {&cross_, &joined_, &out_of_order_}) out.array(*values);
    for (const double value : {in_order_, crossed_, produced_}) out.value(value);
  }
  void load(ArchiveReader& in) {
    for (auto* values : {&cross_, &joined_, &out_of_order_}) *values = in.array<double>();
    for (double* value : {&in_order_, &crossed_, &produced_}) *value = in.value<double>();
  }

 private:
  // A delay beyond the histogram's end is counted at the end: the search for a slack never gets that far.
  static constexpr uint32_t kMaxDelay = uint32_t{1} << 16;
  static double& at(std::vector<double>& values, uint32_t delay) {
    delay = std::min(delay, kMaxDelay);
    if (delay >= values.size()) values.resize(delay + 1);
    return values[delay];
  }

  std::vector<double> cross_;
  std::vector<double> joined_;
  std::vector<double> out_of_order_;
  double in_order_ = 0;  // rows
  double crossed_ = 0;
  double produced_ = 0;
};

class ResultMonitor {
 public:
  struct Interval {
    double produced = 0;
    double due = 0;
    double foretold = 0;  // results of `due` that the model gave up for lost
  };
  /// Remembers the last `intervals` intervals.
  explicit ResultMonitor(uint64_t intervals) : intervals_(intervals) {}

  void add(const Interval& interval) {
    seen_.push_back(interval);
    while (seen_.size() > intervals_) seen_.pop_front();
  }
  double produced() const { return sum(&Interval::produced); }
  double due() const { return sum(&Interval::due); }

  /// What the next interval must reach, if it holds `next_due`, for the period to come back to `target`, with
  /// a quarter of the loss that it allows in reserve. Without the reserve half of all periods would end
  /// below. The paper makes good at once what the period has lost or gained: one interval of many, it must
  /// then reach nothing at all or everything, and the slack swings between zero and the largest delay. Here a
  /// quarter of the period is given to it, which keeps the slack near the smallest that is enough. And never
  /// is more than half the loss aimed at to be saved: the last results cost the largest delay, and what was
  /// lost leaves the period by itself.
  double requirement(double target, double next_due) const {
    const double aim = target + target * (1 - target) / 4;
    if (next_due <= 0) return aim;
    const double intervals = std::max(1.0, static_cast<double>(intervals_ + 1) / 4);
    const double lost = aim * due() - produced();
    return std::min(1 - (1 - aim) / 2, std::max(0.0, aim + lost / (next_due * intervals)));
  }

  /// What was lost over what the model foretold; 1 where nothing was.
  double correction() const {
    const double lost = due() - produced();
    const double foretold = sum(&Interval::foretold);
    return lost > 0 && foretold > 0 ? std::clamp(lost / foretold, 1 / kMostCorrection, kMostCorrection) : 1;
  }

  void save(ArchiveWriter& out) const {
    out.value<uint64_t>(seen_.size());
    for (const Interval& seen : seen_) {
      for (const double value : {seen.produced, seen.due, seen.foretold}) out.value(value);
    }
  }
  void load(ArchiveReader& in) {
    seen_.clear();
    const uint64_t count = in.value<uint64_t>();
    for (uint64_t i = 0; i < count; ++i) {
      Interval seen;
      for (double* value : {&seen.produced, &seen.due, &seen.foretold}) *value = in.value<double>();
      seen_.push_back(seen);
    }
  }

 private:
  static constexpr double kMostCorrection = 4;
  double sum(double Interval::* member) const {
    double total = 0;
    for (const Interval& seen : seen_) total += seen.*member;
    return total;
  }

  uint64_t intervals_;
  std::deque<Interval> seen_;
};

}  // namespace streamjoin
