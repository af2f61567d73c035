// Productivity: what the rows of the last interval yielded, by coarse delay; and the results per interval.
//
//   row in order      adds its own cross-join and join results at its delay
//   row out of order  was not probed: it adds the mean of either over the rows in order of its interval
//
// The paper takes the largest instead of the mean. Where a few rows have many partners that is far too much:
// every row out of order then seems to have lost more than there was, and the slack grows to the largest
// delay.
//
// ResultMonitor keeps, for the intervals of the last P - L, how many results came and how many were due.
// Cost: O(1) a row, O(largest delay) an interval. Owned by the SlackTuner. One thread.

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
  /// Remembers the last `intervals` intervals.
  explicit ResultMonitor(uint64_t intervals) : intervals_(intervals) {}

  void add(double produced, double due) {
    seen_.push_back({produced, due});
    while (seen_.size() > intervals_) seen_.pop_front();
  }
  double produced() const { return sum(&Seen::produced); }
  double due() const { return sum(&Seen::due); }

  /// What the next interval must reach, if it holds `next_due`, for the period to come back to `target`.
  /// The paper makes good at once what the period has lost or gained: one interval of many, it must then
  /// reach nothing at all or everything, and the slack swings between zero and the largest delay. Here a
  /// quarter of the period is given to it, which keeps the slack near the smallest that is enough.
  double requirement(double target, double next_due) const {
    if (next_due <= 0) return target;
    const double intervals = std::max(1.0, static_cast<double>(intervals_ + 1) / 4);
    const double lost = target * due() - produced();
    return std::min(1.0, std::max(0.0, target + lost / (next_due * intervals)));
  }

  void save(ArchiveWriter& out) const {
    out.value<uint64_t>(seen_.size());
    for (const Seen& seen : seen_) {
      out.value(seen.produced);
      out.value(seen.due);
    }
  }
  void load(ArchiveReader& in) {
    seen_.clear();
    const uint64_t count = in.value<uint64_t>();
    for (uint64_t i = 0; i < count; ++i) {
      const double produced = in.value<double>();
      seen_.push_back({produced, in.value<double>()});
    }
  }

 private:
  struct Seen {
    double produced;
    double due;
  };
  double sum(double Seen::* member) const {
    double total = 0;
    for (const Seen& seen : seen_) total += seen.*member;
    return total;
  }

  uint64_t intervals_;
  std::deque<Seen> seen_;
};

}  // namespace streamjoin
