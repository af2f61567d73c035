// INodeIndex: the I-Nodes of one stream, found by key.
//
//   slots_   [ - ][ 180 ][ 7 ][ - ][ 42 ] ...     open addressing, linear probing, I-Nodes lie in the slots themselves
//   order_   {7, 42, 180}                         ordered keys, built when the first wide range asks for them
//
// Invariants (validate() checks them):
//   1. From a key's home slot to its slot there is no empty slot (deletion shifts back, there are no tombstones).
//   2. Between a fifth and 0.7 of the slots are filled once there are more than a few.
//   3. Where the order is built it holds exactly the keys of the slots.
// Cost: find, add, remove O(1) expected; one cache miss each when the slot was prefetched. With the order built, add and remove
// are O(log keys). add() and remove() move I-Nodes: pointers do not outlive them.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "streamjoin/base/code.h"
#include "streamjoin/base/hash.h"
#include "streamjoin/memory/pages.h"
#include "streamjoin/state/nodes.h"

namespace streamjoin {

class INodeIndex {
 public:
  INodeIndex();
  ~INodeIndex();
  INodeIndex(const INodeIndex&) = delete;
  INodeIndex& operator=(const INodeIndex&) = delete;

  size_t size() const { return size_; }

  void prefetch(Code key) const { __builtin_prefetch(&slots_[home(key)]); }

  INode* find(Code key) {
    for (size_t at = home(key);; at = next(at)) {
      INode& node = slots_[at];
      if (node.vacant()) return nullptr;
      if (node.key == key) return &node;
    }
  }
  const INode* find(Code key) const { return const_cast<INodeIndex*>(this)->find(key); }

  /// True if `node`, found earlier, is still the I-Node of `key`: cheaper than finding it again.
  bool still_holds(const INode* node, Code key) const { return !node->vacant() && node->key == key; }

  /// Changes whenever the slots move as a whole; pointers found before are then not even readable.
  uint32_t generation() const { return generation_; }

  /// The I-Node of `key`, new and empty if there was none (`added` says so).
  INode& find_or_add(Code key, bool& added);

  /// Forgets an I-Node. Others may move into its place.
  void remove(INode* node);

  /// Keys in [low, high], ascending. Narrow ranges ask the slots value by value; the first wide one builds the order.
  std::vector<Code> keys_between(Code low, Code high);

  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t at = 0; at < capacity_; ++at) {
      if (!slots_[at].vacant()) visit(slots_[at]);
    }
  }

  size_t memory_bytes() const;
  std::string validate() const;

 private:
  size_t home(Code key) const { return slot_of(mix(static_cast<uint64_t>(key)), capacity_); }
  size_t next(size_t at) const { return at + 1 == capacity_ ? 0 : at + 1; }
  void resize(size_t capacity);

  INode* slots_;
  size_t capacity_;
  size_t size_ = 0;
  size_t grow_above_;
  size_t shrink_below_;
  uint32_t generation_ = 0;
  std::optional<std::set<Code>> order_;
};

}  // namespace streamjoin
