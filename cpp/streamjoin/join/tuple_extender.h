// TupleExtender: finds the results that a new row completes, by extending it stream by stream.
//
//   block of tuples     (a7, -, -)  (a8, -, -)          the new rows of stream A
//     + stream C        (a7, -, c1) (a7, -, c4) ...     each candidate in time with all rows bound so far
//     + stream B        (a7, b2, c1) ...                predicates run as soon as their streams are bound
//
// A block holds at most kBlock tuples and is extended to the end before the next one is begun: memory is
// bounded, predicates see arrays, and results come in the order of the rows. Nothing in the states changes.
//
// Merge (MW-join): rows of a stream are found in its time-sorted list by the period that the rows bound so
// far leave for it. Mode 1 asks first whether every stream has a row in the new row's period, and passes over
// the row if one has none; mode 2 joins it. The period comes from the largest bound of all pairs (GCA) or of
// the streams concerned (LCA); the matrix is checked on what it lets through.

#pragma once

#include <cstdint>
#include <span>
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

/// Tuples in the making: per stream a node of its state (for the new row: its number in the batch) and a
/// time.
struct TupleBlock {
  std::vector<uint32_t> nodes;
  std::vector<Time> times;
  std::vector<WindowMatrix::Mask> masks;

  size_t size() const { return masks.size(); }
  void clear() {
    nodes.clear();
    times.clear();
    masks.clear();
  }
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

  /// The widest window of each stream, and of all.
  explicit TupleExtender(const WindowMatrix& matrix);

  /// Appends the results of the rows `rows` of a batch, m row references each, to `results`. Rows of a state
  /// that are older than limits[stream] are passed over.
  void extend(const ExtensionContext& context, size_t origin, const StreamBatch& batch,
              std::span<const uint32_t> rows, std::span<const Time> limits, ProbingOrder& order,
              std::vector<RowRef>& results);

 private:
  class View;

  void extend_block(size_t step, TupleBlock& block);
  template <typename Candidate>
  void candidates(const ProbingStep& step, const TupleBlock& block, size_t tuple, Candidate&& candidate);
  Code key_of(const TupleBlock& block, size_t tuple, KeyPlace place) const;
  Period loose_period(size_t stream, const TupleBlock& block, size_t tuple) const;
  void periods(size_t stream, const TupleBlock& block, size_t tuple);
  bool every_stream_has_a_row(Time time) const;
  void filter(std::span<const size_t> conjuncts, TupleBlock& block);
  void emit(const TupleBlock& block);
  Duration width(size_t a, size_t b) const;

  const WindowMatrix& matrix_;
  size_t streams_;
  std::vector<Duration> widest_of_;
  Duration widest_ = 0;
  bool uniform_ = true;  // one window for all pairs: a period is exact

  // Of the call that is running.
  const ExtensionContext* context_ = nullptr;
  size_t origin_ = 0;
  const StreamBatch* batch_ = nullptr;
  std::span<const Time> limits_;
  ProbingOrder* order_ = nullptr;
  const ProbingPlan* plan_ = nullptr;
  std::vector<RowRef>* results_ = nullptr;
  std::vector<TupleBlock> blocks_;  // one per step
  std::vector<bool> bound_;
  std::vector<size_t> bound_list_;
  std::vector<Period> periods_;  // by alternative
  std::vector<uint8_t> holds_;
};

}  // namespace streamjoin
