#include "streamjoin/disorder/disorder_stage.h"

#include <algorithm>

namespace streamjoin {

DisorderStage::DisorderStage(DisorderOptions options)
    : options_(std::move(options)),
      buffers_(options_.streams),
      synchronizer_(options_.streams),
      behind_(options_.streams) {
  if (options_.policy == SlackPolicy::kRecall) tuner_ = std::make_unique<SlackTuner>(options_.recall);
}

Duration DisorderStage::slack() const {
  switch (options_.policy) {
    case SlackPolicy::kFixed:
      return options_.slack;
    case SlackPolicy::kLargestDelay:
      return largest_delay_;
    case SlackPolicy::kRecall:
      return tuner_->slack();
  }
  return 0;
}

void DisorderStage::push(uint32_t stream, std::span<const Time> times, std::span<const uint32_t> indexes,
                         JoinSink& sink) {
  for (size_t i = 0; i < times.size(); ++i) {
    arrive(stream, times[i], indexes[i]);
    if (tuner_ != nullptr) take_released(sink);
  }
  take_released(sink);
  join_group(released_.size(), sink);
}

void DisorderStage::arrive(uint32_t stream, Time time, uint32_t index) {
  const Duration delay = buffers_[stream].arrive(time);
  largest_delay_ = std::max(largest_delay_, delay);
  if (options_.idle_after) update_idle();
  const uint32_t coarse = tuner_ ? tuner_->arrive(stream, delay, skew_of(stream)) : 0;
  buffers_[stream].push({time, next_rank_++, index, coarse}, slack(),
                        [&](const WaitingRow& row) { synchronizer_.push(stream, row, released_); });
}

void DisorderStage::punctuate(uint32_t stream, Time time, uint32_t index, JoinSink& sink) {
  const WaitingRow punctuation{time, WaitingRow::kPunctuation | next_rank_++, index, 0};
  if (time < clock_) {  // it is still true, and nothing it speaks of is waited for
    released_.push_back({punctuation, stream});
  } else {
    buffers_[stream].push(punctuation, slack(),
                          [&](const WaitingRow& row) { synchronizer_.push(stream, row, released_); });
  }
  take_released(sink);
  join_group(released_.size(), sink);
}

void DisorderStage::advance(uint32_t stream, Time time, JoinSink& sink) {
  buffers_[stream].promise(time);
  if (options_.idle_after) update_idle();
  buffers_[stream].release_due(slack(),
                               [&](const WaitingRow& row) { synchronizer_.push(stream, row, released_); });
  synchronizer_.promise(stream, time, released_);
  take_released(sink);
  join_group(released_.size(), sink);
}

void DisorderStage::finish(JoinSink& sink) {
  for (uint32_t stream = 0; stream < buffers_.size(); ++stream) {
    buffers_[stream].release_all([&](const WaitingRow& row) { synchronizer_.push(stream, row, released_); });
  }
  synchronizer_.release_all(released_);
  take_released(sink);
  join_group(released_.size(), sink);
}

void DisorderStage::update_idle() {
  Time latest = kBeginning;
  for (const SlackBuffer& buffer : buffers_) {
    if (buffer.local_time() == kBeginning) continue;
    latest = std::max(latest, buffer.local_time());
    first_time_ = std::min(first_time_, buffer.local_time());
  }
  for (uint32_t stream = 0; stream < buffers_.size(); ++stream) {
    const bool begun = buffers_[stream].local_time() != kBeginning;
    const Time own = begun ? buffers_[stream].local_time() : first_time_;
    const bool idle = subtract_saturating(latest, own) > *options_.idle_after;
    if (idle && !synchronizer_.is_idle(stream)) {
      buffers_[stream].release_all(
          [&](const WaitingRow& row) { synchronizer_.push(stream, row, released_); });
    }
    synchronizer_.set_idle(stream, idle, released_);
  }
}

Duration DisorderStage::skew_of(uint32_t stream) const {
  Time slowest = buffers_[stream].local_time();
  for (uint32_t other = 0; other < buffers_.size(); ++other) {
    const Time time = buffers_[other].local_time();
    if (time != kBeginning && !synchronizer_.is_idle(other)) slowest = std::min(slowest, time);
  }
  return subtract_saturating(buffers_[stream].local_time(), slowest);
}

void DisorderStage::take_released(JoinSink& sink) {
  for (; looked_at_ < released_.size(); ++looked_at_) {
    ReleasedRow& released = released_[looked_at_];
    if (released.row.is_punctuation()) continue;
    if (released.row.time < clock_) {
      released.behind = true;
      ++behind_[released.stream];
      continue;
    }
    if (tuner_ != nullptr && tuner_->is_due(released.row.time)) {
      const Time time = released.row.time;
      join_group(looked_at_, sink);
      tuner_->adapt(time);
    }
    clock_ = released_[looked_at_].row.time;
  }
}

// Joins what was released up to `end`. A whole group leaves the list; part of one stays until the call ends.
void DisorderStage::join_group(size_t end, JoinSink& sink) {
  if (joined_ < end) {
    const std::span<const ReleasedRow> rows(released_.data() + joined_, end - joined_);
    results_.assign(rows.size(), 0);
    sink.join(rows, results_);
    joined_ = end;
    for (size_t i = 0; tuner_ != nullptr && i < rows.size(); ++i) {
      const WaitingRow& row = rows[i].row;
      if (row.is_punctuation()) continue;
      if (!rows[i].behind) {
        joined_clock_ = row.time;
        tuner_->add_in_order(rows[i].stream, row.time, row.delay, results_[i]);
      } else {
        tuner_->add_out_of_order(rows[i].stream, joined_clock_, row.time, row.delay);
      }
    }
  }
  if (joined_ == released_.size()) {
    released_.clear();
    looked_at_ = joined_ = 0;
  }
}

size_t DisorderStage::memory_bytes() const {
  size_t bytes = synchronizer_.memory_bytes();
  for (const SlackBuffer& buffer : buffers_) bytes += buffer.memory_bytes();
  return bytes;
}

std::string DisorderStage::validate() const {
  for (const SlackBuffer& buffer : buffers_) {
    if (std::string broken = buffer.validate(); !broken.empty()) return broken;
  }
  if (!released_.empty()) return "disorder stage: a call has left rows behind that were released";
  if (std::string broken = synchronizer_.validate(); !broken.empty()) return broken;
  return tuner_ ? tuner_->validate() : std::string();
}

void DisorderStage::save(ArchiveWriter& out) const {
  for (const SlackBuffer& buffer : buffers_) buffer.save(out);
  synchronizer_.save(out);
  out.array(behind_);
  out.value(clock_);
  out.value(joined_clock_);
  out.value(first_time_);
  out.value(largest_delay_);
  out.value(next_rank_);
  if (tuner_ != nullptr) tuner_->save(out);
}

void DisorderStage::load(ArchiveReader& in) {
  for (SlackBuffer& buffer : buffers_) buffer.load(in);
  synchronizer_.load(in);
  behind_ = in.array<uint64_t>();
  if (behind_.size() != buffers_.size()) throw DamagedArchive("snapshot: of another number of streams");
  clock_ = in.value<Time>();
  joined_clock_ = in.value<Time>();
  first_time_ = in.value<Time>();
  largest_delay_ = in.value<Duration>();
  next_rank_ = in.value<uint64_t>();
  if (tuner_ != nullptr) tuner_->load(in);
}

}  // namespace streamjoin
