#include "streamjoin/disorder/adwin.h"

#include <cmath>

namespace streamjoin {
namespace {

/// What two groups add to the sum of squares when they become one.
double between(double count_a, double total_a, double count_b, double total_b) {
  const double difference = total_a / count_a - total_b / count_b;
  return count_a * count_b * difference * difference / (count_a + count_b);
}

}  // namespace

bool Adwin::add(double value) {
  levels_[0].push_back({value, 0});
  if (width_ > 0) variance_ += between(width_, total_, 1, value);
  width_ += 1;
  total_ += value;
  merge_full_levels();
  ++ticks_;
  return ticks_ % options_.check_every == 0 && width_ > options_.grace && cut();
}

void Adwin::merge_full_levels() {
  for (size_t level = 0; levels_[level].size() > options_.buckets_per_level; ++level) {
    if (level + 1 == levels_.size()) levels_.emplace_back();
    Level& from = levels_[level];
    const double size = size_of(level);
    const Bucket merged{from[0].total + from[1].total, from[0].variance + from[1].variance +
                                                           between(size, from[0].total, size, from[1].total)};
    levels_[level + 1].push_back(merged);
    from.erase(from.begin(), from.begin() + 2);
  }
}

void Adwin::drop_oldest() {
  Level& oldest = levels_.back();
  const double size = size_of(levels_.size() - 1);
  const Bucket bucket = oldest.front();
  width_ -= size;
  total_ -= bucket.total;
  variance_ -= bucket.variance;
  if (width_ > 0) variance_ -= between(size, bucket.total, width_, total_);
  oldest.erase(oldest.begin());
  while (levels_.size() > 1 && levels_.back().empty()) levels_.pop_back();
}

bool Adwin::cut() {
  bool any = false;
  while (cut_once()) any = true;
  return any;
}

// Goes through the splits from the oldest bucket on; at the first that differs the oldest bucket is dropped.
bool Adwin::cut_once() {
  double older = 0;
  double older_total = 0;
  for (size_t level = levels_.size(); level-- > 0;) {
    const double size = size_of(level);
    for (size_t i = 0; i < levels_[level].size(); ++i) {
      older += size;
      older_total += levels_[level][i].total;
      const double newer = width_ - older;
      if (newer < options_.min_part || older < options_.min_part) continue;
      if (differ(older, newer, older_total / older - (total_ - older_total) / newer)) {
        drop_oldest();
        return true;
      }
    }
  }
  return false;
}

bool Adwin::differ(double older, double newer, double difference) const {
  const double confidence = std::log(2 * std::log(width_) / options_.delta);
  const double mean_size = 1 / (older - options_.min_part + 1) + 1 / (newer - options_.min_part + 1);
  const double bound = std::sqrt(2 * mean_size * variance() * confidence) + 2.0 / 3 * confidence * mean_size;
  return std::abs(difference) > bound;
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
  const uint64_t levels = in.value<uint64_t>();
  if (levels == 0 || levels > 64) throw DamagedArchive("snapshot: an adaptive window of no possible size");
  levels_.assign(levels, {});
  for (Level& level : levels_) {
    const uint64_t buckets = in.value<uint64_t>();
    for (uint64_t i = 0; i < buckets; ++i) {
      const double total = in.value<double>();
      level.push_back({total, in.value<double>()});
    }
  }
}

}  // namespace streamjoin
