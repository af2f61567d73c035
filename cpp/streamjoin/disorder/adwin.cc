#include "streamjoin/disorder/adwin.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace streamjoin {
namespace {

/// What two groups add to the sum of squares when they become one.
double between(double count_a, double total_a, double count_b, double total_b) {
  const double difference = total_a / count_a - total_b / count_b;
  return count_a * count_b * difference * difference / (count_a + count_b);
}

}  // namespace

bool Adwin::add(double value) {
  if (value == 0) return add_zeros(1);
  settle();
  levels_[0].push_back({value, 0});
  if (width_ > 0) variance_ += between(width_, total_, 1, value);
  width_ += 1;
  total_ += value;
  merge_full_levels();
  ++ticks_;
  return ticks_ % options_.check_every == 0 && look();
}

bool Adwin::add_zeros(uint64_t count) {
  bool cut = false;
  while (count > 0) {
    const bool all_zero = total_ == 0 && variance_ == 0;  // then no two parts differ
    const uint64_t every = all_zero ? options_.trim_every : options_.check_every;
    const uint64_t now = std::min(count, every - ticks_ % every);
    zeros_ += now;
    ticks_ += now;
    count -= now;
    if (ticks_ % every == 0) cut |= look();
  }
  return cut;
}

// Level by level, what is older first: carried buckets, then zeros. As many pairs become one as would have,
// one zero at a time.
void Adwin::settle() {
  if (zeros_ == 0) return;
  uint64_t zeros = std::exchange(zeros_, 0);
  if (width_ > 0) variance_ += between(width_, total_, static_cast<double>(zeros), 0);
  width_ += static_cast<double>(zeros);
  Level carried;
  for (size_t level = 0; zeros > 0 || !carried.empty(); ++level) {
    if (level == levels_.size()) levels_.emplace_back();
    Level& here = levels_[level];
    here.insert(here.end(), carried.begin(), carried.end());
    carried.clear();
    const uint64_t held = here.size();
    const uint64_t count = held + zeros;
    const uint64_t most = options_.buckets_per_level;
    const uint64_t pairs = count > most ? (count - most + 1) / 2 : 0;
    for (uint64_t i = 0; i < std::min(2 * pairs, held); i += 2)
      carried.push_back(merged(level, here[i], i + 1 < held ? here[i + 1] : Bucket{0, 0}));
    here.erase(here.begin(), here.begin() + static_cast<std::ptrdiff_t>(std::min(2 * pairs, held)));
    here.resize(count - 2 * pairs, Bucket{0, 0});
    zeros = pairs - carried.size();
  }
}

Adwin::Bucket Adwin::merged(size_t level, const Bucket& older, const Bucket& newer) {
  const double size = size_of(level);
  return {older.total + newer.total,
          older.variance + newer.variance + between(size, older.total, size, newer.total)};
}

void Adwin::merge_full_levels() {
  for (size_t level = 0; levels_[level].size() > options_.buckets_per_level; ++level) {
    if (level + 1 == levels_.size()) levels_.emplace_back();
    Level& from = levels_[level];
    levels_[level + 1].push_back(merged(level, from[0], from[1]));
    from.erase(from.begin(), from.begin() + 2);
  }
}

/// Forgets the oldest bucket. The window must not be empty.
void Adwin::drop_oldest() {
  Level& oldest = levels_.back();
  const double size = size_of(levels_.size() - 1);
  const Bucket bucket = oldest.front();
  width_ -= size;
  total_ -= bucket.total;
  variance_ -= bucket.variance;
  if (width_ > 0) variance_ -= between(size, bucket.total, width_, total_);
  if (total_ == 0) variance_ = 0;  // no value is negative, so all are zero: what is left was rounding
  oldest.erase(oldest.begin());
  while (levels_.size() > 1 && levels_.back().empty()) levels_.pop_back();
}

bool Adwin::look() {
  bool cut = false;
  if (total_ != 0 || variance_ != 0) {
    settle();
    if (width_ > options_.grace) {
      while (cut_once()) cut = true;
    }
  }
  if (ticks_ % options_.trim_every != 0 || width() <= options_.max_width) return cut;
  settle();
  while (width() > options_.max_width) drop_oldest();
  return true;
}

// Goes through the splits from the oldest bucket on; at the first whose means differ more than chance allows
// the oldest bucket is dropped.
bool Adwin::cut_once() {
  const double confidence = std::log(2 * std::log(width_) / options_.delta);
  const double spread = 2 * variance() * confidence;
  double older = 0;
  double older_total = 0;
  for (size_t level = levels_.size(); level-- > 0;) {
    const double size = size_of(level);
    for (const Bucket& bucket : levels_[level]) {
      older += size;
      older_total += bucket.total;
      const double newer = width_ - older;
      if (newer < options_.min_part || older < options_.min_part) continue;
      const double difference = older_total / older - (total_ - older_total) / newer;
      const double parts = 1 / (older - options_.min_part + 1) + 1 / (newer - options_.min_part + 1);
      if (std::abs(difference) > std::sqrt(spread * parts) + 2.0 / 3 * confidence * parts) {
        drop_oldest();
        return true;
      }
    }
  }
  return false;
}

double Adwin::variance() const {
  if (width() == 0) return 0;
  double sum = variance_;
  if (zeros_ > 0 && width_ > 0) sum += between(width_, total_, static_cast<double>(zeros_), 0);
  return sum / static_cast<double>(width());
}

void Adwin::rescale(double factor) {
  total_ *= factor;
  variance_ *= factor * factor;
  for (Level& level : levels_) {
    for (Bucket& bucket : level) {
      bucket.total *= factor;
      bucket.variance *= factor * factor;
    }
  }
}

std::string Adwin::validate() const {
  double width = 0;
  for (size_t level = 0; level < levels_.size(); ++level) {
    if (levels_[level].size() > options_.buckets_per_level) return "adwin: a level has too many buckets";
    width += static_cast<double>(levels_[level].size()) * size_of(level);
  }
  if (width != width_) return "adwin: the buckets do not add up to the width";
  return {};
}

void Adwin::save(ArchiveWriter& out) const {
  out.value(ticks_);
  out.value(width_);
  out.value(total_);
  out.value(variance_);
  out.value(zeros_);
  out.value<uint64_t>(levels_.size());
  for (const Level& level : levels_) {
    out.value<uint64_t>(level.size());
    for (const Bucket& bucket : level) {
      out.value(bucket.total);
      out.value(bucket.variance);
    }
  }
}

void Adwin::load(ArchiveReader& in) {
  ticks_ = in.value<uint64_t>();
  width_ = in.value<double>();
  total_ = in.value<double>();
  variance_ = in.value<double>();
  zeros_ = in.value<uint64_t>();
  const uint64_t levels = in.value<uint64_t>();
  if (levels == 0 || levels > 64) throw DamagedArchive("snapshot: an adaptive window of no possible size");
  levels_.assign(levels, {});
  for (Level& level : levels_) {
    const uint64_t buckets = in.value<uint64_t>();
    if (buckets > options_.buckets_per_level)
      throw DamagedArchive("snapshot: an adaptive window's level is too full");
    for (uint64_t i = 0; i < buckets; ++i) {
      const double total = in.value<double>();
      level.push_back({total, in.value<double>()});
    }
  }
}

}  // namespace streamjoin
