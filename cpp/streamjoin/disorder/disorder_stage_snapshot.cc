// What a DisorderStage holds: copied, measured, checked, saved.

#include <utility>

#include "streamjoin/disorder/disorder_stage.h"

namespace streamjoin {

DisorderStage DisorderStage::rehearsal() const {
  DisorderOptions options = options_;
  if (options.policy == SlackPolicy::kRecall) options.policy = SlackPolicy::kFixed;
  options.slack = slack();
  DisorderStage copy(std::move(options));
  copy.buffers_ = buffers_;
  copy.synchronizer_ = synchronizer_;
  copy.clock_ = clock_;
  copy.first_time_ = first_time_;
  copy.largest_delay_ = largest_delay_;
  copy.next_rank_ = next_rank_;
  copy.now_ = now_;
  copy.last_seen_ = last_seen_;
  return copy;
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
  // The wall clock of another process says nothing here: a restored stage starts to look anew.
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
