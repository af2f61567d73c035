// BinaryJoin: PWJoin, the window join of two punctuated streams.
//
//   row of left  ->  invalidate right's state  ->  probe it  ->  store the row in left's state
//   punctuation of left on v  ->  purge v in right's state  ->  remember v  ->  propagate v when no result of
//   v can come
//
// docs/semantics.md says step by step what each call means. The streams need not be synchronised: a stream's
// clock alone decides what the other's state may forget, so a row joins at once and nothing waits.
//
// Switched off by option, the same code is the two joins it descends from: without punctuations a plain
// window join (WJoin), without invalidation a plain punctuated join (PJoin; bounds are still checked, so
// results are the same).
//
// Cost: a row costs one probe, one insert and its matches; expiry and purge cost the rows they remove; all
// amortised. A batch is worked on in blocks whose index slots and rows are fetched ahead. One thread.

#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/join/bounds.h"
#include "streamjoin/join/join_type.h"
#include "streamjoin/join/predicate.h"
#include "streamjoin/join/results.h"
#include "streamjoin/state/key_dictionary.h"
#include "streamjoin/state/promises.h"
#include "streamjoin/state/window_state.h"

namespace streamjoin {

enum class LatePolicy : uint8_t { kDrop, kInsert, kError };
enum class ViolationPolicy : uint8_t { kDrop, kKeep, kError };
/// Punctuations that a stream implies by its rows: of each row's own key, or of the previous key when it
/// changes.
enum class Implies : uint8_t { kNothing, kUnique, kClustered };

struct SideOptions {
  Duration lifespan = kEnd;
  Implies implies = Implies::kNothing;
};

struct BinaryJoinOptions {
  JoinType type = JoinType::kInner;
  Bounds bounds{std::nullopt, std::nullopt};
  LatePolicy late = LatePolicy::kDrop;
  ViolationPolicy violation = ViolationPolicy::kDrop;
  std::array<SideOptions, 2> sides;
  bool use_windows = true;
  bool use_punctuations = true;
  /// Integer keys: a code is the value, so ranges of codes are ranges of values.
  bool codes_are_values = true;
};

/// A punctuation that comes with the rows of a batch, in front of row `before` of it; behind the last one if
/// that is their number.
struct KeyPunctuation {
  size_t before;
  Code key;
  Time time;
};

/// Rows of one batch, as columns. `null_key`, if given, says which rows have no key; `refs`, if given, where
/// each row's payload lies: without it row i lies at {number, i}. `punctuations` are in the order of their
/// rows.
struct RowBatch {
  uint32_t number;
  std::span<const Time> times;
  std::span<const Code> keys;
  const uint8_t* null_key = nullptr;
  const RowRef* refs = nullptr;
  std::span<const KeyPunctuation> punctuations = {};

  RowRef ref(size_t i) const { return refs != nullptr ? refs[i] : RowRef{number, static_cast<uint32_t>(i)}; }
};

/// A row refused under an error policy; the join is as it was before the call.
struct RefusedBatch {
  enum class Why : uint8_t { kLate, kViolation } why;
  size_t row;
  Time clock;
};

class BinaryJoin {
 public:
  BinaryJoin(BinaryJoinOptions options, KeyDictionary* dictionary);

  /// Joins a batch: its rows, and its punctuations between them, one after the other. Under an error policy
  /// throws RefusedBatch, and whatever `predicate` throws, before anything has changed.
  void push(Side side, const RowBatch& batch, Predicate* predicate, Results& results);

  /// Stores a row that comes behind `clock`: it meets the rows to come, not those before it. False if it is
  /// late: nothing from `clock` on can reach it, or its stream has promised its key away and that has been
  /// acted upon.
  bool insert_behind(Side side, const RowBatch& batch, size_t row, Time clock, Results& results);
  /// Emits a late row, if its side is preserved: no match of it can come.
  void give_up(Side side, RowRef row, Results& results);

  /// No row of `side` with this key comes any more.
  void punctuate(Side side, Code key, Time time, Results& results);
  /// The same for every code in low .. high.
  void punctuate_range(Side side, Code low, Code high, Time time, Results& results);
  /// No row of `side` comes any more.
  void end(Side side, Time time, Results& results);

  // Patterns over keys that are no integers are remembered by whoever knows the keys. Here they are codes:
  /// A key that a new pattern matches: purges it and propagates it like `punctuate`, once it has no rows;
  /// then it is covered.
  void punctuate_by_pattern(Side side, Code key, Time time, Results& results);
  /// A key that an older pattern matches, new to the dictionary.
  void cover(Side side, Code key, Time expires) { sides_[side].promises.cover(key, key, expires); }
  /// After all keys of a pattern: frees what they left and ends the output if nothing more can come.
  void settle(Time time, Results& results);
  /// No pattern matches the key any more, or the key is gone.
  void uncover(Side side, Code key) { sides_[side].promises.uncover(key, key); }
  /// Until when an output punctuation at `time` holds: a promise of either stream may be forgotten after its
  /// lifespan.
  Time promised_until(Time time) const;
  /// Whether a punctuation at `time` is still to be listened to.
  bool takes_punctuation(Side side, Time time) const;

  /// Raises a clock: no row of `side` before `clock` comes any more. A clock never goes back; a lower one
  /// changes nothing.
  void advance(Side side, Time clock, Results& results);

  /// Ends both streams: what is still unmatched is emitted.
  void finish(Time time, Results& results);

  Time clock(Side side) const { return sides_[side].clock; }
  bool has_ended(Side side) const { return sides_[side].ended; }
  WindowState& state(Side side) { return sides_[side].rows; }
  const WindowState& state(Side side) const { return sides_[side].rows; }
  const Promises& promises(Side side) const { return sides_[side].promises; }
  const BinaryJoinOptions& options() const { return options_; }
  const SideCounters& counters(Side side) const { return sides_[side].counters; }
  SideCounters& counters(Side side) { return sides_[side].counters; }
  uint64_t rows_out() const { return rows_out_; }
  uint64_t punctuations_out(PropagationKind kind) const {
    return punctuations_out_[static_cast<size_t>(kind)];
  }

  size_t memory_bytes() const;
  std::string validate() const;
  void save(ArchiveWriter& out);
  void load(ArchiveReader& in);

 private:
  struct SideState {
    SideState(KeyDictionary* dictionary, PromiseOptions promised)
        : rows(dictionary), promises(rows, promised) {}
    WindowState rows;
    Promises promises;
    SideCounters counters;
    Time clock = kBeginning;
    bool ended = false;
    bool has_previous_key = false;  // for clustered streams
    Code previous_key = 0;
  };
  struct Row {
    Time time;
    Code key;
    RowRef ref;
  };
  /// The other stream's value list of a row's key, found ahead of its use; good for as long as none moves.
  struct FoundKey {
    ValueList* list;
    uint64_t moves;
  };
  struct Match {
    uint32_t row;
    uint32_t node;
  };
  /// Rows `begin` to `end` - 1 of a batch, and the punctuations that stand before, between and behind them.
  struct Block {
    const RowBatch& batch;
    size_t begin;
    size_t end;
    std::span<const KeyPunctuation> punctuations;
    size_t size() const { return end - begin + punctuations.size(); }
  };
  struct FetchedBlock;
  class Rehearsal;

  bool is_plain(Side side, const RowBatch& batch) const;
  void push_plain_block(Side side, const Block& block, Results& results);
  void push_plain_rows(Side side, const Block& block, const FetchedBlock& fetched, size_t begin, size_t end,
                       Results& results);
  void push_block(Side side, const Block& block, Results& results);
  void prefetch(Code key) const;
  void push_rehearsed(Side side, const RowBatch& batch, Predicate* predicate, Results& results);
  std::vector<Match> rehearse(Side side, const RowBatch& batch, Predicate* predicate) const;
  template <typename ForEachMatch>
  void process(Side side, const Row& row, bool null_key, FoundKey found, ForEachMatch&& for_each_match,
               Results& results);
  template <typename ForEachMatch>
  bool probe(Side side, const Row& row, ValueList& other, ForEachMatch&& for_each_match, Results& results);
  void keep_or_let_go(Side side, const Row& row, bool late, bool matched, PunctuationFlag other_flag,
                      Results& results);
  bool can_match_later(Side side, Time time, Time other_clock) const;
  void store(Side side, const Row& row, bool late, bool matched);
  void raise_clock(Side side, Time clock, Results& results);
  void after_row_left(Side side, const TNode& node, Results& results);

  void enter_cluster(Side side, const Row& row, Results& results);
  void leave_cluster(Side side);
  void take_with_plain_rows(Side side, const KeyPunctuation& punctuation, Time clock, Results& results);
  void take_with_rows(Side side, const KeyPunctuation& punctuation, Results& results);
  void purge(Side side, Code key, ValueList* list, Results& results);
  void promise(Side side, Code key, Time time, bool announce, Results& results);
  void promise_by_both(Side side, Code key, PunctuationFlag other_flag, Time time, Results& results);
  void promise_range(Side side, Code low, Code high, Time time, bool announce, Results& results);
  void close_if_empty(Side side, Code key, Results& results);
  void end_output_if_done(Time time, Results& results);

  void emit(Side side, RowRef row, RowRef partner, Results& results);
  void emit_if_unmatched(Side side, const TNode& node, Results& results);
  void propagate(PropagationKind kind, Code low, Code high, Time time, Results& results);

  const BinaryJoinOptions options_;
  std::array<SideState, 2> sides_;
  bool output_ended_ = false;
  uint64_t rows_out_ = 0;
  std::array<uint64_t, kPropagationKinds> punctuations_out_{};
};

}  // namespace streamjoin
