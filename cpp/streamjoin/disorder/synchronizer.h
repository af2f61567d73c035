// Synchronizer: merges the streams that leave the slack buffers into one, by time.
//
//   stream 0  [ 5 8 9 ]  -+
//   stream 1  [ 6 ]      -+->  smallest time goes, as long as every stream has something that waits
//   stream 2  [ 7 7 ]    -+
//
// A row later than the last released time waits until every stream has a row or punctuation waiting, or has
// promised to be past that time, or is idle; then all of the smallest time go, stream by stream. A row that
// is not later passes at once: waiting would not bring it back in order. So where a stream was waited for,
// the first of its rows at a time takes along those of the others, and its next ones come behind these.
// Invariants (validate() checks them): what waits is later than the last released time. Cost: O(m) a released
// time beside that of SortedBuffer. Owned by the DisorderStage. One thread.

#pragma once

#include <string>
#include <vector>

#include "streamjoin/disorder/sorted_buffer.h"

namespace streamjoin {

/// A row or punctuation that goes to the join.
struct ReleasedRow {
  WaitingRow row;
  uint32_t stream;
  bool behind = false;  // earlier than a row released before it
  friend bool operator==(const ReleasedRow&, const ReleasedRow&) = default;
};

class Synchronizer {
 public:
  static constexpr uint32_t kNobody = 0xffffffff;
  explicit Synchronizer(size_t streams) : streams_(streams), heads_(streams) {}

  /// Takes a row of a stream. What can go is appended to `released`.
  void push(uint32_t stream, const WaitingRow& row, std::vector<ReleasedRow>& released) {
    if (row.time <= clock_) {
      released.push_back({row, stream});
      return;
    }
    streams_[stream].waiting.push(row);
    drain(released);
  }
  /// Where rows of a stream may be put together, the first of them at `time`, instead of one by one: if they
  /// are in order among themselves, and nothing else is done before `settle`. What goes is then the same: as
  /// long as the stream has none of them waiting, nothing of another stream overtakes it.
  bool may_put_together(uint32_t stream, Time time) const {
    return time > clock_ && !streams_[stream].idle && time > streams_[stream].promised;
  }
  /// After rows were put to those that wait of `stream`: appends what can go. Stops early, and says so, once
  /// `most` rows have been released.
  bool settle(uint32_t stream, std::vector<ReleasedRow>& released, size_t most = ~size_t{0}) {
    return drain(released, stream, most);
  }
  /// Whether nothing at `time` or later goes, whatever comes of this stream: another one has to come first.
  bool waits_for_another(uint32_t stream, Time time) const;
  /// A promise that no row of the stream at or before `time` comes any more.
  void promise(uint32_t stream, Time time, std::vector<ReleasedRow>& released);
  /// An idle stream is not waited for; what waits of it still goes in its turn.
  void set_idle(uint32_t stream, bool idle, std::vector<ReleasedRow>& released);
  /// Every stream has ended.
  void release_all(std::vector<ReleasedRow>& released);

  /// Every stream that is not idle has promised to be past this time; kBeginning if one has promised nothing.
  Time promised_by_all() const;
  /// The largest time released from waiting; kBeginning before the first.
  Time clock() const { return clock_; }
  bool is_idle(uint32_t stream) const { return streams_[stream].idle; }
  size_t size(uint32_t stream) const { return streams_[stream].waiting.size(); }
  SortedBuffer& waiting(uint32_t stream) { return streams_[stream].waiting; }
  size_t memory_bytes() const;
  std::string validate() const;
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  struct Stream {
    SortedBuffer waiting;
    Time promised = kBeginning;
    bool idle = false;
  };
  /// Rows of a stream in one run.
  struct Head {
    const WaitingRow* at;
    const WaitingRow* end;
    Time time;    // of the first; kEnd if there is none
    Time blocks;  // where there is none, nothing after this may go yet
  };
  bool drain(std::vector<ReleasedRow>& released, uint32_t newest = kNobody, size_t most = ~size_t{0});
  bool drain_runs(std::vector<ReleasedRow>& released, uint32_t newest, size_t enough);

  std::vector<Stream> streams_;
  Time clock_ = kBeginning;
  std::vector<Head> heads_;  // while rows are drained
};

}  // namespace streamjoin
