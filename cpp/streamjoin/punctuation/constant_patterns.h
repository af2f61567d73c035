// ConstantPatterns: the remembered patterns that fix the same attributes and leave the others to any.
//
//   pattern     (5, *, "x")   (7, *, "y")   (5, *, "z")     attributes 0 and 2 are fixed
//   member          5 "x"         7 "y"         5 "z"       in a hash table: is a key covered? one lookup
//   orders      by attribute 0, by attribute 2              which members lie inside a wider pattern?
//
// Invariants (validate() checks them):
//   1. No two members have the same constants.
//   2. An order is absent, as it is until first needed, or holds exactly the members.
// Cost: find, insert, erase O(1) plus log n per order that exists; inside() as many members as match one
// attribute. Addresses of members are stable until they are erased.
// Owned by a PatternStore. One thread.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "streamjoin/base/time.h"
#include "streamjoin/punctuation/attribute_order.h"
#include "streamjoin/punctuation/key_pattern.h"

namespace streamjoin {

/// What is known of a remembered pattern beside the pattern.
struct Remembered {
  Time time = 0;
  Time expires = kEnd;
  uint64_t sequence =
      0;  // rises with each pattern remembered, so that results come in one order on every run
};

class ConstantPatterns {
  /// The constants, each behind its length, and their hash.
  struct Constants {
    std::string bytes;
    uint64_t hash;
  };
  /// A whole key of which only the fixed attributes count.
  struct Projection {
    std::span<const std::string_view> key;
    const std::vector<uint32_t>* fixed;
    uint64_t hash;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Constants& constants) const { return constants.hash; }
    size_t operator()(const Projection& projection) const { return projection.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Constants& a, const Constants& b) const { return a.bytes == b.bytes; }
    bool operator()(const Projection& a, const Constants& b) const;
    bool operator()(const Constants& a, const Projection& b) const { return (*this)(b, a); }
  };
  using Members = std::unordered_map<Constants, Remembered, Hash, Equal>;

 public:
  using Member = Members::value_type;

  /// `fixed`: ascending positions of the constants in keys of `width` attributes.
  ConstantPatterns(size_t width, std::vector<uint32_t> fixed) : width_(width), fixed_(std::move(fixed)) {}

  const std::vector<uint32_t>& fixed() const { return fixed_; }
  size_t size() const { return members_.size(); }

  /// The member whose constants are at the fixed positions of `key`, or nullptr. Other positions are not
  /// looked at.
  const Member* find(std::span<const std::string_view> key) const;
  /// Adds a pattern that is not there yet and fixes these positions.
  const Member& insert(const KeyPattern& pattern, Remembered remembered);
  void erase(const Member& member);
  /// The members that `wider` contains, in no order.
  std::vector<const Member*> inside(const KeyPattern& wider);

  KeyPattern pattern(const Member& member) const;
  /// Calls `f(member)` for each, in no order.
  template <typename F>
  void for_each(F&& f) const {
    for (const Member& member : members_) f(member);
  }
  size_t memory_bytes() const;
  std::string validate() const;

 private:
  using Order = AttributeOrder<const Member*>;

  Projection project(std::span<const std::string_view> key) const;
  Order& order(size_t place);

  size_t width_;
  std::vector<uint32_t> fixed_;
  Members members_;
  std::vector<std::unique_ptr<Order>> orders_;  // by place in fixed_; empty until the first is needed
};

}  // namespace streamjoin
