#include "streamjoin/disorder/stream_statistics.h"

#include <algorithm>
#include <limits>

namespace streamjoin {

uint32_t coarse_delay(Duration delay, Duration granularity) {
  if (delay <= 0) return 0;
  const Duration steps = (delay - 1) / granularity + 1;
  return static_cast<uint32_t>(std::min<Duration>(steps, std::numeric_limits<uint32_t>::max()));
}

void StreamStatistics::add(uint32_t delay, Duration skew) {
  ++interval_rows_;
  if (delay > largest_delay_) {
    largest_delay_ = delay;
    double unit = unit_;
    while (unit < static_cast<double>(delay)) unit *= 2;
    if (unit != unit_) window_.rescale(unit_ / unit);
    unit_ = unit;
  }
  ring_.push_back({delay, skew});
  skew_sum_ += skew;
  if (delay <= kMaxDelay) {
    if (delay >= counts_.size()) counts_.resize(delay + 1);
    ++counts_[delay];
  }
  window_.add(static_cast<double>(delay) / unit_);
  while (window_.width() > kMaxRows) window_.drop_oldest();
  while (ring_.size() > window_.width()) forget_oldest();
}

void StreamStatistics::forget_oldest() {
  const Seen oldest = ring_.front();
  ring_.pop_front();
  skew_sum_ -= oldest.skew;
  if (oldest.delay <= kMaxDelay) --counts_[oldest.delay];
  while (!counts_.empty() && counts_.back() == 0) counts_.pop_back();
}

void StreamStatistics::end_interval(Duration length) {
  rate_ = static_cast<double>(interval_rows_) / static_cast<double>(length);
  interval_rows_ = 0;
}

std::vector<uint64_t> StreamStatistics::delays() const {
  return counts_;
}

double StreamStatistics::mean_skew() const {
  return ring_.empty() ? 0 : static_cast<double>(skew_sum_) / static_cast<double>(ring_.size());
}

std::string StreamStatistics::validate() const {
  if (ring_.size() != window_.width()) return "stream statistics: the ring is not as wide as the window";
  std::vector<uint64_t> counts;
  WideDuration skew = 0;
  for (const Seen& seen : ring_) {
    skew += seen.skew;
    if (seen.delay > kMaxDelay) continue;
    if (seen.delay >= counts.size()) counts.resize(seen.delay + 1);
    ++counts[seen.delay];
  }
  if (counts != counts_) return "stream statistics: the counts are not those of the ring";
  if (skew != skew_sum_) return "stream statistics: the sum of skews is wrong";
  return window_.validate();
}

void StreamStatistics::save(ArchiveWriter& out) const {
  window_.save(out);
  out.value<uint64_t>(ring_.size());
  for (const Seen& seen : ring_) {
    out.value(seen.delay);
    out.value(seen.skew);
  }
  out.value(unit_);
  out.value(largest_delay_);
  out.value(interval_rows_);
  out.value(rate_);
}

void StreamStatistics::load(ArchiveReader& in) {
  *this = {};
  window_.load(in);
  const uint64_t rows = in.value<uint64_t>();
  for (uint64_t i = 0; i < rows; ++i) {
    const auto delay = in.value<uint32_t>();
    const auto skew = in.value<Duration>();
    ring_.push_back({delay, skew});
    skew_sum_ += skew;
    if (delay > kMaxDelay) continue;
    if (delay >= counts_.size()) counts_.resize(delay + 1);
    ++counts_[delay];
  }
  unit_ = in.value<double>();
  largest_delay_ = in.value<uint32_t>();
  interval_rows_ = in.value<uint64_t>();
  rate_ = in.value<double>();
}

}  // namespace streamjoin
