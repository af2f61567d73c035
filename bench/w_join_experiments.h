// The W-join paper's experiments that both a benchmark and a figure need.

#pragma once

#include "older_joins.h"

namespace streamjoin::bench {

inline constexpr Duration kSlowStreamWindow = 50'000;

/// Figure 9c: four streams of 1000 rows a second, of which the fourth changes to `slow` rows a second and
/// back every 100 of its rows.
inline std::vector<TimedRow> slow_stream_rows(double slow) {
  constexpr double kSeconds = 12;
  auto streams = make_streams({.rates = {1000, 1000, 1000}, .rows_each = 0, .seconds = kSeconds, .keys = 10});
  auto& fourth = streams.emplace_back();
  std::mt19937_64 random(11);
  double now = 0;
  for (uint32_t row = 0;; ++row) {
    const double rate = row / 100 % 2 == 0 ? 1000 : slow;
    now += -std::log((static_cast<double>(random() >> 11) + 1) * 0x1.0p-53) / rate * kSecondUs;
    if (now >= kSeconds * kSecondUs) break;
    fourth.push_back({3, row, static_cast<Time>(now), static_cast<Code>(slot_of(random(), 10))});
  }
  return in_slices(streams, 2000);
}

/// Figure 13: `narrow` between all pairs, but `wide` between the last two streams.
inline UpperBounds one_wide_pair(Duration narrow, Duration wide) {
  UpperBounds uppers = one_window(4, narrow);
  uppers[2][3] = uppers[3][2] = wide;
  return uppers;
}

/// Figure 14: along the path A, B, C, D, each at most `window` after the one before; closed.
inline UpperBounds along_a_path(Duration window) {
  UpperBounds uppers(4, std::vector<std::optional<Duration>>(4));
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) uppers[i][j] = j > i ? static_cast<Duration>(j - i) * window : 0;
  }
  return uppers;
}

}  // namespace streamjoin::bench
