// Time: event time as a 64-bit integer, and arithmetic on it that saturates instead of overflowing.
//
//   kBeginning ........ every legal time ........ kEnd
//
// The two extremes are no times of rows: what is at kBeginning has not begun, a clock that reaches kEnd has
// ended. Saturation is exact for our use: a sum that leaves the range lies beyond every legal time, and so
// does its stand-in.

#pragma once

#include <cstdint>
#include <limits>

namespace streamjoin {

using Time = int64_t;
using Duration = int64_t;

inline constexpr Time kBeginning = std::numeric_limits<Time>::min();
inline constexpr Time kEnd = std::numeric_limits<Time>::max();

/// The sum, or the extreme it would pass.
inline Time add_saturating(Time time, Duration duration) {
  Time sum;
  if (__builtin_add_overflow(time, duration, &sum)) return duration > 0 ? kEnd : kBeginning;
  return sum;
}

/// The difference, or the extreme it would pass.
inline Duration subtract_saturating(Time later, Time earlier) {
  Duration difference;
  if (__builtin_sub_overflow(later, earlier, &difference)) return later > earlier ? kEnd : kBeginning;
  return difference;
}

/// When something that lasts `lifespan` from `time` on is over; a lifespan of kEnd is for ever.
inline Time end_of(Time time, Duration lifespan) {
  return lifespan == kEnd ? kEnd : add_saturating(time, lifespan);
}

}  // namespace streamjoin
