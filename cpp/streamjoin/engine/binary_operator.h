// BinaryOperator: the join of two streams as Python and Spark call it, one batch at a time.
//
//   key columns -> KeySpace -> codes -> BinaryJoin -> row references, codes -> Output
//
// It knows keys of every kind and patterns over them; the join knows codes alone. It knows no payload: rows
// are references to numbered batches that the caller keeps until `take_empty_batches` names them. A call that
// throws has changed nothing. One thread.

#pragma once

#include <array>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamjoin/engine/disorder_input.h"
#include "streamjoin/engine/key_space.h"
#include "streamjoin/engine/output.h"
#include "streamjoin/join/binary_join.h"

namespace streamjoin {

struct OperatorOptions {
  BinaryJoinOptions join;
  /// One type per equality of the query. None: every row has the same key.
  std::vector<AttributeType> key_types;
  std::vector<bool> null_safe;
  /// Without it each stream comes in order by itself.
  std::optional<DisorderOptions> disorder = std::nullopt;
  /// Of rows that wait, which join in calls of every kind.
  std::shared_ptr<Predicate> waiting_predicate = nullptr;
};

/// Punctuations of single keys that come with a batch of rows, as columns: promise i stands in front of row
/// `before[i]`, behind all rows if that is their number; `before` ascends. A time of kBeginning means behind
/// all rows, at the clock they leave.
struct PromisedKeys {
  std::span<const int64_t> before;
  std::span<const Time> times;
  std::span<const KeyColumn> keys;
  size_t size() const { return before.size(); }
};

struct OperatorStats {
  std::array<SideCounters, 2> counters;
  std::array<uint64_t, 2> state_rows{};
  std::array<uint64_t, 2> state_keys{};
  std::array<uint64_t, 2> dead_rows{};
  std::array<uint64_t, 2> promises_held{};
  std::array<Time, 2> clocks{};
  uint64_t rows_out = 0;
  std::array<uint64_t, kPropagationKinds> punctuations_out{};
  uint64_t dictionary_entries = 0;
  uint64_t state_bytes = 0;
};

class BinaryOperator {
 public:
  explicit BinaryOperator(OperatorOptions options);

  /// Joins the rows of a batch, and takes the punctuations between them. Throws RefusedBatch under an error
  /// policy, and whatever the predicate throws. Streams out of order take punctuations in calls of their own.
  Output push(Side side, uint32_t batch, std::span<const Time> times, std::span<const KeyColumn> keys,
              Predicate* predicate, const PromisedKeys& promised = {});
  /// No row of `side` that matches one of the patterns comes any more; `time` is kBeginning if the source
  /// knows none.
  Output punctuate(Side side, std::vector<KeyPattern> patterns, Time time);
  /// No row of `side` at or before `time` comes any more.
  Output advance(Side side, Time time);
  /// Both streams have ended.
  Output finish();
  /// The wall clock, for streams that are idle by it. What comes of it is given out by the next call.
  void look_at_clock(Time now);
  /// Whether the rows of the last push are here although it threw: they wait, and join in a later call.
  bool took_batch() const { return disorder_ && disorder_->took_batch(); }

  // Rows that wait for their turn count as rows of their batch.
  std::vector<uint32_t> take_empty_batches(Side side);
  size_t rows_of_batch(Side side, uint32_t batch) const;
  size_t live_rows(Side side) const;
  std::vector<RowRef> move_rows_to(Side side, uint32_t batch);
  /// Null where streams come in order.
  const DisorderStage* disorder() const { return disorder_ ? &disorder_->stage() : nullptr; }

  /// Frees dead rows first, so that the counts are those of live ones.
  OperatorStats stats();
  const std::vector<AttributeType>& key_types() const { return keys_.encoder().types(); }
  Time clock(Side side) const { return join_->clock(side); }
  /// Names the first broken invariant of any part, or is empty.
  std::string validate() const;

  /// Everything but the payload. The rows of a stream are those of `move_rows_to`, in that order, as batch 0.
  std::string save();
  /// Replaces the state of an operator with the same options. Throws DamagedArchive; the operator is then of
  /// no further use.
  void load(std::string_view bytes);

 private:
  /// A pattern that is propagated as a whole once the last of its keys with rows has been.
  struct PendingPattern {
    KeyPattern pattern;
    std::set<Code> open;
    Time time;
    Time until;
  };
  struct PropagatedPattern {
    PropagationKind kind;
    KeyPattern pattern;
    Time time;
    Time until;
  };

  /// Rows in order, and what they leave until a call gives it out.
  class Ordered;

  void expect_disorder(OperatorOptions options);
  Output push_disordered(Side side, uint32_t batch, std::span<const Time> times,
                         std::span<const KeyColumn> keys, const uint8_t* null_keys);
  Output punctuate_disordered(Side side, std::vector<KeyPattern> patterns, Time time);
  Output advance_disordered(Side side, Time time);
  Results finish_disordered();
  Output give_out();
  void save_waiting(ArchiveWriter& out);
  void load_waiting(ArchiveReader& in);
  void check_promised(const PromisedKeys& promised, size_t rows) const;
  void order_promised(const PromisedKeys& promised, std::span<const Code> codes, Time time_of_none);
  void apply(Side side, std::vector<KeyPattern> patterns, Time time, Results& results);
  bool apply_integers(Side side, std::span<const KeyPattern> patterns, Time time, Results& results);
  void punctuate_one(Side side, const KeyPattern& pattern, Time time, Results& results);
  void punctuate_direct(Side side, const AttributePattern& pattern, Time time, Results& results);
  void punctuate_keys(Side side, const KeyPattern& pattern, Time time, Results& results);
  void propagate(PropagationKind kind, const KeyPattern& pattern, Time time);
  void propagate_overlaps(Side side, const KeyPattern& pattern, Time time);
  void expire_patterns();
  void free_dead_rows();
  Output finish_call(Results&& results);
  void close_pending(const Results& results);
  OutputPunctuations punctuation_columns(const Results& results);
  KeyPattern any_pattern() const;

  KeySpace keys_;
  std::unique_ptr<BinaryJoin> join_;
  std::array<std::vector<PendingPattern>, 2> pending_;
  std::vector<PropagatedPattern> propagated_;
  std::array<uint64_t, kPropagationKinds> patterns_out_{};
  std::vector<Code> codes_;
  std::vector<Code> promised_codes_;
  std::vector<KeyPunctuation> punctuations_;
  std::vector<uint8_t> null_keys_;
  std::shared_ptr<Ordered> ordered_;  // shared, for only one source knows the type
  std::unique_ptr<DisorderInput> disorder_;
};

}  // namespace streamjoin
