// Conditions of a MultiOperator from Python: a function to ask, or a tuple that names a native form.
//
//   ("compare", stream, slot, "<=", stream, slot, offset)     ("band", ..., width)     ("distance", ...,
//   radius)

#pragma once

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "arrays.h"
#include "operator_arrays.h"
#include "streamjoin/engine/multi_operator.h"

namespace streamjoin::bindings {

inline constexpr std::array<std::pair<const char*, Comparison>, 6> kComparisons{
    {{"<", Comparison::kLess},
     {"<=", Comparison::kLessEqual},
     {">", Comparison::kGreater},
     {">=", Comparison::kGreaterEqual},
     {"==", Comparison::kEqual},
     {"!=", Comparison::kNotEqual}}};

/// Asks a Python function about row references, kNoRow where a stream is not bound.
class PythonTuplePredicate : public TuplePredicate {
 public:
  explicit PythonTuplePredicate(py::function function) : function_(std::move(function)) {}
  ~PythonTuplePredicate() override {
    const py::gil_scoped_acquire acquired;
    function_ = py::function();
  }

  void evaluate(TupleView& tuples, std::span<uint8_t> holds) override {
    const std::span<const RowRef> rows = tuples.rows();
    const auto count = static_cast<py::ssize_t>(tuples.size());
    const auto streams = static_cast<py::ssize_t>(rows.size() / tuples.size());
    const py::gil_scoped_acquire acquired;
    // A copy: the function may keep the array.
    const py::array_t<uint32_t> references({count, streams, py::ssize_t{2}},
                                           reinterpret_cast<const uint32_t*>(rows.data()));
    const auto mask = py::cast<py::array_t<uint8_t, py::array::c_style>>(function_(references));
    const std::span<const uint8_t> answers = flat<uint8_t>(mask);
    if (answers.size() != holds.size()) throw UsageError("a predicate must answer for every candidate");
    std::copy(answers.begin(), answers.end(), holds.begin());
  }

 private:
  py::function function_;
};

inline NumericValue to_number(const py::handle& value) {
  if (py::isinstance<py::int_>(value)) return NumericValue::of_integer(py::cast<int64_t>(value));
  return NumericValue::of_real(py::cast<double>(value));
}

class NativePredicate {
 public:
  NativePredicate(const py::tuple& parts, const std::vector<size_t>& value_slots)
      : parts_(parts), value_slots_(value_slots) {}

  std::shared_ptr<TuplePredicate> make() const {
    const std::string form = py::cast<std::string>(parts_[0]);
    if (form == "band" && parts_.size() == 6) return make_band(slot(1, 2), slot(3, 4), to_number(parts_[5]));
    if (form == "distance" && parts_.size() == 8) {
      return make_distance(slot(1, 2), slot(1, 3), slot(4, 5), slot(4, 6), to_number(parts_[7]));
    }
    if (form == "compare" && parts_.size() == 7) {
      const Comparison op = named(kComparisons, py::cast<std::string>(parts_[3]));
      return make_compare(slot(1, 2), op, slot(4, 5), to_number(parts_[6]));
    }
    throw UsageError("unknown native predicate: " + form);
  }

 private:
  ValueSlot slot(size_t stream_at, size_t slot_at) const {
    const ValueSlot slot{py::cast<size_t>(parts_[stream_at]), py::cast<size_t>(parts_[slot_at])};
    if (slot.stream >= value_slots_.size() || slot.slot >= value_slots_[slot.stream])
      throw UsageError("a native predicate names a value that no stream pushes");
    return slot;
  }

  const py::tuple& parts_;
  const std::vector<size_t>& value_slots_;
};

}  // namespace streamjoin::bindings
