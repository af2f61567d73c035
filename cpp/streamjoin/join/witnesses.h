// Witnesses: for every stored row of an m-way join the tuple that keeps it, and the way back from each row of
// such a tuple to the rows that it keeps.
//
//   owner a1  ->  (a1, b2, c7)      while no stream is closed for this tuple, a1 must stay
//   c7 keeps a1, a4, b2             so a promise on a value of c7 leads to them, and to nobody else
//   by time   [t=40: b2] [t=55: a1] of stream D: once D's clock is past t, the window closes the tuple
//
// Invariants (validate() checks them):
//   1. The links of a witness are on the lists of its members, each once, and on no others.
//   2. A row without links is its own witness.
// Cost: set() and drop() O(streams); due entries O(log n) each. Memory follows the rows. Owned by
// MultiPunctuations; one thread.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "streamjoin/base/time.h"
#include "streamjoin/join/chained_purge.h"

namespace streamjoin {

class Witnesses {
 public:
  using Member = ChainedPurge::Member;

  explicit Witnesses(size_t streams) : rows_(streams), due_(streams), streams_(streams) {}

  /// The witness of a row becomes the row itself with `members`, stored rows of other streams.
  void set(Member owner, std::span<const Member> members);
  /// A row has left the state: it has no witness. What it was a member of stays until that is set anew.
  void drop(Member owner);
  void clear();

  /// Changes whenever the witness of a row does.
  uint32_t version(Member owner) const { return row(owner).version; }
  /// Calls `f(member)` for the witness of a row, without the row itself.
  template <typename F>
  void for_each_member(Member owner, F&& f) const {
    const uint32_t first = row(owner).witness;
    if (first == kNone) return;
    for (uint32_t at = first; at < first + streams_ - 1 && links_[at].used; ++at) f(links_[at].member);
  }
  /// Calls `f(owner)` for the rows whose witness has `member` in it, themselves excepted.
  template <typename F>
  void for_each_kept(Member member, F&& f) const {
    for (uint32_t at = row(member).kept; at != kNone; at = links_[at].next) f(links_[at].owner);
  }

  /// The witness of `owner`, as it is now, is closed once the clock of `stream` is past `time`.
  void wait(size_t stream, Time time, Member owner);
  /// Takes out the owners whose wait for `stream` is over, and whose witness is still the one that waited.
  std::vector<Member> due(size_t stream, Time clock);

  size_t memory_bytes() const;
  std::string validate() const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  static constexpr size_t kSlack = 1024;  // waits that may be out of date

  struct Row {
    uint32_t witness = kNone;  // the first of its links
    uint32_t kept = kNone;     // list of links through `next`
    uint32_t version = 0;
  };
  struct Link {
    Member owner;
    Member member;
    uint32_t next;
    uint32_t previous;
    bool used = false;
  };
  struct Wait {
    Time time;
    Member owner;
    uint32_t version;
    bool operator<(const Wait& other) const { return time > other.time; }  // the earliest on top of the heap
  };

  Row& row(Member of);
  const Row& row(Member of) const;
  void unlink(Row& owner);

  std::vector<std::vector<Row>> rows_;  // by stream and node
  std::vector<Link> links_;             // blocks of streams - 1
  std::vector<uint32_t> free_;          // blocks
  std::vector<std::vector<Wait>> due_;  // a heap per stream
  size_t streams_;
  size_t waits_ = 0;
};

}  // namespace streamjoin
