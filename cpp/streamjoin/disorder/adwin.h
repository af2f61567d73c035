// Adwin: an adaptive window over a sequence of numbers (Bifet and Gavalda, ADWIN2).
//
//   level 0  [1][1][1]       newest; at most 5 buckets a level, then the two oldest become one of twice the
//   size level 1  [2][2][2][2] level 2  [4][4]          oldest
//
// Zeros, which most delays are, wait in a count of their own until they meet something else: many of them are
// put into the buckets together, and a window of nothing but zeros need not be looked at. What comes of it
// does not depend on how many were added in one call. The window is cut, oldest bucket first, as long as some
// split of it has two halves whose means differ more than chance allows at confidence `delta`. What is kept
// has, in that sense, one mean. Values should lie in 0 .. 1; `rescale` changes the unit of all that is held.
// Cost: amortised O(1) a value, and a look at all O(log width) buckets every `check_every` values; of n zeros
// O(log n) each time. One thread.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamjoin/base/archive.h"

namespace streamjoin {

struct AdwinOptions {
  double delta = 0.002;
  uint32_t check_every = 32;
  uint32_t buckets_per_level = 5;
  double min_part = 5;  // values in either half of a split
  double grace = 10;    // values before the first look
  /// Looked at every `trim_every` values: a wider window loses its oldest buckets.
  uint64_t max_width = ~uint64_t{0};
  uint32_t trim_every = 1024;  // a multiple of check_every
};

class Adwin {
 public:
  explicit Adwin(AdwinOptions options = {}) : options_(options), levels_(1) {}

  /// Adds a value; true if the window was cut.
  bool add(double value);
  /// Adds `count` zeros; true if the window was cut.
  bool add_zeros(uint64_t count);
  /// Multiplies every value held by `factor`.
  void rescale(double factor);

  uint64_t width() const { return static_cast<uint64_t>(width_) + zeros_; }
  double total() const { return total_; }
  double mean() const { return width() > 0 ? total_ / static_cast<double>(width()) : 0; }
  double variance() const;

  std::string validate() const;
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  struct Bucket {
    double total;
    double variance;  // sum of squared distances from the bucket's mean
  };
  using Level = std::vector<Bucket>;  // oldest first

  static double size_of(size_t level) { return static_cast<double>(uint64_t{1} << level); }
  static Bucket merged(size_t level, const Bucket& older, const Bucket& newer);
  void merge_full_levels();
  void drop_oldest();
  void settle();
  bool look();
  bool cut_once();

  AdwinOptions options_;
  std::vector<Level> levels_;
  double width_ = 0;  // of the buckets
  double total_ = 0;
  double variance_ = 0;
  uint64_t zeros_ = 0;  // newest of all, and not in the buckets yet
  uint64_t ticks_ = 0;
};

}  // namespace streamjoin
