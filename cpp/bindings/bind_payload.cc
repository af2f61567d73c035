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

py::tuple gather(const Payload& payload, const RowArray& rows, int side, size_t column) {
  const std::span<const ResultRow> span = array_to_rows(rows);
  GatheredColumn gathered;
  {
    const py::gil_scoped_release released;
    gathered = payload.gather(span, static_cast<Side>(side), column);
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
      .def("gather", &gather, doc::kGather, "rows"_a, "side"_a, "column"_a);
}

}  // namespace streamjoin::bindings
