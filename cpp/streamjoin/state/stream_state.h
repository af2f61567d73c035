// StreamState: the rows of one stream of an m-way join that may still be part of a result.
//
//   time list     [t=3 T][t=3 T][t=7 x][t=9 T]         an array sorted by time; a period is a run of it
//   value lists   class 0: I-Node(180) -> [T] -> [T]   one index and one set of lists per attribute class,
//                 class 2: I-Node(7)   -> [T] -> [T]   each list in arrival order
//
// Where WindowState has one key, a row here has one per class, so links to the second and later classes lie
// in slabs of their own that hand out the same indices as the slab of T-Nodes. Numeric values for predicates
// lie beside them in the same way, where rows are found by key. Without indexes rows are found by time: then
// keys and values lie in columns beside the time list (time_columns.h).
//
// Deletion is lazy: invalidation cuts the head of the time list off, purge marks a row; value lists and slabs
// let go of dead rows in sweep().
//
// Invariants (validate() checks them):
//   1. A live row is on the time list, which is in time order, and, where keys are indexed, on the value list
//      of each of its keys.
//   2. A key is in an index exactly if its value list has rows, dead ones included.
//   3. After sweep(): dead rows <= live rows / 4 + kSlackRows; none when no row is live.
//   4. Every row that is not freed holds one reference to the dictionary entry of each of its keys.
// Cost: O(1) a row and class, amortised, for all but a late row, which moves the time list's entries that are
// newer than it. Owned by one join; one thread.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/base/code.h"
#include "streamjoin/base/time.h"
#include "streamjoin/memory/slab.h"
#include "streamjoin/state/i_node_index.h"
#include "streamjoin/state/key_dictionary.h"
#include "streamjoin/state/nodes.h"
#include "streamjoin/state/numeric_value.h"
#include "streamjoin/state/time_columns.h"

namespace streamjoin {

struct StreamStateOptions {
  /// Per attribute class of the stream: the dictionary its codes come from; nullptr where codes are values.
  std::vector<KeyDictionary*> dictionaries;
  /// Numeric values kept with each row.
  size_t value_slots = 0;
  /// Without, keys are kept but not indexed: rows are found by time alone.
  bool indexed = true;
  /// Without indexes: whether values are asked for by node as well.
  bool values_by_node = false;
};

class StreamState {
 public:
  static constexpr size_t kSlackRows = 256;
  static constexpr size_t kCachedRows = 4096;

  /// One entry of the time list.
  struct Timed {
    Time time;
    uint32_t node;
  };

  explicit StreamState(StreamStateOptions options);

  size_t classes() const { return options_.dictionaries.size(); }
  bool indexed() const { return options_.indexed; }

  /// Stores a row: one key per class, one value per slot. One that is older than the newest row goes to its
  /// place in the time list.
  uint32_t insert(Time time, RowRef row, std::span<const Code> keys, std::span<const NumericValue> values);
  /// How many rows have been stored so far, and the last of them.
  uint64_t inserted() const { return inserted_; }
  uint32_t last_inserted() const { return last_inserted_; }

  /// Visits the live rows with `key` in a class, oldest arrival first: `visit(node index)`.
  template <typename Visitor>
  void look(size_t position, Code key, Visitor visit) const {
    const INode* list = indexes_[position]->find(key);
    if (list == nullptr) return;
    for (uint32_t at = list->head; at != kNoNode;) {
      const uint32_t following = next(position, at);
      if (following != kNoNode) nodes_.prefetch(following);
      if (!nodes_[at].is(TNode::kDead)) visit(at);
      at = following;
    }
  }
  /// The value list of a key, dead rows included; nullptr: there is none. It holds until the state changes.
  const INode* find_list(size_t position, Code key) const { return indexes_[position]->find(key); }
  /// Visits the live rows of a list where only those of a period matter: while rows come in order, a list
  /// that lies before it is not walked, and one that goes on behind it is left there. Others may be visited.
  /// `visit(node index, time)`.
  template <typename Visitor>
  void look(size_t position, const INode& list, Time first, Time last, Visitor visit) const {
    if (in_order_ && list.head != list.tail() && nodes_[list.tail()].time < first) return;
    for (uint32_t at = list.head; at != kNoNode;) {
      const TNode& row = nodes_[at];
      const uint32_t following = position == 0 ? row.next_in_value : next(position, at);
      if (following != kNoNode) nodes_.prefetch(following);
      if (in_order_ && row.time > last) return;
      if (!row.is(TNode::kDead)) visit(at, row.time);
      at = following;
    }
  }
  /// Keys of a class from `low` to `high`, ascending; some may have dead rows only. Needs an index.
  std::vector<Code> keys_between(size_t position, Code low, Code high) const {
    return indexes_[position]->keys_between(low, high);
  }
  /// Calls `f(key)` for every key of a class, in no order; some may have dead rows only. Needs an index.
  template <typename F>
  void for_each_key(size_t position, F&& f) const {
    indexes_[position]->for_each([&](const INode& list) { f(list.key); });
  }
  void prefetch_key(size_t position, Code key) const { indexes_[position]->prefetch(hash_code(key)); }
  void prefetch_ends(const INode& list) const {
    nodes_.prefetch(list.head);
    nodes_.prefetch(list.tail());
  }
  /// Whether rows and lists are so few that they lie in a cache: nothing need be fetched ahead then.
  bool is_cached() const { return nodes_.used() < kCachedRows; }
  /// The ends of a key's list, once its I-Node has come.
  void prefetch_list(size_t position, Code key) const {
    if (const INode* list = find_list(position, key); list != nullptr) prefetch_ends(*list);
  }

  /// The time list from the first row at or after `first` to the last one at or before `last`. Purged rows
  /// may be among them: ask is_live().
  std::span<const Timed> between(Time first, Time last) const;
  std::span<const Timed> all() const { return {time_list_.data() + head_, time_list_.size() - head_}; }

  /// Places on the time list; they hold until the state changes.
  struct Places {
    size_t begin;
    size_t end;
  };
  /// A guess where something lies on the time list. Any guess is allowed; one that is near saves steps, and
  /// it stays near while rows come at one end and go at the other.
  struct Cursor {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  Places all_places() const { return {head_, time_list_.size()}; }
  /// What between() gives, found from the cursor, which moves there.
  Places places_between(Time first, Time last, Cursor& cursor) const;
  /// The part of `places` that lies in a period.
  Places narrowed(Places places, Time first, Time last) const;
  const Timed& listed(size_t place) const { return time_list_[place]; }
  bool all_listed_live() const { return purged_listed_ == 0; }
  /// Keys and values by place; only without indexes.
  const TimeColumns& columns() const { return columns_; }

  bool is_live(uint32_t node) const { return !nodes_[node].is(TNode::kDead); }
  Time time(uint32_t node) const { return nodes_[node].time; }
  RowRef row(uint32_t node) const { return nodes_[node].row(); }
  Code key(size_t position, uint32_t node) const {
    return position == 0 ? nodes_[node].key : (*links_[position - 1])[node].key;
  }
  /// With indexes, or where it was asked for: else values lie in columns alone.
  NumericValue value(size_t slot, uint32_t node) const { return (*values_[slot])[node]; }

  /// The time of the oldest live row; kEnd without one. Amortised O(1): purged rows before it are passed
  /// once.
  Time oldest();
  /// Takes out every live row older than `limit`; returns how many.
  size_t invalidate_before(Time limit);
  /// Takes out one live row, or all live rows with a key, or all; the latter return how many.
  void purge(uint32_t node);
  size_t purge_key(size_t position, Code key);
  size_t purge_all();

  /// Frees dead rows once they are too many for invariant 3. Call it when no node index is in use.
  void sweep() {
    if (is_due_for_sweep()) sweep_all();
  }
  bool is_due_for_sweep() const { return dead_.size() > (live_ == 0 ? 0 : live_ / 4 + kSlackRows); }
  /// Frees every dead row.
  void sweep_all();

  /// Batches whose last live row has gone since the last call.
  std::vector<uint32_t> take_empty_batches() { return std::exchange(empty_batches_, {}); }
  size_t rows_of_batch(uint32_t batch) const { return batch < batch_rows_.size() ? batch_rows_[batch] : 0; }
  /// Moves all live rows to `batch`, in the order of the time list, and says where they were. Every other
  /// batch is then empty.
  std::vector<RowRef> move_rows_to(uint32_t batch);

  size_t live_rows() const { return live_; }
  size_t dead_rows() const { return dead_.size(); }
  /// Keys with rows, over all classes; 0 where they are not indexed.
  size_t keys() const;
  size_t memory_bytes() const;
  std::string validate() const;

  /// The rows are numbered 0, 1, ... as move_rows_to orders them; dictionaries are saved by their owner, with
  /// the references that the rows hold.
  void save(ArchiveWriter& out);
  void load(ArchiveReader& in);

 private:
  /// A row's place on the value lists of its second and later classes.
  struct ValueLink {
    Code key;
    uint32_t next;
    uint32_t off_value_list;  // 1: no longer on it
  };

  uint32_t next(size_t position, uint32_t node) const {
    return position == 0 ? nodes_[node].next_in_value : (*links_[position - 1])[node].next;
  }
  void set_next(size_t position, uint32_t node, uint32_t following) {
    (position == 0 ? nodes_[node].next_in_value : (*links_[position - 1])[node].next) = following;
  }
  bool off_value_list(size_t position, uint32_t node) const {
    return position == 0 ? nodes_[node].is(TNode::kOffValueList)
                         : (*links_[position - 1])[node].off_value_list != 0;
  }
  template <typename Before>
  size_t boundary(uint64_t guess, Before before) const;
  void drop_head();
  uint32_t allocate(Time time, RowRef row, std::span<const Code> keys, std::span<const NumericValue> values);
  void allocate_beside(uint32_t node, std::span<const Code> keys, std::span<const NumericValue> values);
  void append_to_value_lists(uint32_t node);
  void take_out(uint32_t node);
  void unlink_dead(size_t position, Code key);

  const StreamStateOptions options_;
  bool interned_ = false;  // whether keys of any class come from a dictionary
  Slab<TNode> nodes_;
  std::vector<std::unique_ptr<Slab<ValueLink>>> links_;      // one per class but the first
  std::vector<std::unique_ptr<Slab<NumericValue>>> values_;  // one per slot, where they are asked for by node
  std::vector<std::unique_ptr<INodeIndex>> indexes_;         // one per class
  std::vector<Timed> time_list_;
  TimeColumns columns_;
  size_t head_ = 0;             // entries before it are gone
  uint64_t dropped_ = 0;        // entries that have been cut off the front of the time list
  size_t purged_listed_ = 0;    // dead rows from head_ on
  std::vector<uint32_t> dead_;  // not freed yet
  std::vector<uint32_t> batch_rows_;
  std::vector<uint32_t> empty_batches_;
  size_t live_ = 0;
  uint64_t inserted_ = 0;
  uint32_t last_inserted_ = kNoNode;
  Time newest_ = kBeginning;  // of the rows that came since the state was last empty
  bool in_order_ = true;      // each of them at or after the one before: value lists are in time order
};

}  // namespace streamjoin
