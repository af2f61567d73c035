// RangeSet: a set of codes that is mostly runs, such as all the values a stream has punctuated.
//
//   codes      ...[3 ======= 9][10 == 12]......[40]......
//   expires          never        t=500        never
//
// Invariants (validate() checks them):
//   1. Ranges are disjoint and ascending, both ends inclusive; any two 64-bit values are legal ends.
//   2. Ranges that touch differ in expiry; with the same expiry they are one range.
//   3. Every range that expires, and no other, is in the order of expiry.
// Cost: contains() two comparisons for a code outside the overall bounds, else log n. insert() and erase()
// log n plus the ranges they overlap; a value that extends its left neighbour is free of allocation.
// expire() what expires, times log n. Memory follows the number of ranges, not of values.
// Owned by one stream's punctuation memory. One thread.

#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/base/code.h"
#include "streamjoin/base/time.h"

namespace streamjoin {

class RangeSet {
 public:
  bool empty() const { return by_low_.empty(); }
  bool contains(Code code) const {
    if (code < smallest_ || code > largest_) return false;
    const auto after = by_low_.upper_bound(code);
    return after != by_low_.begin() && std::prev(after)->second.high >= code;
  }

  /// Until when `code` is in the set; kBeginning if it is not.
  Time expiry_of(Code code) const {
    const auto after = by_low_.upper_bound(code);
    if (after == by_low_.begin() || std::prev(after)->second.high < code) return kBeginning;
    return std::prev(after)->second.expires;
  }

  /// Adds low..high until the clock is past `expires`. Where a part is there already, the later expiry wins.
  /// Nothing if low > high.
  void insert(Code low, Code high, Time expires = kEnd);
  /// Takes low..high out, whatever its expiry; cuts ranges that reach beyond.
  void erase(Code low, Code high);
  /// Drops the parts whose expiry is before `clock`. What never expires stays, even at kEnd.
  void expire(Time clock);
  void clear();

  /// The parts of low..high that are in the set, ascending; parts that touch are given as one, whatever their
  /// expiry.
  std::vector<std::pair<Code, Code>> intersection(Code low, Code high) const;
  /// Calls `f(low, high, expires)` for each range, ascending.
  template <typename F>
  void for_each(F&& f) const {
    for (const auto& [low, rest] : by_low_) f(low, rest.high, rest.expires);
  }

  size_t ranges() const { return by_low_.size(); }
  size_t memory_bytes() const;

  void save(ArchiveWriter& archive) const;
  /// Replaces the content. On DamagedArchive the set is as it was.
  void load(ArchiveReader& archive);
  /// Empty if sound, else the first broken invariant.
  std::string validate() const;

 private:
  struct Rest {
    Code high;
    Time expires;
  };
  struct Range {
    Code low, high;
    Time expires;
  };
  using ByLow = std::map<Code, Rest>;

  bool covered_or_extended(Code low, Code high, Time expires);
  ByLow::iterator first_reaching(Code code);
  ByLow::const_iterator first_reaching(Code code) const;
  ByLow::iterator remove(ByLow::iterator range);
  void add(const std::vector<Range>& ranges);
  void set_bounds();

  ByLow by_low_;
  std::set<std::pair<Time, Code>> by_expiry_;  // (expires, low), without what never expires
  // Copies of the extremes: the test that most rows fail must not touch the tree. Crossed when empty.
  Code smallest_ = std::numeric_limits<Code>::max();
  Code largest_ = std::numeric_limits<Code>::min();
};

}  // namespace streamjoin
