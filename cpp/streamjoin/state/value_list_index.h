// ValueListIndex: the value lists of one stream, found by key. Eight bytes a slot, so that the table can be
// mostly empty.
//
//   slots_   [ - ][tag|tail][ - ][ - ][tag|tail] ...     open addressing, linear probing
//                      \______ newest row of the key     -> its oldest row -> ... -> back to the newest
//
// The key itself lies in its rows. The tag is the part of the hash that chooses the slot, so keys are moved
// without a look at their rows, and a lookup reads the rows of another key only where 32 bits agree by
// chance.
//
// Invariants (validate() checks them):
//   1. From a key's home slot to its slot there is no empty slot (deletion shifts back, no tombstones).
//   2. At most 0.32 of the slots are filled, and at least 0.29 when a large index has just grown.
//   3. Where the order is kept it holds every key of the slots.
// A list without rows is legal only between the removal of its last row and its own.
// Cost: find, add, remove O(1) expected; mostly the first slot. The order is kept only while wide ranges come
// more often than the keys change over, and costs an added key a push_back (sorted_keys.h). add_at() and
// remove() may move lists: pointers do not outlive them. Owned by a WindowState; one thread.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamjoin/base/code.h"
#include "streamjoin/base/hash.h"
#include "streamjoin/memory/pages.h"
#include "streamjoin/memory/slab.h"
#include "streamjoin/state/nodes.h"
#include "streamjoin/state/sorted_keys.h"

namespace streamjoin {

/// The rows of one key: a circular list, known by its newest row. Promised: its stream has punctuated the key
/// while rows of it are stored.
class ValueList {
 public:
  bool vacant() const { return tail_and_marks_ == 0; }
  uint32_t tail() const { return tail_and_marks_ & kNoNode; }
  bool has_rows() const { return tail() != kNoNode; }
  bool promised() const { return (tail_and_marks_ & kPromised) != 0; }
  void set_tail(uint32_t node) { tail_and_marks_ = (tail_and_marks_ & ~kNoNode) | node; }
  void set_promised(bool promised) {
    tail_and_marks_ = (tail_and_marks_ & ~kPromised) | (promised ? kPromised : 0);
  }

 private:
  friend class ValueListIndex;
  static constexpr uint32_t kTaken = 1u << 31;
  static constexpr uint32_t kPromised = 1u << 30;

  uint32_t tag_;
  uint32_t tail_and_marks_;  // zero: an empty slot
};
static_assert(sizeof(ValueList) == 8);

class ValueListIndex {
 public:
  explicit ValueListIndex(const Slab<TNode>& rows);
  ~ValueListIndex();
  ValueListIndex(const ValueListIndex&) = delete;
  ValueListIndex& operator=(const ValueListIndex&) = delete;

  size_t size() const { return size_; }
  Code key_of(const ValueList& list) const { return rows_[list.tail()].key; }

  ValueList* find(Code key) {
    ValueList* slot = find_slot(key, hash_code(key));
    return slot->vacant() ? nullptr : slot;
  }
  const ValueList* find(Code key) const { return const_cast<ValueListIndex*>(this)->find(key); }

  // For blocks of keys: hash all, prefetch all, find the likely slots of all and prefetch their rows, confirm
  // and use each. `hash` is hash_code(key).

  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[home(tag_of(hash))]); }

  /// The slot of the list of `key`, or the empty one where it would go.
  ValueList* find_slot(Code key, uint64_t hash) {
    const uint32_t tag = tag_of(hash);
    for (size_t at = home(tag);; at = next(at)) {
      ValueList& slot = slots_[at];
      if (slot.vacant() || (slot.tag_ == tag && is_of(slot, key))) return &slot;
    }
  }
  /// The same without a look at rows: the slot found may, by chance, be that of another key.
  ValueList* find_likely_slot(uint64_t hash) {
    const uint32_t tag = tag_of(hash);
    for (size_t at = home(tag);; at = next(at)) {
      ValueList& slot = slots_[at];
      if (slot.vacant() || slot.tag_ == tag) return &slot;
    }
  }
  /// The slot of `key`, given the likely one found since the last move. Another key may have taken an empty
  /// one meanwhile.
  ValueList* confirm(ValueList* likely, Code key, uint64_t hash) {
    if (likely->vacant() || is_of(*likely, key)) [[likely]]
      return likely;
    return find_slot(key, hash);
  }
  /// The list whose newest row is `tail`, which is there.
  ValueList* find_by_tail(uint64_t hash, uint32_t tail) {
    size_t at = home(tag_of(hash));
    while (slots_[at].tail() != tail) at = next(at);
    return &slots_[at];
  }

  /// Changes when any list moves: slots found before may then be of other keys, or not even readable.
  uint64_t moves() const { return moves_; }

  /// The list of `key`, given its slot found since the last move (nullptr: not known), with `tail` as newest
  /// row if the list is new (`added`).
  ValueList& add_at(ValueList* slot, Code key, uint64_t hash, uint32_t tail, bool& added) {
    if (size_ >= grow_above_) [[unlikely]] {
      grow();
      slot = nullptr;
    }
    if (slot == nullptr) slot = find_slot(key, hash);
    added = slot->vacant();
    if (added) {
      slot->tag_ = tag_of(hash);
      slot->tail_and_marks_ = ValueList::kTaken | tail;
      ++size_;
      if (order_.kept()) [[unlikely]]
        order_.add(key);
    }
    return *slot;
  }

  /// Forgets a list. Others may move into its place.
  void remove(ValueList* list) {
    size_t hole = static_cast<size_t>(list - slots_);
    for (size_t at = next(hole); !slots_[at].vacant(); at = next(at)) {
      // A list may fill the hole unless its home lies behind the hole: the way from there to it is then
      // shorter than from the hole.
      if (distance(home(slots_[at].tag_), at) < distance(hole, at)) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].tail_and_marks_ = 0;
    --size_;
    ++moves_;
  }

  /// Room for so many lists before the next move.
  void reserve(size_t lists);

  /// Called now and then when no slot is in use, with the rows handled since the last call: a table that has
  /// been mostly empty while as much was done as its size is worth becomes smaller.
  void give_back(size_t rows) {
    if (size_ >= shrink_below_) [[likely]] {
      work_while_empty_ = 0;
    } else {
      shrink_if_idle(rows);
    }
  }
  /// A table that is mostly empty becomes smaller at once.
  void give_back_now() {
    if (size_ < shrink_below_) shrink();
  }

  /// Keys in [low, high], ascending. Narrow ranges ask the slots value by value; the first wide one builds
  /// the order.
  std::vector<Code> keys_between(Code low, Code high);

  /// The rows have moved: `place_of(index)` says where the row is now that was the newest of its key.
  template <typename PlaceOf>
  void follow_rows(PlaceOf place_of) {
    for (size_t at = 0; at < capacity_; ++at) {
      if (!slots_[at].vacant()) slots_[at].set_tail(place_of(slots_[at].tail()));
    }
  }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t at = 0; at < capacity_; ++at) {
      prefetch_row_ahead(at);
      if (!slots_[at].vacant()) visit(slots_[at]);
    }
  }

  size_t memory_bytes() const;
  std::string validate() const;

 private:
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t home(uint32_t tag) const { return static_cast<size_t>((uint64_t{tag} * capacity_) >> 32); }
  size_t next(size_t at) const { return at + 1 == capacity_ ? 0 : at + 1; }
  size_t distance(size_t from, size_t to) const { return to >= from ? to - from : to + capacity_ - from; }
  bool is_of(const ValueList& list, Code key) const { return !list.has_rows() || key_of(list) == key; }
  // Rows lie elsewhere than slots: whoever looks at the rows of all lists has them fetched ahead.
  void prefetch_row_ahead(size_t at) const {
    constexpr size_t kAhead = 32;
    if (at + kAhead < capacity_ && !slots_[at + kAhead].vacant()) rows_.prefetch(slots_[at + kAhead].tail());
  }
  void grow();
  void shrink_if_idle(size_t rows);
  void shrink();
  void resize(size_t capacity);

  const Slab<TNode>& rows_;
  ValueList* slots_ = nullptr;
  size_t capacity_ = 0;
  size_t size_ = 0;
  size_t grow_above_ = 0;
  size_t shrink_below_ = 0;
  uint64_t moves_ = 0;
  size_t work_while_empty_ = 0;
  SortedKeys order_;
};

}  // namespace streamjoin
