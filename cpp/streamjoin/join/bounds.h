// Bounds: the window between two streams, `lower <= time(right) - time(left) <= upper`, and what follows from
// it.
//
//   left row at t:   partners on the right in [t + lower, t + upper]
//   right row at t:  partners on the left  in [t - upper, t - lower]
//
// For either side that is [t + first, t + last]. Either end may be open. Sums saturate: what they pass lies
// beyond every row.

#pragma once

#include <array>
#include <optional>

#include "streamjoin/base/time.h"

namespace streamjoin {

enum Side : int { kLeft = 0, kRight = 1 };

inline Side other_side(Side side) {
  return side == kLeft ? kRight : kLeft;
}

class Bounds {
 public:
  /// An end without value is open. -2^63 is no bound: its opposite is no duration.
  Bounds(std::optional<Duration> lower, std::optional<Duration> upper)
      : first_{lower, opposite(upper)},
        last_{upper, opposite(lower)},
        empty_(lower && upper && *lower > *upper) {}

  /// No time difference fits: nothing matches.
  bool empty() const { return empty_; }

  /// Earliest and latest time of the other stream that can match a row of `side` at `time`.
  Time first(Side side, Time time) const {
    return first_[side] ? add_saturating(time, *first_[side]) : kBeginning;
  }
  Time reach(Side side, Time time) const { return last_[side] ? add_saturating(time, *last_[side]) : kEnd; }

  /// Rows of the other stream before this time can match no row of `side` at or after `clock`.
  Time forget_before(Side side, Time clock) const { return clock == kEnd ? kEnd : first(side, clock); }

 private:
  static std::optional<Duration> opposite(std::optional<Duration> bound) {
    return bound ? std::optional<Duration>(-*bound) : std::nullopt;
  }

  std::array<std::optional<Duration>, 2> first_;
  std::array<std::optional<Duration>, 2> last_;
  bool empty_;
};

}  // namespace streamjoin
