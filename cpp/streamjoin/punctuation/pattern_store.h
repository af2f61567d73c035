// PatternStore: the punctuations of one stream, on keys of bytes, that speak of more than one key.
//
//   fixed {0}      (5, *)  (7, *)  (9, *) ...     one hash table per set of fixed attributes: one lookup each
//   fixed {1}      (*, "x") ...
//   ranges         (1..9, *)  (3.., "x")          looked through one by one
//
// Single keys are flagged on their I-Nodes and need no place here, but are understood. Patterns that match
// nothing are not remembered; ranges of one value are remembered as constants, and so they come back.
//
// Invariants (validate() checks them):
//   1. No remembered pattern is contained in another that expires at the same time or later.
//   2. Every pattern that expires, and no other, is in the order of expiry.
//   3. No table is empty.
// Cost: covers() a lookup per set of fixed attributes plus the ranges, however many constants there are.
// expire() what expires, times log n (plus the ranges, if one of them expires).
// Owned by one stream's punctuation memory. One thread.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/base/time.h"
#include "streamjoin/punctuation/constant_patterns.h"
#include "streamjoin/punctuation/key_pattern.h"

namespace streamjoin {

class PatternStore {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  /// Whether a remembered pattern matches the key with these attributes.
  bool covers(std::span<const std::string_view> attributes) const;
  /// Whether one remembered pattern contains `pattern` all by itself.
  bool contains(const KeyPattern& pattern) const;

  /// Remembers `pattern` until the clock is past `expires`. Nothing changes if one that holds as long
  /// contains it already; those that it contains and that hold no longer are dropped, so the same pattern
  /// with a later expiry renews.
  void remember(KeyPattern pattern, Time time, Time expires);
  /// Removes and returns the remembered patterns that `pattern` contains, in the order in which they were
  /// remembered.
  std::vector<KeyPattern> forget_inside(const KeyPattern& pattern);
  /// Removes and returns the patterns whose expiry is before `clock`, earliest expiry first. What never
  /// expires stays.
  std::vector<KeyPattern> expire(Time clock);
  void clear() { *this = PatternStore(); }

  /// Calls `f(pattern, time, expires)` in the order in which they were remembered. For snapshots and tests:
  /// builds each pattern.
  template <typename F>
  void for_each(F&& f) const {
    for (const Place& place : all()) f(pattern(place), remembered(place).time, remembered(place).expires);
  }
  size_t memory_bytes() const;

  void save(ArchiveWriter& archive) const;
  /// Replaces the content. On DamagedArchive the store is as it was.
  void load(ArchiveReader& archive);
  /// Empty if sound, else the first broken invariant.
  std::string validate() const;

 private:
  struct Range {
    KeyPattern pattern;
    Remembered remembered;
  };
  /// Where a pattern is: in a table, or, without one, among the ranges, found by its sequence number.
  struct Place {
    ConstantPatterns* table;
    const ConstantPatterns::Member* member;
    uint64_t sequence;
  };

  bool contained(const KeyPattern& pattern, Time at_least) const;
  ConstantPatterns& table(size_t width, std::vector<uint32_t> fixed);
  void add(KeyPattern pattern, Time time, Time expires);
  std::vector<Place> inside(const KeyPattern& pattern);
  std::vector<Place> all() const;
  std::vector<KeyPattern> remove(const std::vector<Place>& places);
  const Range& range(uint64_t sequence) const;
  KeyPattern pattern(const Place& place) const;
  const Remembered& remembered(const Place& place) const;

  std::vector<std::unique_ptr<ConstantPatterns>> tables_;
  std::vector<Range> ranges_;                             // ascending sequence
  std::map<std::pair<Time, uint64_t>, Place> by_expiry_;  // (expires, sequence), without what never expires
  uint64_t next_sequence_ = 0;
  size_t size_ = 0;
};

}  // namespace streamjoin
