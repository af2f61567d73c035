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
  if (rows_seen_ % kSkewBlock == 0) skews_.push_back(0);
  skews_.back() += skew;
  skew_sum_ += skew;
  if (delay > 0) {
    delayed_.push_back({rows_seen_, delay});
    count(delay);
  }
  ++rows_seen_;
  if (window_.add(static_cast<double>(delay) / unit_)) forget();
}

void StreamStatistics::add_in_order(std::span<const Time> times, Time slowest) {
  interval_rows_ += times.size();
  for (size_t i = 0; i < times.size();) {
    if (rows_seen_ % kSkewBlock == 0) skews_.push_back(0);
    const size_t end = i + std::min<size_t>(times.size() - i, kSkewBlock - rows_seen_ % kSkewBlock);
    rows_seen_ += end - i;
    WideDuration sum = 0;
    for (; i < end; ++i) sum += std::max<Duration>(0, subtract_saturating(times[i], slowest));
    skews_.back() += sum;
    skew_sum_ += sum;
  }
  if (window_.add_zeros(times.size())) forget();
}

void StreamStatistics::count(uint32_t delay) {
  if (delay > kMaxDelay) return;
  if (delay >= counts_.size()) counts_.resize(delay + 1);
  ++counts_[delay];
}

/// The window has become smaller.
void StreamStatistics::forget() {
  const uint64_t first = rows_seen_ - window_.width();
  for (; !delayed_.empty() && delayed_.front().row < first; delayed_.pop_front()) {
    if (delayed_.front().delay <= kMaxDelay) --counts_[delayed_.front().delay];
  }
  while (!counts_.empty() && counts_.back() == 0) counts_.pop_back();
  for (; first_block_ < first / kSkewBlock; ++first_block_) {
    skew_sum_ -= skews_.front();
    skews_.pop_front();
  }
}

void StreamStatistics::end_interval(Duration length) {
  rate_ = static_cast<double>(interval_rows_) / static_cast<double>(length);
  interval_rows_ = 0;
}

std::vector<uint64_t> StreamStatistics::delays() const {
  std::vector<uint64_t> delays = counts_;
  if (rows() > 0) {
    if (delays.empty()) delays.push_back(0);
    delays[0] = rows() - delayed_.size();
  }
  return delays;
}

double StreamStatistics::mean_skew() const {
  const uint64_t rows = rows_seen_ - first_block_ * kSkewBlock;
  return rows == 0 ? 0 : static_cast<double>(skew_sum_) / static_cast<double>(rows);
}

std::string StreamStatistics::validate() const {
  if (rows() > rows_seen_) return "stream statistics: the window is wider than rows were seen";
  std::vector<uint64_t> counts;
  for (const Delayed& row : delayed_) {
    if (row.row < rows_seen_ - rows() || row.row >= rows_seen_ || row.delay == 0)
      return "stream statistics: a delayed row does not lie in the window";
    if (row.delay > kMaxDelay) continue;
    if (row.delay >= counts.size()) counts.resize(row.delay + 1);
    ++counts[row.delay];
  }
  if (counts != counts_) return "stream statistics: the counts are not those of the delayed rows";
  if (first_block_ + skews_.size() != (rows_seen_ + kSkewBlock - 1) / kSkewBlock)
    return "stream statistics: the skews are not those of the window";
  WideDuration skew = 0;
  for (const WideDuration block : skews_) skew += block;
  if (skew != skew_sum_) return "stream statistics: the sum of skews is wrong";
  return window_.validate();
}

void StreamStatistics::save(ArchiveWriter& out) const {
  window_.save(out);
  out.value(rows_seen_);
  out.value<uint64_t>(delayed_.size());
  for (const Delayed& row : delayed_) {
    out.value(row.row);
    out.value(row.delay);
  }
  out.value(first_block_);
  out.value<uint64_t>(skews_.size());
  for (const WideDuration block : skews_) {
    out.value(static_cast<int64_t>(block >> 64));
    out.value(static_cast<uint64_t>(block));
  }
  out.value(unit_);
  out.value(largest_delay_);
  out.value(interval_rows_);
  out.value(rate_);
}

void StreamStatistics::load(ArchiveReader& in) {
  *this = {};
  window_.load(in);
  rows_seen_ = in.value<uint64_t>();
  const uint64_t delayed = in.value<uint64_t>();
  for (uint64_t i = 0; i < delayed; ++i) {
    const auto row = in.value<uint64_t>();
    delayed_.push_back({row, in.value<uint32_t>()});
    count(delayed_.back().delay);
  }
  first_block_ = in.value<uint64_t>();
  const uint64_t blocks = in.value<uint64_t>();
  for (uint64_t i = 0; i < blocks; ++i) {
    const auto high = in.value<int64_t>();
    skews_.push_back((static_cast<WideDuration>(high) << 64) | in.value<uint64_t>());
    skew_sum_ += skews_.back();
  }
  unit_ = in.value<double>();
  largest_delay_ = in.value<uint32_t>();
  interval_rows_ = in.value<uint64_t>();
  rate_ = in.value<double>();
  if (rows() > rows_seen_ || (rows_seen_ % kSkewBlock != 0 && skews_.empty()))
    throw DamagedArchive("snapshot: statistics of rows that were never seen");
}

}  // namespace streamjoin
