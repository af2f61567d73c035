// WindowState: the rows of one stream that may still find a partner.
//
//                 freed |  dead, to be freed  |  live, some purged   |
//   time list   ........|--[T]--[T]--[T]------|--[T]--[x]--[T]--[T]--|      in time order
//                        ^sweep_               ^head_           ^tail_
//   value list    [dead] -> [live] -> [live] -> (the first again)           in arrival order; the index knows
//   the last late heap     rows that came behind the clock, smallest time first; they are on no time list
//
// Deletion is lazy. Invalidation moves head_ on and touches nothing but the row; purge clears a value list
// and leaves its rows on the time list. Whoever next walks past a dead row unlinks it, and sweep() sees to
// the keys that nobody walks again.
//
// Invariants (validate() checks them):
//   1. A live row is on the value list of its key, and on the time list or the late heap.
//   2. The time list is in time order. Dead rows are a prefix of their value list.
//   3. A key is in the index exactly if it has rows on its value list.
//   4. After sweep(): dead rows <= live rows / 4 + kSlackRows; none of either when no row is live.
//   5. A promised value list has live rows, and the last promised one among them is marked.
//   6. After sweep(): the slab has room for at most twice the rows it holds, and a few blocks.
// Cost: every operation O(1) a row it touches, amortised. A row is moved to a denser slab at most once per
// row that has left. Owned by one join; one thread.

#pragma once

#include <cstdint>
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
#include "streamjoin/state/value_list_index.h"

namespace streamjoin {

/// What to do with a row after it was visited.
enum class Visit : uint8_t { kKeep, kTakeOut, kStop };

class WindowState {
 public:
  static constexpr size_t kSlackRows = 256;
  /// Blocks of the slab, as powers of two of rows: 64 KiB each, so that a block more or less is nothing to a
  /// window of 2^16 rows; and 2 MiB, huge pages, where a block is nothing to a window of 2^20.
  static constexpr uint32_t kSmallBlocks = 11;
  static constexpr uint32_t kLargeBlocks = 16;
  static constexpr size_t kLargeAbove = size_t{3} << 18;
  static constexpr size_t kSmallBelow = size_t{1} << 19;

  /// With a dictionary, every value list holds a reference to its key's entry there.
  explicit WindowState(KeyDictionary* dictionary)
      : nodes_({.nodes_per_block_log2 = kSmallBlocks}), lists_(nodes_), dictionary_(dictionary) {}

  // ---- rows
  // -------------------------------------------------------------------------------------------------------------

  /// Stores a row that is not older than any row stored in order. `slot`, if known, is the index slot found
  /// for its key.
  uint32_t insert(Time time, Code key, RowRef row, ValueList* slot = nullptr) {
    return insert(time, key, hash_code(key), row, slot);
  }
  uint32_t insert(Time time, Code key, uint64_t hash, RowRef row, ValueList* slot);
  /// Stores a row that came behind the clock.
  uint32_t insert_late(Time time, Code key, RowRef row);

  /// Visits the live rows of a key, oldest arrival first: `visit(index, TNode&) -> Visit`. Unlinks the dead
  /// rows it passes.
  template <typename Visitor>
  void walk(ValueList& list, Visitor visitor);

  /// The same without unlinking: nothing changes.
  template <typename Visitor>
  void look(const ValueList& list, Visitor visitor) const;

  /// Takes out every live row older than `limit`, oldest first, after `leaving(TNode&)`.
  template <typename Leaving>
  void invalidate_before(Time limit, Leaving leaving);

  /// Takes out every live row of a key after `leaving(TNode&)`. The list stays, without rows, for the
  /// caller to remove. Returns how many.
  template <typename Leaving>
  size_t purge(ValueList& list, Leaving leaving);

  /// Whether every value list is in time order, so that a walk may stop at the first row beyond its window.
  bool in_time_order() const { return late_.empty(); }

  /// Time of the row that leaves next, or kEnd. Nothing is to be invalidated before that.
  Time oldest() const { return oldest_; }

  /// Time of the newest row that came in order, or kBeginning: none that comes in order may be older.
  Time newest() const { return tail_ == kNoNode ? kBeginning : nodes_[tail_].time; }

  /// Frees dead rows until the bound of invariant 4 holds. Cheap to call often; call it when no node index is
  /// in use. `rows`: how many were handled since the last call.
  void sweep(size_t rows = 0) {
    const size_t dead = expired_ + purged_ + purged_late_;
    if (dead > kSlackRows / 2 || (live_ == 0 && dead > 0) || !fits_its_slab()) free_some();
    lists_.give_back(rows);
    closed_.give_back(rows);
  }
  /// Frees every dead row.
  void sweep_all();
  /// Moves all rows, close together, to a slab that suits their number. sweep() does it when it pays.
  void pack();

  /// Batches whose last live row has gone since the last call.
  std::vector<uint32_t> take_empty_batches() { return std::exchange(empty_batches_, {}); }
  size_t rows_of_batch(uint32_t batch) const { return batch < batch_rows_.size() ? batch_rows_[batch] : 0; }
  /// Moves all live rows to `batch`, in the order of for_each_row, and says where they were. Every other
  /// batch is then empty.
  std::vector<RowRef> move_rows_to(uint32_t batch);

  TNode& node(uint32_t index) { return nodes_[index]; }
  const TNode& node(uint32_t index) const { return nodes_[index]; }
  void prefetch(uint32_t index) const { nodes_.prefetch(index); }

  /// Live rows, in the order of the time list, then of the late rows.
  template <typename Visitor>
  void for_each_row(Visitor visitor);

  // ---- keys
  // -------------------------------------------------------------------------------------------------------------

  ValueListIndex& lists() { return lists_; }
  const ValueListIndex& lists() const { return lists_; }
  /// Keys that the stream has promised and of which no row is stored. They are the business of Promises.
  INodeIndex& closed() { return closed_; }
  /// Unlinks dead rows at the head of the list. True if live rows remain.
  bool has_live_rows(ValueList& list);
  /// The newest live row of the key becomes the one whose end closes it.
  void mark_last_promised(ValueList& list) { nodes_[list.tail()].mark(TNode::kLastPromised); }
  /// Removes the list of `key` (or nullptr) if it has neither rows nor a promise. True if it did.
  bool remove_if_idle(ValueList* list, Code key);
  /// Whether a key that comes from a snapshot is one that the dictionary knows.
  bool may_hold(Code key) const { return dictionary_ == nullptr || dictionary_->is_live(key); }
  /// Holds a key's dictionary entry beyond its value list, or lets it go.
  void hold_key(Code key) {
    if (dictionary_ != nullptr) dictionary_->reference(key);
  }
  void let_key_go(Code key) {
    if (dictionary_ != nullptr) released_keys_.push_back(key);
  }
  /// Keys whose value lists went away since the last call; their dictionary references are for the caller to
  /// release.
  std::vector<Code> take_released_keys() { return std::exchange(released_keys_, {}); }

  // ---- the whole
  // --------------------------------------------------------------------------------------------------------

  size_t live_rows() const { return live_; }
  size_t dead_rows() const { return expired_ + purged_ + purged_late_; }
  size_t memory_bytes() const;
  std::string validate() const;
  void save(ArchiveWriter& out);
  void load(ArchiveReader& in);

 private:
  struct LateRow {
    Time time;
    uint32_t node;
    uint64_t arrival;  // rows of one time leave in the order in which they came
  };

  uint32_t append(Time time, Code key, uint64_t hash, RowRef row, ValueList* slot);
  void take_out(TNode& node);
  void count_out(const TNode& node) {
    const uint32_t batch = node.row().batch;
    --live_;
    if (--batch_rows_[batch] == 0) empty_batches_.push_back(batch);
  }
  void unlink_from_value_list(ValueList& list, uint32_t previous, uint32_t index);
  void drop_dead_head(ValueList& list);
  void remove_list(ValueList* list, Code key);
  void free_some();
  void free_expired(size_t count);
  void free_purged();
  void refresh_oldest();
  bool fits_its_slab() const {
    const bool large = nodes_.nodes_per_block_log2() == kLargeBlocks;
    return !nodes_.is_sparse() && (large ? nodes_.used() >= kSmallBelow : nodes_.used() <= kLargeAbove);
  }
  template <typename Leaving>
  void invalidate_late_before(Time limit, Leaving leaving);
  uint32_t pop_late();
  void sort_late_rows();

  Slab<TNode> nodes_;
  ValueListIndex lists_;
  INodeIndex closed_;
  KeyDictionary* dictionary_;
  std::vector<LateRow> late_;  // a heap, smallest time first
  uint64_t late_arrivals_ = 0;
  std::vector<Code> released_keys_;
  std::vector<uint32_t> batch_rows_;  // live rows, by batch
  std::vector<uint32_t> empty_batches_;
  uint32_t sweep_ = kNoNode;
  uint32_t head_ = kNoNode;
  uint32_t tail_ = kNoNode;
  Time oldest_ = kEnd;
  size_t live_ = 0;
  size_t expired_ = 0;      // dead, before head_
  size_t purged_ = 0;       // dead, from head_ on
  size_t purged_late_ = 0;  // dead, still on the late heap
};

}  // namespace streamjoin

#include "streamjoin/state/window_state_loops.h"
