// Productivity: what the rows of the last interval yielded, by coarse delay; and the results per interval.
//
//   row in order      adds its own cross-join and join results at its delay
//   row out of order  was not probed: it adds the largest of either among the rows in order of its interval
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
    largest_cross_ = cross > largest_cross_ ? cross : largest_cross_;
    largest_joined_ = joined > largest_joined_ ? joined : largest_joined_;
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
    for (size_t d = 0; d < out_of_order_.size(); ++d) {
      interval.cross[d] += out_of_order_[d] * largest_cross_;
      interval.joined[d] += out_of_order_[d] * largest_joined_;
    }
    interval.due = std::accumulate(interval.joined.begin(), interval.joined.end(), 0.0);
    *this = {};
    return interval;
  }

  void save(ArchiveWriter& out) const {
    for (const auto* values : {&cross_, &joined_, &out_of_order_}) out.array(*values);
    for (const double value : {largest_cross_, largest_joined_, produced_}) out.value(value);
  }
  void load(ArchiveReader& in) {
    for (auto* values : {&cross_, &joined_, &out_of_order_}) *values = in.array<double>();
    for (double* value : {&largest_cross_, &largest_joined_, &produced_}) *value = in.value<double>();
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
  double largest_cross_ = 0;
  double largest_joined_ = 0;
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

  /// What the next interval must reach so that the whole period reaches `target`; `due` is what it will hold.
  double requirement(double target, double next_due) const {
    if (next_due <= 0) return target;
    const double needed = (target * (due() + next_due) - produced()) / next_due;
    return std::min(1.0, std::max(0.0, needed));
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
