// DisorderStage: what stands between the streams and the join when rows may come out of order.
//
//   row -> delay -> SlackBuffer of its stream (one K for all) -> Synchronizer -> JoinSink
//                                   ^                                               |
//                                   +------ SlackTuner (recall policy) <--- results a row
//
// Rows arrive together as far as nothing depends on when each of them comes: as long as they come before the
// slack is over, and neither K nor who is idle can change. Every other row goes by itself. Every call hands
// what can go to the sink before it returns: in time order, but for rows that are `behind` (earlier than one
// released before). Each arrival is a step of its own, so how rows are cut into calls changes neither K nor
// the order. Under the recall policy a group ends where an interval ends, because the next K depends on its
// results; a new K holds from the next arrival on. A stream is idle when the largest time seen is more than
// `idle_after` past its own (past the first time seen, if it has not begun): what waits of it goes on, and
// nobody waits for it until it has caught up. By the wall clock it is idle when it has brought nothing for
// `idle_after`, as far as `look_at_clock` told.
//
// What the sink throws leaves the call unfinished and nothing lost: the next call begins with `resume`, which
// hands the sink the same group again and goes on from there.
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
  bool idle_by_wall_clock = false;
  RecallOptions recall = {};  // of the recall policy
};

class JoinSink {
 public:
  virtual ~JoinSink() = default;
  /// Joins the rows in this order. `results` has one entry a row, for the number of results that it
  /// completed; none at all if nobody wants to know. After a throw the same group comes again.
  virtual void join(std::span<const ReleasedRow> rows, std::span<uint64_t> results) = 0;
};

class DisorderStage {
 public:
  static constexpr uint32_t kNobody = Synchronizer::kNobody;
  static constexpr size_t kGroup = 4096;  // rows that go to the sink together where there are more
  explicit DisorderStage(DisorderOptions options);

  /// Goes on with a call that the sink has broken off. Every other call must find nothing left to do here.
  void resume(JoinSink& sink);
  bool is_unfinished() const { return joined_ < released_.size() || left_at_ < left_over_.size(); }

  /// Rows of a stream in arrival order; the owner knows them by `indexes`.
  void push(uint32_t stream, std::span<const Time> times, std::span<const uint32_t> indexes, JoinSink& sink);
  /// A punctuation waits like a row of its time, behind the rows of that time.
  void punctuate(uint32_t stream, Time time, uint32_t index, JoinSink& sink);
  /// No row of the stream at or before `time` comes any more.
  void advance(uint32_t stream, Time time, JoinSink& sink);
  /// Every stream has ended: all that waits goes.
  void finish(JoinSink& sink);
  /// The wall clock, in the unit of `idle_after`; only differences count.
  void look_at_clock(Time now, JoinSink& sink);

  /// A stage with the same rows and clocks, whose slack no longer follows results: for asking what a call
  /// would release.
  DisorderStage rehearsal() const;

  /// No row in order comes before this time any more: the largest time released, or just past what all have
  /// promised; kBeginning before the first.
  Time clock() const { return clock_; }
  Time local_time(uint32_t stream) const { return buffers_[stream].local_time(); }
  bool is_idle(uint32_t stream) const { return synchronizer_.is_idle(stream); }
  size_t streams() const { return buffers_.size(); }
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
  struct Arrival {
    uint32_t stream;
    Time time;
    uint32_t index;
  };
  size_t arrive_together(uint32_t stream, std::span<const Time> times, std::span<const uint32_t> indexes);
  Time together_before(uint32_t stream, Duration slack) const;
  void arrive(uint32_t stream, Time time, uint32_t index);
  void release(uint32_t stream);
  void settle();
  void raise_clock_by_promises();
  void update_idle();
  bool is_idle_now(uint32_t stream, Time latest) const;
  Time slowest_but(uint32_t stream) const;
  void settle_in_groups(JoinSink& sink);
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
  Time now_ = kBeginning;
  std::vector<Time> last_seen_;  // by the wall clock; kBeginning: not looked at yet
  // Of one call: what has been released, how much of it has been looked at, and joined.
  std::vector<ReleasedRow> released_;
  std::vector<uint64_t> results_;
  size_t looked_at_ = 0;
  size_t joined_ = 0;
  bool group_open_ = false;         // the sink has been given a group and has not finished it
  uint32_t unsettled_ = kNobody;    // the stream whose rows were put together in the synchronizer
  std::vector<Arrival> left_over_;  // of a call that was broken off
  size_t left_at_ = 0;
};

}  // namespace streamjoin
