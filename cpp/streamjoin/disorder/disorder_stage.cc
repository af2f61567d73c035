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
  bool alone = options_.idle_after.has_value();  // the first row then shows who is idle
  try {
    while (next < times.size()) {
      if (!alone) {
        next += arrive_together(stream, times.subspan(next), indexes.subspan(next));
        if (next == times.size()) break;
        settle();
      }
      alone = false;
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

// Takes rows up to the first that has to go by itself. What a slack buffer would hand on row by row is in
// order as long as no row comes behind the buffer's bound, so it may as well be handed on at the end.
size_t DisorderStage::arrive_together(uint32_t stream, std::span<const Time> times,
                                      std::span<const uint32_t> indexes) {
  SlackBuffer& buffer = buffers_[stream];
  const Duration slack = this->slack();
  if (synchronizer_.is_idle(stream) || times[0] <= buffer.promised()) return 0;
  // Without a slack rows in order need not go through the buffer.
  const bool waits = slack > 0;
  if (!waits && (buffer.size() > 0 || !synchronizer_.may_put_together(stream, times[0]))) return 0;
  const Time end = together_before(stream, slack);
  if (buffer.local_time() >= end) return 0;
  const Time slowest = tuner_ == nullptr ? kEnd : slowest_but(stream);
  SortedBuffer& run_goes_to = waits ? buffer.waiting() : synchronizer_.waiting(stream);
  size_t next = 0;
  while (next < times.size()) {
    Time latest = buffer.local_time();
    const size_t begin = next;
    for (; next < times.size() && times[next] >= latest && times[next] < end; ++next) latest = times[next];
    buffer.arrive(latest);
    if (const size_t run = next - begin; run > 0) {
      if (tuner_ != nullptr) tuner_->arrive_in_order(stream, times.subspan(begin, run), slowest);
      run_goes_to.push_run(times.subspan(begin, run), indexes.subspan(begin, run), next_rank_);
      next_rank_ += run;
    }
    if (next == times.size() || times[next] >= latest || times[next] <= buffer.bound_under(slack)) break;
    const Duration delay = buffer.arrive(times[next]);
    largest_delay_ = std::max(largest_delay_, delay);
    uint32_t coarse = 0;
    if (tuner_ != nullptr)
      coarse = tuner_->arrive(stream, delay, std::max<Duration>(0, subtract_saturating(latest, slowest)));
    buffer.waiting().push({times[next], next_rank_++, indexes[next], coarse});
    ++next;
  }
  if (next == 0) return 0;
  if (waits) {
    release(stream);
  } else {
    unsettled_ = stream;
  }
  return next;
}

// Rows of a stream that is not idle may come together if they are earlier than this: what they set free ends
// no interval, and nobody falls asleep.
Time DisorderStage::together_before(uint32_t stream, Duration slack) const {
  Time end = kEnd;
  if (tuner_ != nullptr && !synchronizer_.waits_for_another(stream, tuner_->interval_end()))
    end = add_saturating(tuner_->interval_end(), slack);
  if (!options_.idle_after || options_.idle_by_wall_clock) return end;
  for (uint32_t other = 0; other < buffers_.size(); ++other) {
    if (other == stream || synchronizer_.is_idle(other)) continue;
    const Time own = buffers_[other].local_time() == kBeginning ? first_time_ : buffers_[other].local_time();
    end = std::min(end, add_saturating(own, *options_.idle_after));
  }
  return end;
}

void DisorderStage::arrive(uint32_t stream, Time time, uint32_t index) {
  SlackBuffer& buffer = buffers_[stream];
  const Duration delay = buffer.arrive(time);
  largest_delay_ = std::max(largest_delay_, delay);
  if (options_.idle_after) update_idle();
  uint32_t coarse = 0;
  if (tuner_ != nullptr) {
    const Duration ahead = subtract_saturating(buffer.local_time(), slowest_but(stream));
    coarse = tuner_->arrive(stream, delay, std::max<Duration>(0, ahead));
  }
  const WaitingRow row{time, next_rank_++, index, coarse};
  const Time bound = buffer.bound_under(slack());
  if (time <= bound && !buffer.is_due(bound)) {
    synchronizer_.push(stream, row, released_);
    return;
  }
  buffer.push(row);
  release(stream);
  settle();
}

// What need not wait for the slack goes on to the synchronizer.
void DisorderStage::release(uint32_t stream) {
  SlackBuffer& buffer = buffers_[stream];
  const Time bound = buffer.bound_under(slack());
  while (buffer.is_due(bound)) {
    if (synchronizer_.may_put_together(stream, buffer.waiting().front().time)) {
      buffer.waiting().move_until(bound, synchronizer_.waiting(stream));
      unsettled_ = stream;
      return;
    }
    synchronizer_.push(stream, buffer.take_first(), released_);
  }
}

void DisorderStage::settle() {
  if (unsettled_ == kNobody) return;
  synchronizer_.settle(std::exchange(unsettled_, kNobody), released_);
}

// Small groups stay in the caches on their way through the join.
void DisorderStage::settle_in_groups(JoinSink& sink) {
  for (bool more = unsettled_ != kNobody; more;) {
    more = synchronizer_.settle(unsettled_, released_, kGroup);
    if (!more) unsettled_ = kNobody;
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
    buffers_[stream].push(punctuation);
    release(stream);
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
  release(stream);
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
    while (buffers_[stream].is_due(synchronizer_.clock()))
      synchronizer_.push(stream, buffers_[stream].take_first(), released_);
    if (buffers_[stream].is_due(kEnd))
      buffers_[stream].waiting().move_until(kEnd, synchronizer_.waiting(stream));
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

void DisorderStage::update_idle() {
  Time latest = kBeginning;
  for (const SlackBuffer& buffer : buffers_) {
    if (buffer.local_time() == kBeginning) continue;
    latest = std::max(latest, buffer.local_time());
    first_time_ = std::min(first_time_, buffer.local_time());
  }
  for (uint32_t stream = 0; stream < buffers_.size(); ++stream) {
    const bool idle = is_idle_now(stream, latest);
    if (idle && !synchronizer_.is_idle(stream)) {
      while (buffers_[stream].is_due(kEnd))
        synchronizer_.push(stream, buffers_[stream].take_first(), released_);
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

}  // namespace streamjoin
