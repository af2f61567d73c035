// The window kernels as functions on NumPy arrays: int64 columns in, int64 row numbers out.
//
// Inputs are read where they are when they are contiguous int64 (bool for validity); narrower integers and
// strided arrays are copied, anything that does not fit is a TypeError. Results are moved into the arrays
// that are returned, not copied. The GIL is released while a kernel runs: the caller must not write to the
// inputs meanwhile.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.h"
#include "streamjoin/engine/window_kernel.h"

namespace py = pybind11;

namespace streamjoin::bindings {
namespace {

using Column = py::array_t<int64_t, py::array::c_style>;
using Validity = std::optional<py::array_t<bool, py::array::c_style>>;

constexpr const char* kJoinDoc =
    "Row numbers of all pairs with equal valid keys and lower <= right time - left time <= upper, by left "
    "row, then by the right "
    "row's time and number. Bounds at the 64-bit extremes are open.";
constexpr const char* kSemiDoc =
    "Left rows that have a match under the same bounds as window_join, ascending.";
constexpr const char* kAntiDoc =
    "Left rows that have no match under the same bounds as window_join, ascending.";

TimedKeyColumns columns(const Column& keys, const Column& times, const Validity& valid) {
  TimedKeyColumns side{.keys = flat<int64_t>(keys), .times = flat<int64_t>(times)};
  if (valid) side.valid = flat<uint8_t>(*valid);
  return side;
}

auto without_gil(auto kernel, const TimedKeyColumns& left, const TimedKeyColumns& right, Duration lower,
                 Duration upper) {
  const py::gil_scoped_release released;
  return kernel(left, right, lower, upper);
}

template <auto kKernel>
void define(py::module_& module, const char* name, const char* doc) {
  using namespace py::literals;
  const auto call = [](const Column& left_keys, const Column& left_times, const Column& right_keys,
                       const Column& right_times, Duration lower, Duration upper, const Validity& left_valid,
                       const Validity& right_valid) {
    auto result = without_gil(kKernel, columns(left_keys, left_times, left_valid),
                              columns(right_keys, right_times, right_valid), lower, upper);
    if constexpr (std::is_same_v<decltype(result), RowPairs>) {
      return std::make_pair(to_array(std::move(result.left)), to_array(std::move(result.right)));
    } else {
      return to_array(std::move(result));
    }
  };
  module.def(name, call, doc, "left_keys"_a, "left_times"_a, "right_keys"_a, "right_times"_a, "lower"_a,
             "upper"_a, "left_valid"_a = py::none(), "right_valid"_a = py::none());
}

}  // namespace

void register_kernels(py::module_& module) {
  define<&window_join>(module, "window_join", kJoinDoc);
  define<&window_semi_join>(module, "window_semi_join", kSemiDoc);
  define<&window_anti_join>(module, "window_anti_join", kAntiDoc);
}

}  // namespace streamjoin::bindings
