// Adwin: an adaptive window over a sequence of numbers (Bifet and Gavalda, ADWIN2).
//
//   level 0  [1][1][1]       newest; at most 5 buckets a level, then the two oldest become one of twice the
//   size level 1  [2][2][2][2] level 2  [4][4]          oldest
//
// The window is cut, oldest bucket first, as long as some split of it has two halves whose means differ more
// than chance allows at confidence `delta`. What is kept has, in that sense, one mean.
// Values should lie in 0 .. 1; `rescale` changes the unit of all that is held.
// Cost: amortised O(1) a value, and a look at all O(log width) buckets every `check_every` values. One
// thread.

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
};

class Adwin {
 public:
  explicit Adwin(AdwinOptions options = {}) : options_(options), levels_(1) {}

  /// Adds a value; true if the window was cut.
  bool add(double value);
  /// Multiplies every value held by `factor`.
  void rescale(double factor);
  /// Forgets the oldest bucket. The window must not be empty.
  void drop_oldest();

  uint64_t width() const { return static_cast<uint64_t>(width_); }
  double mean() const { return width_ > 0 ? total_ / width_ : 0; }
  double variance() const { return width_ > 0 ? variance_ / width_ : 0; }

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
  void merge_full_levels();
  bool cut();
  bool cut_once();
  bool differ(double older, double newer, double difference) const;

  AdwinOptions options_;
  std::vector<Level> levels_;
  double width_ = 0;
  double total_ = 0;
  double variance_ = 0;
  uint64_t ticks_ = 0;
};

}  // namespace streamjoin
