// NumPy arrays and the engine's vectors and spans: views in, owned memory out, no copies.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "streamjoin/base/check.h"
#include "streamjoin/engine/output.h"

namespace streamjoin::bindings {

namespace py = pybind11;

/// A one-dimensional contiguous array as the engine reads it.
template <typename Value, typename Array>
std::span<const Value> flat(const Array& array) {
  static_assert(sizeof(Value) == sizeof(*array.data()));
  if (array.ndim() != 1)
    throw UsageError("columns must have one dimension, got " + std::to_string(array.ndim()));
  return {reinterpret_cast<const Value*>(array.data()), static_cast<size_t>(array.size())};
}

/// The array owns the vector: its memory is freed with the array.
template <typename Value>
py::array_t<Value> to_array(std::vector<Value>&& values) {
  auto owned = std::make_unique<std::vector<Value>>(std::move(values));
  const py::capsule owner(owned.get(), [](void* vector) { delete static_cast<std::vector<Value>*>(vector); });
  const std::vector<Value>* vector = owned.release();
  return py::array_t<Value>(static_cast<py::ssize_t>(vector->size()), vector->data(), owner);
}

/// Result rows as an array of four columns: left batch, left row, right batch, right row.
using RowArray = py::array_t<uint32_t, py::array::c_style>;

inline RowArray rows_to_array(std::span<const ResultRow> rows, py::handle owner) {
  static_assert(sizeof(ResultRow) == 4 * sizeof(uint32_t));
  return RowArray({static_cast<py::ssize_t>(rows.size()), py::ssize_t{4}},
                  reinterpret_cast<const uint32_t*>(rows.data()), owner);
}

}  // namespace streamjoin::bindings
