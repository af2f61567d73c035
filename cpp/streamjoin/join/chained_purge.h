// ChainedPurge: may a row of an m-way join go, because no row to come can complete a result with it?
//
//   row t of A     B promised t's value:      C promised the values of b1 and b2:
//      (t)     ->   (t, b1)  (t, b2)      ->   (t, b1, c4)                          nothing is open: t may go
//                                               (t, b2)  no c is there, none will come
//
// The rule. A tuple of stored rows that join is closed for a stream s if no row of s to come can join it: s
// has ended, or its clock is past the reach of a row of the tuple, or s has promised the values that the
// tuple gives to some of its classes. t may go if every tuple that grows from (t), stream by closed stream,
// either ends (no stored row joins it) or becomes complete (a result, which is out already). A tuple for
// which no stream is closed is a witness: a row to come may still complete it, and t stays.
//
// Why this is right: a result to come with t has, for the streams bound so far, rows of such a tuple; its row
// of a closed stream is not to come, so it is stored. Why any closed stream will do: what is closed for a
// tuple stays closed when it grows. Why rows that may go need not go first: if b may go, so may every tuple
// with b.
//
// Streams that share no value and no window given the tuple are followed apart: their tuples add up and do
// not multiply. Of several rows the newest is tried first, since its promise is likely to come last.
// Cost: the tuples that are followed until a witness is found; m lookups if no stream is closed for the row.
// Reads the states, clocks and promises of one join; changes nothing. One thread.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamjoin/join/stream_promises.h"
#include "streamjoin/join/window_matrix.h"
#include "streamjoin/state/stream_state.h"

namespace streamjoin {

class ChainedPurge {
 public:
  /// A stored row.
  struct Member {
    uint32_t stream;
    uint32_t node;
  };
  static constexpr size_t kMostStreams = 64;

  /// `classes[s]` are the attribute classes of stream s, without repetition. Everything is borrowed.
  ChainedPurge(const WindowMatrix& matrix, const std::vector<std::vector<size_t>>& classes,
               std::span<const StreamState* const> states, const std::vector<Time>& clocks,
               const std::vector<StreamPromises>& promises);

  /// Of a row that is not stored yet, or of one that is.
  bool may_go(size_t stream, Time time, std::span<const Code> keys);
  bool may_go(size_t stream, uint32_t node);
  /// After may_go() said no: the stored rows of the witness, without the row itself.
  std::span<const Member> witness() const { return witness_; }
  /// Streams that have a row in a tuple of class `number`.
  uint64_t streams_of(size_t number) const { return streams_of_class_[number]; }

  /// Calls `visit(node)` for the live rows of a stream with a key, oldest arrival first.
  template <typename Visit>
  static void rows_with(const StreamState& state, size_t position, Code key, Visit&& visit) {
    if (state.indexed()) {
      state.look(position, key, visit);
      return;
    }
    for (const StreamState::Timed& entry : state.all()) {
      if (state.is_live(entry.node) && state.key(position, entry.node) == key) visit(entry.node);
    }
  }

 private:
  using Streams = uint64_t;  // a bit per stream
  /// What a tuple can become: nothing; only results that are out already; a result to come.
  enum class Outlook : uint8_t { kNone, kPast, kOpen };

  void bind(size_t stream, Time time);
  void bind_key(size_t number, Code key);
  void unbind(size_t stream);
  Outlook judge(Streams open);
  Outlook judge_linked(Streams open);
  Streams linked_with(size_t stream, Streams open) const;
  bool closed(size_t stream);
  void collect(size_t stream, std::vector<uint32_t>& nodes) const;
  bool joins(size_t stream, uint32_t node) const;

  const WindowMatrix& matrix_;
  const std::vector<std::vector<size_t>>& classes_;
  std::span<const StreamState* const> states_;
  const std::vector<Time>& clocks_;
  const std::vector<StreamPromises>& promises_;
  std::vector<Streams> streams_of_class_;
  std::vector<Streams> in_window_;  // per stream those whose time a bound ties to its own

  // The tuple that is followed.
  std::vector<size_t> bound_;
  std::vector<Time> times_;      // by stream
  std::vector<Code> values_;     // by class
  std::vector<uint32_t> known_;  // by class: how many bound rows give it a value
  std::vector<Member> witness_;
  std::vector<std::vector<uint32_t>> candidates_;  // by number of bound rows
  std::vector<Code> codes_;
};

}  // namespace streamjoin
