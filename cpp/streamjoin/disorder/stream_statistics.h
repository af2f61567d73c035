// StreamStatistics: what is known of one stream's recent disorder.
//
//   ring    [ .. (delay, skew) .. newest ]   as many rows as the adaptive window holds
//   counts  rows of the ring by coarse delay: 0 for none, else d with (d - 1) g < delay <= d g
//
// The adaptive window (Adwin) watches the delays and shrinks when they change. It sees them as shares of a
// power of two of g above the largest delay so far, so that they lie in 0 .. 1. The ring is bounded:
// kMaxRows rows, and kMaxDelay coarse delays; a longer delay is counted in `rows` alone.
// Invariants (validate() checks them): the counts are those of the ring; the ring is as wide as the window.
// Cost: amortised O(1) a row. Owned by the SlackTuner. One thread.

#pragma once

#include <cstdint>
#include <deque>
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

  /// A row arrived: its coarse delay, and how far its stream was ahead of the slowest.
  void add(uint32_t delay, Duration skew);
  /// Counts a row towards the rate of this interval; `end_interval` closes it.
  void end_interval(Duration length);

  uint64_t rows() const { return ring_.size(); }
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
  struct Seen {
    uint32_t delay;
    Duration skew;
  };
  void forget_oldest();

  Adwin window_;
  std::deque<Seen> ring_;
  std::vector<uint64_t> counts_;
  double unit_ = 1;  // of the delays that the window sees
  WideDuration skew_sum_ = 0;
  uint32_t largest_delay_ = 0;
  uint64_t interval_rows_ = 0;
  double rate_ = 0;
};

}  // namespace streamjoin
