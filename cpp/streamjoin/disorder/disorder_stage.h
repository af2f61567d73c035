// DisorderStage: what stands between the streams and the join when rows may come out of order.
//
//   row -> delay -> SlackBuffer of its stream (one K for all) -> Synchronizer -> JoinSink
//                                   ^                                               |
//                                   +------ SlackTuner (recall policy) <--- results a row
//
// Every call hands what can go to the sink before it returns: in time order, but for rows that are `behind`
// (earlier than one released before). Each arrival is a step of its own, so how rows are cut into calls
// changes neither K nor the order. Under the recall policy a group ends where an interval ends, because the
// next K depends on its results; a new K holds from the next arrival on.
// A stream is idle when the largest time seen is more than `idle_after` past its own (past the first time
// seen, if it has not begun): what waits of it goes on, and nobody waits for it until it has caught up.
// Cost: O(m) a row. Owned by the operator. One thread.

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "streamjoin/disorder/slack_buffer.h"
#include "streamjoin/disorder/slack_tuner.h"
#include "streamjoin/disorder/synchronizer.h"

namespace streamjoin {

enum class SlackPolicy : uint8_t { kFixed, kLargestDelay, kRecall };

struct DisorderOptions {
  size_t streams = 2;
  SlackPolicy policy = SlackPolicy::kFixed;
  Duration slack = 0;  // of the fixed policy
  std::optional<Duration> idle_after = std::nullopt;
  RecallOptions recall = {};  // of the recall policy
};

class JoinSink {
 public:
  virtual ~JoinSink() = default;
  /// Joins the rows in this order. `results` has one entry a row, for the number of results it gave when it
  /// was probed; zero otherwise.
  virtual void join(std::span<const ReleasedRow> rows, std::span<uint64_t> results) = 0;
};

class DisorderStage {
 public:
  explicit DisorderStage(DisorderOptions options);

  /// Rows of a stream in arrival order; the owner knows them by `indexes`.
  void push(uint32_t stream, std::span<const Time> times, std::span<const uint32_t> indexes, JoinSink& sink);
  /// A punctuation waits like a row of its time, behind the rows of that time.
  void punctuate(uint32_t stream, Time time, uint32_t index, JoinSink& sink);
  /// No row of the stream at or before `time` comes any more.
  void advance(uint32_t stream, Time time, JoinSink& sink);
  /// Every stream has ended: all that waits goes.
  void finish(JoinSink& sink);

  /// The largest time released; kBeginning before the first.
  Time clock() const { return clock_; }
  Time local_time(uint32_t stream) const { return buffers_[stream].local_time(); }
  bool is_idle(uint32_t stream) const { return synchronizer_.is_idle(stream); }
  Duration slack() const;
  size_t buffered(uint32_t stream) const { return buffers_[stream].size() + synchronizer_.size(stream); }
  uint64_t behind(uint32_t stream) const { return behind_[stream]; }
  /// Null unless the policy is the recall one.
  const SlackTuner* tuner() const { return tuner_.get(); }
  /// Every row or punctuation of the stream that waits; `visit` may give it another index.
  template <typename Visit>
  void for_each_waiting(uint32_t stream, Visit&& visit) {
    buffers_[stream].waiting().for_each(visit);
    synchronizer_.waiting(stream).for_each(visit);
  }

  size_t memory_bytes() const;
  std::string validate() const;
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  void arrive(uint32_t stream, Time time, uint32_t index);
  void update_idle();
  Duration skew_of(uint32_t stream) const;
  void take_released(JoinSink& sink);
  void join_group(size_t end, JoinSink& sink);

  DisorderOptions options_;
  std::vector<SlackBuffer> buffers_;
  Synchronizer synchronizer_;
  std::unique_ptr<SlackTuner> tuner_;
  std::vector<uint64_t> behind_;
  Time clock_ = kBeginning;
  Time joined_clock_ = kBeginning;  // the clock as the tuner has seen it
  Time first_time_ = kEnd;
  Duration largest_delay_ = 0;
  uint64_t next_rank_ = 0;
  // Of one call: what has been released, how much of it has been looked at, and joined.
  std::vector<ReleasedRow> released_;
  std::vector<uint64_t> results_;
  size_t looked_at_ = 0;
  size_t joined_ = 0;
};

}  // namespace streamjoin
