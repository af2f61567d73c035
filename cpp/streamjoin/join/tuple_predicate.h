// TuplePredicate: one conjunct of the residual condition of an m-way join, asked about blocks of tuples in
// which every stream it names is bound. Native forms compare numbers that the state keeps with its rows.
//
//   band       |a - b| <= width
//   distance   (ax, ay) to (bx, by) < limit
//   compare    a op b + offset
//
// Integers are compared exactly and do not overflow; where one operand is real, all are taken as reals. A
// null makes a conjunct false.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "streamjoin/state/nodes.h"
#include "streamjoin/state/numeric_value.h"

namespace streamjoin {

/// A block of tuples as a predicate sees it.
class TupleView {
 public:
  virtual ~TupleView() = default;
  virtual size_t size() const = 0;
  /// Row references, one per stream and tuple, tuple by tuple; kNoRow where a stream is not bound yet.
  virtual std::span<const RowRef> rows() = 0;
  virtual NumericValue value(size_t tuple, size_t stream, size_t slot) const = 0;
};

class TuplePredicate {
 public:
  virtual ~TuplePredicate() = default;
  /// Sets `holds[i]` to 0 where tuple i does not satisfy the conjunct. May throw: the join has changed
  /// nothing.
  virtual void evaluate(TupleView& tuples, std::span<uint8_t> holds) = 0;
};

/// A number pushed with the rows of a stream.
struct ValueSlot {
  size_t stream;
  size_t slot;
};
enum class Comparison : uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual };

std::unique_ptr<TuplePredicate> make_band(ValueSlot a, ValueSlot b, NumericValue width);
std::unique_ptr<TuplePredicate> make_distance(ValueSlot ax, ValueSlot ay, ValueSlot bx, ValueSlot by,
                                              NumericValue limit);
std::unique_ptr<TuplePredicate> make_compare(ValueSlot a, Comparison op, ValueSlot b, NumericValue offset);

/// A conjunct and the streams it names.
struct Conjunct {
  std::vector<size_t> streams;
  std::shared_ptr<TuplePredicate> predicate;
};

}  // namespace streamjoin
