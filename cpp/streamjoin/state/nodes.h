// T-Node: one row held in a stream's window. I-Node: one key of the stream.
//
//   time list                oldest -> [T] -> [T] -> [T] -> newest
//   value list, two streams  slot(tag, newest row) -> [T] -> [T] -> (the first again)    value_list_index.h
//   value list, more         I-Node(180: head, tail) -> [T] -> [T]                       stream_state.h
//   closed key               I-Node(7), without rows                                     promises.h
//
// A T-Node knows where its row's payload lies, never the payload itself. It holds its key rather than a link
// to what the index knows of it: that lies inside the open-addressing table and moves when it does, and one
// read there is what a link would cost as well. 32 bytes a T-Node, 16 an I-Node.

#pragma once

#include <cstdint>

#include "streamjoin/base/code.h"
#include "streamjoin/base/time.h"
#include "streamjoin/memory/slab.h"

namespace streamjoin {

/// Where a row's payload lies: the number of a stored batch and the row in it.
struct RowRef {
  uint32_t batch;
  uint32_t row;
  friend bool operator==(RowRef, RowRef) = default;
};

inline constexpr uint32_t kMaxBatch = (uint32_t{1} << 27) - 1;
inline constexpr RowRef kNoRow{0xffffffff, 0xffffffff};

class TNode {
 public:
  enum Mark : uint32_t {
    kMatched = 1u << 31,       // has had a match; kept when the partner is gone
    kDead = 1u << 30,          // invalidated, purged or taken out
    kOffValueList = 1u << 29,  // no longer on the value list of its key
    kLastPromised = 1u << 28,  // the row whose end closes a punctuated key
    kLate = 1u << 27,          // came behind the clock: on the late heap, not on the time list
  };

  Time time;
  Code key;
  uint32_t next_in_time;
  uint32_t next_in_value;

  void set_row(RowRef row) {
    row_ = row.row;
    batch_and_marks_ = (batch_and_marks_ & ~kMaxBatch) | row.batch;
  }
  RowRef row() const { return {batch_and_marks_ & kMaxBatch, row_}; }
  void start(Time at, Code code, RowRef row) {
    time = at;
    key = code;
    row_ = row.row;
    batch_and_marks_ = row.batch;
    next_in_time = kNoNode;
    next_in_value = kNoNode;
  }
  bool is(uint32_t marks) const { return (batch_and_marks_ & marks) != 0; }
  void mark(uint32_t marks) { batch_and_marks_ |= marks; }
  void unmark(uint32_t marks) { batch_and_marks_ &= ~marks; }

 private:
  uint32_t row_;
  uint32_t batch_and_marks_;
};
static_assert(sizeof(TNode) == 32);

/// What a stream has promised about a key. `kPropagated`: promised, and no row of it is left, so nothing can
/// join it any more.
enum class PunctuationFlag : uint8_t { kNone = 0, kPunctuated = 1, kPropagated = 2 };

class INode {
 public:
  Code key;
  uint32_t head;

  bool vacant() const { return tail_and_mark_ == 0; }
  uint32_t tail() const { return tail_and_mark_ & kNoNode; }
  bool has_rows() const { return head != kNoNode; }

  void start(Code code) {
    key = code;
    head = kNoNode;
    tail_and_mark_ = kTaken | kNoNode;
  }
  void set_tail(uint32_t node) { tail_and_mark_ = kTaken | node; }
  void clear() { tail_and_mark_ = 0; }

 private:
  static constexpr uint32_t kTaken = 1u << 31;

  uint32_t tail_and_mark_;  // zero: an empty slot of the index
};
static_assert(sizeof(INode) == 16);

}  // namespace streamjoin
