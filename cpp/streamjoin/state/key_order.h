// KeyOrder: finds the keys of a KeyDictionary that a pattern matches, without walking the others.
//
//   (5, *)        order by attribute 0, at 5
//   (*, 1..9)     order by attribute 1, from 1 to 9
//   (5, 1..9)     the order of the constant, each candidate checked on the rest
//   (5, "x")      one lookup in the dictionary, no order at all
//
// Invariant (validate() checks it): an active order holds exactly the live keys of the dictionary.
// An order is built when a pattern first needs it; until then keys come and go for nothing. After that, who
// creates a key calls add(), and who lets one go calls remove() before the release that frees it.
// Cost: add and remove log n per active order; matching() log n plus the keys that match on one attribute.
// Belongs beside one KeyDictionary, which every call that needs it is given. One thread.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamjoin/base/code.h"
#include "streamjoin/base/key_bytes.h"
#include "streamjoin/punctuation/attribute_order.h"
#include "streamjoin/punctuation/key_pattern.h"
#include "streamjoin/state/key_dictionary.h"

namespace streamjoin {

class KeyOrder {
 public:
  /// Whether any order is kept. If not, add() and remove() do nothing and the caller need not split its keys.
  bool active() const { return !orders_.empty(); }
  bool active(size_t attribute) const { return attribute < orders_.size() && orders_[attribute]; }
  /// Keeps the order by `attribute` from now on. Costs n log n the first time, nothing again.
  void activate(size_t attribute, const KeyDictionary& dictionary, const AttributeSplitter& splitter);
  /// Gives all orders back.
  void clear() { orders_.clear(); }

  void add(Code code, std::span<const std::string_view> attributes);
  void remove(Code code, std::span<const std::string_view> attributes);

  /// The codes of the keys that `pattern` matches, ascending. Goes by a constant attribute if there is one
  /// (an active one first), else by a range; without either all keys match.
  std::vector<Code> matching(const KeyPattern& pattern, const KeyDictionary& dictionary,
                             const AttributeSplitter& splitter);

  size_t memory_bytes() const;
  /// Empty if sound, else the first broken invariant.
  std::string validate(const KeyDictionary& dictionary, const AttributeSplitter& splitter) const;

 private:
  size_t attribute_to_follow(const KeyPattern& pattern) const;

  std::vector<std::unique_ptr<AttributeOrder<Code>>>
      orders_;  // by attribute; empty until the first is needed
};

}  // namespace streamjoin
