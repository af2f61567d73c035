// INodeIndex: I-Nodes of one stream, found by key: the closed keys of a stream of two, the value lists of one
// class of a stream of more.
//
//   slots_   [ - ][ 180 ][ 7 ][ - ][ 42 ] ...   open addressing, linear probing; I-Nodes lie in the slots
//   order_   7, 42, 180                         built when a wide range asks for it, dropped when none does
//
// Invariants (validate() checks them):
//   1. From a key's home slot to its slot there is no empty slot (deletion shifts back, there are no
//   tombstones).
//   2. At most 0.62 of the slots are filled, and at least 0.56 when a large index has just grown.
//   3. Where the order is kept it holds every key of the slots.
// Cost: find, add, remove O(1) expected; mostly one cache line each. The order is kept only while wide ranges
// come more often than the keys change over, and costs an added key a push_back (sorted_keys.h). add() and
// remove() move I-Nodes: pointers do not outlive them.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamjoin/base/code.h"
#include "streamjoin/base/hash.h"
#include "streamjoin/memory/pages.h"
#include "streamjoin/state/nodes.h"
#include "streamjoin/state/sorted_keys.h"

namespace streamjoin {

class INodeIndex {
 public:
  INodeIndex();
  ~INodeIndex();
  INodeIndex(const INodeIndex&) = delete;
  INodeIndex& operator=(const INodeIndex&) = delete;

  size_t size() const { return size_; }

  INode* find(Code key) {
    INode* slot = find_slot(key, hash_code(key));
    return slot->vacant() ? nullptr : slot;
  }
  const INode* find(Code key) const { return const_cast<INodeIndex*>(this)->find(key); }

  /// The I-Node of `key`, new and empty if there was none (`added` says so).
  INode& find_or_add(Code key, bool& added) { return add_at(nullptr, key, hash_code(key), added); }

  // For blocks of keys: hash all, prefetch all, find the slots of all, use each. `hash` is hash_code(key).

  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[home(hash)]); }

  /// The slot of the I-Node of `key`, or the empty one where it would go.
  INode* find_slot(Code key, uint64_t hash) {
    for (size_t at = home(hash);; at = next(at)) {
      INode& node = slots_[at];
      if (node.vacant() || node.key == key) return &node;
    }
  }

  /// Changes when the slots as a whole move: slots found before are then not even readable.
  uint32_t generation() const { return generation_; }
  /// Changes when any I-Node moves: empty slots found before may then not be where a key goes.
  uint64_t moves() const { return moves_; }

  /// The I-Node of `key`, given the slot found for it since the last move (nullptr: not known); `added` if it
  /// is new.
  INode& add_at(INode* slot, Code key, uint64_t hash, bool& added) {
    if (size_ >= grow_above_) [[unlikely]] {
      grow();
      slot = nullptr;
    }
    // Another key may have taken an empty slot meanwhile.
    if (slot == nullptr || (!slot->vacant() && slot->key != key)) slot = find_slot(key, hash);
    added = slot->vacant();
    if (added) {
      slot->start(key);
      ++size_;
      if (order_.kept()) [[unlikely]]
        order_.add(key);
    }
    return *slot;
  }

  /// Forgets an I-Node. Others may move into its place.
  void remove(INode* node) {
    size_t hole = static_cast<size_t>(node - slots_);
    for (size_t at = next(hole); !slots_[at].vacant(); at = next(at)) {
      // A node may fill the hole unless its home lies behind the hole: the way from there to it is then
      // shorter than from the hole.
      const size_t home_slot = home(hash_code(slots_[at].key));
      if (distance(home_slot, at) < distance(hole, at)) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].clear();
    --size_;
    ++moves_;
  }

  /// Called now and then when no slot is in use, with the rows handled since the last call: a table that has
  /// been mostly empty while as much was done as its size is worth becomes smaller.
  void give_back(size_t rows);
  /// A table that is mostly empty becomes smaller at once.
  void give_back_now();

  /// Keys in [low, high], ascending. Narrow ranges ask the slots value by value; the first wide one builds
  /// the order.
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
  // Always the first slot of a cache line: most keys are found, or missed, within one line.
  size_t home(uint64_t hash) const { return slot_of(hash, capacity_ / kSlotsPerLine) * kSlotsPerLine; }
  size_t next(size_t at) const { return at + 1 == capacity_ ? 0 : at + 1; }
  size_t distance(size_t from, size_t to) const { return to >= from ? to - from : to + capacity_ - from; }
  void grow();
  void resize(size_t capacity);

  static constexpr size_t kSlotsPerLine = 64 / sizeof(INode);

  INode* slots_;
  size_t capacity_;
  size_t size_ = 0;
  size_t work_while_empty_ = 0;
  size_t grow_above_;
  size_t shrink_below_;
  uint32_t generation_ = 0;
  uint64_t moves_ = 0;
  SortedKeys order_;
};

}  // namespace streamjoin
