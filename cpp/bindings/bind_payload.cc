// Payload: Arrow buffers by address in, gathered buffers as NumPy arrays out.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tuple>

#include "arrays.h"
#include "docstrings.h"
#include "streamjoin/engine/payload.h"

namespace streamjoin::bindings {
namespace {

using Addresses = std::tuple<uintptr_t, uintptr_t, uintptr_t, int64_t>;

ColumnLayout to_layout(const std::pair<std::string, uint32_t>& layout) {
  const auto& [kind, width] = layout;
  if (kind == "fixed") return {ColumnKind::kFixed, width};
  if (kind == "bits") return {ColumnKind::kBits, 0};
  if (kind == "binary") return {ColumnKind::kBinary, 0};
  if (kind == "large_binary") return {ColumnKind::kLargeBinary, 0};
  if (kind == "elsewhere") return {ColumnKind::kElsewhere, 0};
  throw UsageError("unknown column layout: " + kind);
}

std::vector<ColumnLayout> to_layouts(const std::vector<std::pair<std::string, uint32_t>>& layouts) {
  std::vector<ColumnLayout> converted;
  for (const auto& layout : layouts) converted.push_back(to_layout(layout));
  return converted;
}

void put(Payload& payload, uint32_t batch, const std::vector<Addresses>& columns) {
  std::vector<ColumnBuffers> buffers;
  for (const auto& [values, offsets, validity, offset] : columns) {
    buffers.push_back({reinterpret_cast<const uint8_t*>(values), reinterpret_cast<const void*>(offsets),
                       reinterpret_cast<const uint8_t*>(validity), offset});
  }
  payload.put(batch, std::move(buffers));
}

/// Result rows of a binary join have the shape (n, 4), those of m streams (n, m, 2): the memory is the same.
StreamRows rows_of(const RowArray& rows, size_t stream) {
  const auto count = static_cast<size_t>(rows.ndim() > 0 ? rows.shape(0) : 0);
  size_t width = 1;
  for (py::ssize_t i = 1; i < rows.ndim(); ++i) width *= static_cast<size_t>(rows.shape(i));
  if (rows.ndim() < 2 || width % 2 != 0 || stream >= width / 2)
    throw UsageError("result rows must have a batch and a row number for every stream");
  return {reinterpret_cast<const RowRef*>(rows.data()) + stream, width / 2, count};
}

py::tuple gather(const Payload& payload, const RowArray& rows, size_t stream, size_t column) {
  const StreamRows refs = rows_of(rows, stream);
  GatheredColumn gathered;
  {
    const py::gil_scoped_release released;
    gathered = payload.gather(refs, column);
  }
  py::object offsets = py::none();
  if (!gathered.offsets.empty()) offsets = to_array(std::move(gathered.offsets));
  if (!gathered.large_offsets.empty()) offsets = to_array(std::move(gathered.large_offsets));
  py::object validity = py::none();
  if (gathered.null_count > 0) validity = to_array(std::move(gathered.validity));
  return py::make_tuple(to_array(std::move(gathered.values)), offsets, validity, gathered.null_count);
}

}  // namespace

void register_payload(py::module_& module) {
  using namespace py::literals;
  py::class_<Payload>(module, "Payload", doc::kPayload)
      .def(py::init([](const std::vector<std::pair<std::string, uint32_t>>& layout) {
             return Payload(to_layouts(layout));
           }),
           "layout"_a)
      .def("put", &put, doc::kPut, "batch"_a, "columns"_a)
      .def("drop", &Payload::drop, doc::kDrop, "batch"_a)
      .def("gather", &gather, doc::kGather, "rows"_a, "stream"_a, "column"_a);
}

}  // namespace streamjoin::bindings
