// WindowMatrix: the windows between all pairs of m streams, and what follows from them.
//
//   upper(i, j) = largest time(j) - time(i)            closed under shortest paths; kEnd where it is open
//
// A matrix is one alternative; a join may have several (a path join in both directions has two), and a result
// satisfies at least one. The hull, the largest entry over all alternatives, says what state may be
// forgotten. Sums saturate: what they pass lies beyond every row. Immutable.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "streamjoin/base/check.h"
#include "streamjoin/base/time.h"

namespace streamjoin {

/// A stretch of time, both ends included.
struct Period {
  Time first = kBeginning;
  Time last = kEnd;

  bool empty() const { return first > last; }
  bool contains(Time time) const { return first <= time && time <= last; }
};

/// Whether a time lies in a period that is not empty: one comparison for both ends, for what lies before the
/// first wraps around.
class WithinPeriod {
 public:
  explicit WithinPeriod(Period period)
      : first_(static_cast<uint64_t>(period.first)), length_(static_cast<uint64_t>(period.last) - first_) {}
  bool operator()(Time time) const { return static_cast<uint64_t>(time) - first_ <= length_; }

 private:
  uint64_t first_;
  uint64_t length_;
};

class WindowMatrix {
 public:
  static constexpr size_t kMostAlternatives = 32;
  /// Alternatives that a set of rows satisfies, a bit each.
  using Mask = uint32_t;

  /// alternatives[k][i][j] is upper(i, j) of alternative k; without value it is open.
  explicit WindowMatrix(const std::vector<std::vector<std::vector<std::optional<Duration>>>>& alternatives)
      : streams_(alternatives.empty() ? 0 : alternatives[0].size()), alternatives_(alternatives.size()) {
    if (alternatives_ == 0 || alternatives_ > kMostAlternatives)
      throw UsageError("a join needs 1 to 32 alternatives of windows");
    hull_.assign(streams_ * streams_, kBeginning);
    for (const auto& matrix : alternatives) {
      if (matrix.size() != streams_) throw UsageError("a window matrix needs one row per stream");
      for (size_t i = 0; i < streams_; ++i) {
        if (matrix[i].size() != streams_) throw UsageError("a window matrix needs one column per stream");
        for (size_t j = 0; j < streams_; ++j) {
          uppers_.push_back(matrix[i][j].value_or(kEnd));
          hull_[i * streams_ + j] = std::max(hull_[i * streams_ + j], uppers_.back());
        }
      }
    }
    widest_of_.assign(streams_, kBeginning);
    for (size_t i = 0; i < streams_; ++i) {
      for (size_t j = 0; j < streams_; ++j) {
        if (i != j) widest_of_[i] = std::max({widest_of_[i], hull(i, j), hull(j, i)});
      }
    }
  }

  size_t streams() const { return streams_; }
  size_t alternatives() const { return alternatives_; }
  Mask all() const { return static_cast<Mask>((uint64_t{1} << alternatives_) - 1); }
  Duration upper(size_t alternative, size_t i, size_t j) const {
    return uppers_[(alternative * streams_ + i) * streams_ + j];
  }
  Duration hull(size_t i, size_t j) const { return hull_[i * streams_ + j]; }
  /// The largest bound of the pairs with stream `i`, and of all pairs: how far apart in time rows of a result
  /// can be.
  Duration widest_of(size_t i) const { return widest_of_[i]; }
  Duration widest() const { return *std::ranges::max_element(widest_of_); }

  /// Narrows `period` to where a row of stream `s` must lie to fit a row of `bound` at `time`.
  void narrow(size_t alternative, size_t s, size_t bound, Time time, Period& period) const {
    const Duration after = upper(alternative, bound, s);
    const Duration before = upper(alternative, s, bound);
    if (after != kEnd) period.last = std::min(period.last, add_saturating(time, after));
    if (before != kEnd) period.first = std::max(period.first, subtract_saturating(time, before));
  }

  /// Rows of stream `i` before this time can be part of no result that is still to come. `clocks` are the
  /// earliest times that rows of the streams may still have.
  Time forget_before(size_t i, std::span<const Time> clocks) const {
    Time limit = kEnd;
    for (size_t j = 0; j < streams_; ++j) {
      if (j != i) limit = std::min(limit, unreachable_before(i, j, clocks[j]));
    }
    return limit;
  }
  /// The same as far as stream `j` alone is concerned.
  Time unreachable_before(size_t i, size_t j, Time clock) const {
    return unreachable_before(hull(i, j), clock);
  }
  /// The same for a bound of any kind.
  static Time unreachable_before(Duration reach, Time clock) {
    if (clock == kEnd) return kEnd;
    return reach == kEnd || clock == kBeginning ? kBeginning : subtract_saturating(clock, reach);
  }

 private:
  size_t streams_;
  size_t alternatives_;
  std::vector<Duration> uppers_;
  std::vector<Duration> hull_;
  std::vector<Duration> widest_of_;
};

}  // namespace streamjoin
