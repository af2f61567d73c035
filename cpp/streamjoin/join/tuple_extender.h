// TupleExtender: finds the results that a new row completes, by extending it stream by stream.
//
//   level 0   a7  a8                 the new rows of stream A
//   level 1   c1  c4  c9             + stream C: each with the place of its tuple in the level before
//              \__ a7   \__ a8
//   level 2   b2  b3                 + stream B: (a7, c1, b2) (a8, c9, b3)
//
// A level holds the rows of one stream, not whole tuples: what is copied for a candidate is its own row. A
// candidate is judged while the state is walked, by its time, its keys and the native predicates; predicates
// that must be called see the whole level. A level holds about kBlock tuples and is extended to the end
// before it is filled again: memory is bounded, predicates see arrays, and results come in the order of the
// rows. Nothing in the states changes.
//
// Merge (MW-join): rows of a stream are found in its time-sorted list by the period that the rows bound so
// far leave for it. Mode 1 sweeps: for each pair of streams a cursor moves over the list of the other with
// the new rows, to where their periods lie; a new row is passed over if one stream has no row there, and
// MultiJoin drops what can never match (multi_join.h). Mode 2
// joins it inside these periods, which shrink with every row bound. The period comes from the largest bound
// of all pairs (GCA) or of the streams concerned (LCA); the matrix is checked on what is let through.

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "streamjoin/join/probing_order.h"
#include "streamjoin/join/tuple_predicate.h"
#include "streamjoin/join/window_matrix.h"
#include "streamjoin/state/stream_state.h"

namespace streamjoin {

/// Numbers pushed with the rows of a batch.
struct NumericColumn {
  const int64_t* integers = nullptr;
  const double* reals = nullptr;
  const uint8_t* valid = nullptr;        // nullptr: none is null
  const NumericValue* values = nullptr;  // instead of all the others

  NumericValue at(size_t row) const {
    if (values != nullptr) return values[row];
    if (valid != nullptr && valid[row] == 0) return NumericValue::null();
    return integers != nullptr ? NumericValue::of_integer(integers[row]) : NumericValue::of_real(reals[row]);
  }
};

/// Rows of one batch, as columns: a code per class of the stream. `unmatchable`, if given, says which rows
/// can match nothing (a null key, or two keys of one class that differ); `refs`, if given, where each row's
/// payload lies: without it row i lies at {number, i}.
struct StreamBatch {
  uint32_t number;
  std::span<const Time> times;
  std::vector<std::span<const Code>> keys;
  const uint8_t* unmatchable = nullptr;
  std::vector<NumericColumn> values;
  const RowRef* refs = nullptr;

  RowRef ref(size_t i) const { return refs != nullptr ? refs[i] : RowRef{number, static_cast<uint32_t>(i)}; }
};

/// Tuples in the making, by the row each has more than those of the level before. A row is its number in the
/// batch on level 0; above, its node, or its place on the time list where states are not indexed. On level 0
/// the parent is the number under which the new row was swept.
struct TupleLevel {
  struct Tuple {
    Time time;
    uint32_t parent;
    uint32_t row;
    WindowMatrix::Mask mask;
  };
  std::vector<Tuple> tuples;

  size_t size() const { return tuples.size(); }
  const Tuple& operator[](size_t at) const { return tuples[at]; }
  void clear() { tuples.clear(); }
  void add(uint32_t parent, uint32_t row, Time time, WindowMatrix::Mask mask) {
    tuples.push_back({time, parent, row, mask});
  }
  /// Of the tuples from `from` on, keeps those whose byte is not zero.
  void keep(std::span<const uint8_t> holds, size_t from);
};

/// What extending needs to know of the join.
struct ExtensionContext {
  MultiAlgorithm algorithm;
  const WindowMatrix& matrix;
  std::span<const StreamState* const> states;
  std::span<const Conjunct> conjuncts;
};

class TupleExtender {
 public:
  static constexpr size_t kBlock = 4096;

  /// Of a join with these windows and conjuncts.
  TupleExtender(const WindowMatrix& matrix, std::span<const Conjunct> conjuncts);

  /// Whether a predicate is called that may throw; native ones never do.
  bool may_throw() const { return std::ranges::find(natives_, nullptr) != natives_.end(); }

  /// Appends the results of the rows `rows` of a batch, m row references each, to `results`. Rows of a state
  /// that are older than limits[stream] are passed over.
  void extend(const ExtensionContext& context, size_t origin, const StreamBatch& batch,
              std::span<const uint32_t> rows, std::span<const Time> limits, ProbingOrder& order,
              std::vector<RowRef>& results);

 private:
  class Block;  // a level, as a predicate sees it
  class Run;    // candidates for one tuple, as a native predicate sees them

  void extend_level(size_t level);
  void find_lists(const ProbingStep& step, size_t level);
  size_t find_by_key_alone(const ProbingStep& step, size_t level, size_t from);
  void filter(std::span<const size_t> conjuncts, size_t level);
  void append_rows(size_t level, std::vector<RowRef>& rows);

  /// Merge, mode 1: whether every stream has a row in the period of a new one; it remembers where.
  bool is_in_reach(uint32_t row);
  /// Hash: a new row after this time finds no row of some stream.
  Time last_in_reach() const;
  void enter(size_t level, size_t tuple);
  Code key_at(size_t level, size_t tuple, KeyPlace place) const;

  // These enter the tuple.
  void find_in_list(const ProbingStep& step, size_t level, uint32_t tuple);
  void find_by_key(const ProbingStep& step, size_t level, uint32_t tuple);
  void find_by_time(const ProbingStep& step, size_t level, uint32_t tuple, StreamState::Places places);
  void find_by_comparing(const ProbingStep& step, size_t level, uint32_t tuple, StreamState::Places places);
  void judge_chosen(const ProbingStep& step, size_t level, size_t before);

  // Of the tuple that was entered.
  StreamState::Places places_to_look_at(const StreamState& state, const ProbingStep& step,
                                        size_t level) const;
  void judge(const ProbingStep& step, Run& run);
  Period filter_period(size_t stream, size_t level) const;
  bool filter_is_exact(size_t stream, size_t level) const;
  void set_exact_periods(size_t stream, size_t level);
  Period widest_period() const;
  Code key_of(KeyPlace place) const;

  WindowMatrix::Mask in_time(Time time, WindowMatrix::Mask mask) const;
  bool merges() const {
    return context_->algorithm == MultiAlgorithm::kMergeGca ||
           context_->algorithm == MultiAlgorithm::kMergeLca;
  }
  bool has_indexes() const { return context_->algorithm == MultiAlgorithm::kHash; }
  Duration width(size_t a, size_t b) const;
  NumericValue value_of(ValueSlot slot, uint32_t row) const;
  RowRef reference(size_t stream, uint32_t row) const {
    if (stream == origin_) return batch_->ref(row);
    const StreamState& state = *context_->states[stream];
    return state.row(has_indexes() ? row : state.listed(row).node);
  }

  const WindowMatrix& matrix_;
  const size_t streams_;
  const Duration widest_;
  std::vector<StreamState::Cursor> cursors_;     // by origin and stream
  std::vector<const NativePredicate*> natives_;  // by conjunct; nullptr where it must be called

  // Of the call that is running.
  const ExtensionContext* context_ = nullptr;
  size_t origin_ = 0;
  const StreamBatch* batch_ = nullptr;
  std::span<const Time> limits_;
  ProbingOrder* order_ = nullptr;
  const ProbingPlan* plan_ = nullptr;
  std::vector<RowRef>* results_ = nullptr;
  std::vector<TupleLevel> levels_;
  std::vector<size_t> stream_of_;              // by level
  std::vector<uint8_t> exact_;                 // by level: see filter_is_exact
  std::vector<StreamState::Places> in_reach_;  // merge: by new row and stream
  std::vector<uint32_t> bound_rows_;           // by stream, as `enter` found them
  std::vector<Time> bound_times_;
  uint32_t swept_ = 0;           // the number under which the new row of the tuple was swept
  std::vector<Period> periods_;  // by alternative
  std::vector<Code> keys_;
  std::vector<std::vector<const INode*>> lists_;  // hash: by level, the value list that each tuple asks for
  std::vector<uint8_t> holds_;
  std::vector<uint32_t> chosen_rows_;
  std::vector<RowRef> result_;
  std::vector<std::pair<std::vector<uint64_t>, std::vector<uint8_t>>> gathered_;  // by slot
};

}  // namespace streamjoin
