// TuplePredicate: one conjunct of the residual condition of an m-way join.
//
//   evaluate   asked about a block of tuples in which every stream it names is bound
//   judge      native forms alone: asked about a run of rows that may extend one tuple, before any is copied
//
//   band       |a - b| <= width
//   distance   (ax, ay) to (bx, by) < limit
//   compare    a op b + offset
//
// Native forms compare numbers that the state keeps with its rows; where those of a run are all real, or all
// integers, the run is one loop over an array. Integers are compared exactly and do not overflow; where one
// operand is real, all are taken as reals. A null makes a conjunct false. Native forms never throw.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "streamjoin/state/nodes.h"
#include "streamjoin/state/numeric_value.h"
#include "streamjoin/state/time_columns.h"

namespace streamjoin {

/// A number pushed with the rows of a stream.
struct ValueSlot {
  size_t stream;
  size_t slot;
};

/// A block of tuples as a predicate sees it.
class TupleView {
 public:
  virtual ~TupleView() = default;
  virtual size_t size() const = 0;
  /// Row references, one per stream and tuple, tuple by tuple; kNoRow where a stream is not bound yet.
  virtual std::span<const RowRef> rows() = 0;
  virtual NumericValue value(size_t tuple, size_t stream, size_t slot) const = 0;
};

/// One tuple, and a run of rows of one more stream that may extend it.
class RunView {
 public:
  virtual ~RunView() = default;
  /// The stream of the run.
  virtual size_t stream() const = 0;
  /// A number of the tuple.
  virtual NumericValue bound(ValueSlot slot) const = 0;
  /// The numbers of the run in a slot of its stream.
  virtual ValueRun run(size_t slot) = 0;
};

class TuplePredicate {
 public:
  virtual ~TuplePredicate() = default;
  /// Sets `holds[i]` to 0 where tuple i does not satisfy the conjunct. May throw: the join has changed
  /// nothing.
  virtual void evaluate(TupleView& tuples, std::span<uint8_t> holds) = 0;
};

class NativePredicate : public TuplePredicate {
 public:
  void evaluate(TupleView& tuples, std::span<uint8_t> holds) final;
  /// Sets `holds[i]` to 0 where row i of the run does not satisfy the conjunct with the tuple.
  void judge(RunView& run, std::span<uint8_t> holds) const;

 protected:
  static constexpr size_t kMostSlots = 4;

  explicit NativePredicate(std::vector<ValueSlot> slots) : slots_(std::move(slots)) {}

  /// `values` as the slots stand; none is null.
  virtual bool holds(const NumericValue* values) const = 0;
  /// Judges a run whose first or second half of the slots is `bound`, and the other half arrays of one kind.
  /// False if there is no loop for it.
  virtual bool judge_reals(bool first_bound, const double* bound, const double* const* run,
                           std::span<uint8_t> holds) const = 0;
  virtual bool judge_integers(bool first_bound, const int64_t* bound, const int64_t* const* run,
                              std::span<uint8_t> holds) const = 0;

 private:
  bool judge_arrays(bool first_bound, const NumericValue* bound, const ValueRun* run,
                    std::span<uint8_t> holds) const;

  std::vector<ValueSlot> slots_;
};

enum class Comparison : uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual };

std::unique_ptr<NativePredicate> make_band(ValueSlot a, ValueSlot b, NumericValue width);
std::unique_ptr<NativePredicate> make_distance(ValueSlot ax, ValueSlot ay, ValueSlot bx, ValueSlot by,
                                               NumericValue limit);
std::unique_ptr<NativePredicate> make_compare(ValueSlot a, Comparison op, ValueSlot b, NumericValue offset);

/// A conjunct and the streams it names.
struct Conjunct {
  std::vector<size_t> streams;
  std::shared_ptr<TuplePredicate> predicate;
};

}  // namespace streamjoin
