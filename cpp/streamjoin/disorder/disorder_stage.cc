#include "streamjoin/disorder/disorder_stage.h"

#include <algorithm>
#include <utility>

#include "streamjoin/base/check.h"

namespace streamjoin {

DisorderStage::DisorderStage(DisorderOptions options)
    : options_(std::move(options)),
      buffers_(options_.streams),
      synchronizer_(options_.streams),
      behind_(options_.streams),
      last_seen_(options_.streams, kBeginning) {
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

void DisorderStage::resume(JoinSink& sink) {
  take_released(sink);
  settle();
  take_released(sink);
  while (left_at_ < left_over_.size()) {
    const Arrival arrival = left_over_[left_at_++];
    arrive(arrival.stream, arrival.time, arrival.index);
    settle();
    take_released(sink);
  }
  left_over_.clear();
  left_at_ = 0;
  join_group(released_.size(), sink);
}

void DisorderStage::push(uint32_t stream, std::span<const Time> times, std::span<const uint32_t> indexes,
                         JoinSink& sink) {
  SJ_CHECK(!is_unfinished(), "a call that was broken off must be resumed first");
  last_seen_[stream] = now_;
  size_t next = 0;
  try {
    while (next < times.size()) {
      if (const size_t run = run_in_order(stream, times.subspan(next)); run > 0) {
        arrive_in_order(stream, times.subspan(next, run), indexes.subspan(next, run));
        next += run;
        continue;
      }
      const size_t i = next++;
      arrive(stream, times[i], indexes[i]);
      if (tuner_ != nullptr && released_.size() > looked_at_) take_released(sink);
    }
    settle_in_groups(sink);
  } catch (...) {
    for (size_t i = next; i < times.size(); ++i) left_over_.push_back({stream, times[i], indexes[i]});
    throw;
  }
}

// How many of the rows have no delay, need not wait in the slack buffer, and may be held back by the
// synchronizer together: because another stream has to come first whatever they are, or because they only
// grow and no interval ends among them.
size_t DisorderStage::run_in_order(uint32_t stream, std::span<const Time> times) {
  if (options_.idle_after || slack() != 0 || buffers_[stream].size() > 0) return 0;
  if (times[0] < buffers_[stream].local_time() || !synchronizer_.may_hold_back(stream, times[0])) return 0;
  size_t run = 1;
  if (held_back_stream_ == kNobody && synchronizer_.waits_for_another(stream, times[0])) {
    while (run < times.size() && times[run] >= times[run - 1]) ++run;
    return run;
  }
  const Time end = tuner_ == nullptr ? kEnd : tuner_->interval_end();
  if (times[0] >= end || (held_back_stream_ != kNobody && times[0] <= held_back_)) return 0;
  while (run < times.size() && times[run] > times[run - 1] && times[run] < end) ++run;
  held_back_stream_ = stream;
  held_back_ = times[run - 1];
  return run;
}

void DisorderStage::arrive_in_order(uint32_t stream, std::span<const Time> times,
                                    std::span<const uint32_t> indexes) {
  buffers_[stream].arrive(times.back());
  if (tuner_ != nullptr) tuner_->arrive_in_order(stream, times, slowest_but(stream));
  synchronizer_.hold_back(stream, times, indexes, next_rank_);
  next_rank_ += times.size();
}

void DisorderStage::arrive(uint32_t stream, Time time, uint32_t index) {
  const Duration delay = buffers_[stream].arrive(time);
  largest_delay_ = std::max(largest_delay_, delay);
  if (options_.idle_after) update_idle();
  uint32_t coarse = 0;
  if (tuner_ != nullptr) {
    const Duration ahead = subtract_saturating(buffers_[stream].local_time(), slowest_but(stream));
    coarse = tuner_->arrive(stream, delay, std::max<Duration>(0, ahead));
  }
  buffers_[stream].push({time, next_rank_++, index, coarse}, slack(),
                        [&](const WaitingRow& row) { to_synchronizer(stream, row); });
}

// A run of rows that only grows is handed over as a whole: the synchronizer need not look at every stream for
// each of them. Where an interval may end, rows go one by one, for the next K depends on it.
void DisorderStage::to_synchronizer(uint32_t stream, const WaitingRow& row) {
  const bool grows = held_back_stream_ == kNobody || (held_back_stream_ == stream && row.time > held_back_);
  const bool within = tuner_ == nullptr || !tuner_->is_due(row.time);
  if (grows && within && !row.is_punctuation() && synchronizer_.may_hold_back(stream, row.time)) {
    synchronizer_.hold_back(stream, row);
    held_back_stream_ = stream;
    held_back_ = row.time;
    return;
  }
  settle();
  synchronizer_.push(stream, row, released_);
}

void DisorderStage::settle() {
  if (held_back_stream_ == kNobody) return;
  held_back_stream_ = kNobody;
  synchronizer_.settle(released_);
}

// Small groups stay in the caches on their way through the join.
void DisorderStage::settle_in_groups(JoinSink& sink) {
  for (bool more = held_back_stream_ != kNobody; more;) {
    more = synchronizer_.settle(released_, kGroup);
    if (!more) held_back_stream_ = kNobody;
    take_released(sink);
    if (more) join_group(released_.size(), sink);
  }
  take_released(sink);
  join_group(released_.size(), sink);
}

void DisorderStage::punctuate(uint32_t stream, Time time, uint32_t index, JoinSink& sink) {
  SJ_CHECK(!is_unfinished(), "a call that was broken off must be resumed first");
  last_seen_[stream] = now_;
  const WaitingRow punctuation{time, WaitingRow::kPunctuation | next_rank_++, index, 0};
  // Behind the clock it is still true. If nothing of its stream waits it goes at once; else it may speak of
  // what waits there since the slack grew, and must not overtake it.
  if (time < clock_ && buffers_[stream].size() == 0) {
    released_.push_back({punctuation, stream});
  } else {
    buffers_[stream].push(punctuation, slack(), [&](const WaitingRow& row) { to_synchronizer(stream, row); });
  }
  settle();
  take_released(sink);
  join_group(released_.size(), sink);
}

void DisorderStage::advance(uint32_t stream, Time time, JoinSink& sink) {
  SJ_CHECK(!is_unfinished(), "a call that was broken off must be resumed first");
  last_seen_[stream] = now_;
  buffers_[stream].promise(time);
  if (options_.idle_after) update_idle();
  buffers_[stream].release_due(slack(), [&](const WaitingRow& row) { to_synchronizer(stream, row); });
  settle();
  synchronizer_.promise(stream, time, released_);
  take_released(sink);
  join_group(released_.size(), sink);
  raise_clock_by_promises();
}

void DisorderStage::finish(JoinSink& sink) {
  SJ_CHECK(!is_unfinished(), "a call that was broken off must be resumed first");
  // Nothing goes before every buffer is empty, or a stream would overtake what another has still to bring.
  for (uint32_t stream = 0; stream < buffers_.size(); ++stream) {
    buffers_[stream].release_all([&](const WaitingRow& row) {
      if (row.time > synchronizer_.clock()) {
        synchronizer_.hold_back(stream, row);
      } else {
        synchronizer_.push(stream, row, released_);
      }
    });
  }
  synchronizer_.release_all(released_);
  take_released(sink);
  join_group(released_.size(), sink);
}

void DisorderStage::look_at_clock(Time now, JoinSink& sink) {
  SJ_CHECK(!is_unfinished(), "a call that was broken off must be resumed first");
  now_ = std::max(now_, now);
  for (Time& seen : last_seen_) {
    if (seen == kBeginning) seen = now_;
  }
  update_idle();
  take_released(sink);
  join_group(released_.size(), sink);
  raise_clock_by_promises();
}

// A heartbeat of every stream is as good as a row behind it.
void DisorderStage::raise_clock_by_promises() {
  const Time promised = synchronizer_.promised_by_all();
  if (promised != kBeginning) clock_ = std::max(clock_, add_saturating(promised, 1));
}

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

void DisorderStage::update_idle() {
  settle();
  Time latest = kBeginning;
  for (const SlackBuffer& buffer : buffers_) {
    if (buffer.local_time() == kBeginning) continue;
    latest = std::max(latest, buffer.local_time());
    first_time_ = std::min(first_time_, buffer.local_time());
  }
  for (uint32_t stream = 0; stream < buffers_.size(); ++stream) {
    const bool idle = is_idle_now(stream, latest);
    if (idle && !synchronizer_.is_idle(stream)) {
      buffers_[stream].release_all(
          [&](const WaitingRow& row) { synchronizer_.push(stream, row, released_); });
    }
    synchronizer_.set_idle(stream, idle, released_);
  }
}

bool DisorderStage::is_idle_now(uint32_t stream, Time latest) const {
  if (options_.idle_by_wall_clock)
    return subtract_saturating(now_, last_seen_[stream]) > *options_.idle_after;
  const bool begun = buffers_[stream].local_time() != kBeginning;
  const Time own = begun ? buffers_[stream].local_time() : first_time_;
  return latest != kBeginning && subtract_saturating(latest, own) > *options_.idle_after;
}

/// The local time of the slowest other stream that has begun and is not idle; kEnd if there is none.
Time DisorderStage::slowest_but(uint32_t stream) const {
  Time slowest = kEnd;
  for (uint32_t other = 0; other < buffers_.size(); ++other) {
    const Time time = buffers_[other].local_time();
    if (other != stream && time != kBeginning && !synchronizer_.is_idle(other))
      slowest = std::min(slowest, time);
  }
  return slowest;
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
    if (!std::exchange(group_open_, true)) results_.assign(tuner_ != nullptr ? rows.size() : 0, 0);
    sink.join(rows, results_);
    group_open_ = false;
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
