// StreamStatistics: what is known of one stream's recent disorder.
//
//   delayed  [ (row, delay) .. ]           rows of the adaptive window that have a delay
//   counts   delayed rows by coarse delay: d with (d - 1) g < delay <= d g; all other rows have none
//   skews    [ sum of 32 rows ] .. newest  how far the stream was ahead of the slowest
//
// The adaptive window (Adwin) watches the delays and shrinks when they change. It sees them as shares of a
// power of two of g above the largest delay so far, so that they lie in 0 .. 1. It is bounded: about kMaxRows
// rows, and kMaxDelay coarse delays; a longer delay is counted in `rows` alone. The mean skew is that of the
// window to the nearest kSkewBlock rows.
// Invariants (validate() checks them): the counts are those of the delayed rows; these lie in the window.
// Cost: amortised O(1) a row; rows without delay cost next to nothing and come in runs, and what comes of
// them does not depend on how the runs are cut. Owned by the SlackTuner. One thread.

#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "streamjoin/base/time.h"
#include "streamjoin/disorder/adwin.h"

namespace streamjoin {

__extension__ typedef __int128 WideDuration;

/// 0 if there is no delay, else d with (d - 1) g < delay <= d g.
uint32_t coarse_delay(Duration delay, Duration granularity);

class StreamStatistics {
 public:
  static constexpr size_t kMaxRows = size_t{1} << 16;
  static constexpr uint32_t kMaxDelay = uint32_t{1} << 16;
  static constexpr uint64_t kSkewBlock = 32;

  /// A row arrived: its coarse delay, and how far its stream was ahead of the slowest.
  void add(uint32_t delay, Duration skew);
  /// Rows without delay arrived, while the slowest of the other streams was at `slowest`.
  void add_in_order(std::span<const Time> times, Time slowest);
  /// The rows since the last call make the rate of an interval.
  void end_interval(Duration length);

  uint64_t rows() const { return window_.width(); }
  /// Rows of each coarse delay up to the largest in the window.
  std::vector<uint64_t> delays() const;
  double mean_skew() const;
  /// Rows per unit of time in the last interval.
  double rate() const { return rate_; }
  /// The largest coarse delay ever seen.
  uint32_t largest_delay() const { return largest_delay_; }

  std::string validate() const;
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  struct Delayed {
    uint64_t row;
    uint32_t delay;
  };
  void count(uint32_t delay);
  void forget();

  Adwin window_{{.max_width = kMaxRows}};
  uint64_t rows_seen_ = 0;
  std::deque<Delayed> delayed_;
  std::vector<uint64_t> counts_;    // of delays above zero; the first entry is not used
  std::deque<WideDuration> skews_;  // block n: rows 32 n .. 32 n + 31
  uint64_t first_block_ = 0;
  double unit_ = 1;  // of the delays that the window sees
  WideDuration skew_sum_ = 0;
  uint32_t largest_delay_ = 0;
  uint64_t interval_rows_ = 0;
  double rate_ = 0;
};

}  // namespace streamjoin
