// What the operators of two and of many streams take from Python and give back to it: options by name, key
// columns, refused rows, punctuations.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "streamjoin/engine/key_encoder.h"
#include "streamjoin/engine/multi_operator.h"
#include "streamjoin/engine/output.h"

namespace streamjoin::bindings {

using KeyArrays = std::tuple<py::array, std::optional<py::array_t<int64_t, py::array::c_style>>,
                             std::optional<py::array_t<uint8_t, py::array::c_style>>>;
using Times = py::array_t<int64_t, py::array::c_style>;

template <typename Value, size_t kCount>
Value named(const std::array<std::pair<const char*, Value>, kCount>& names, const std::string& name) {
  for (const auto& [known, value] : names) {
    if (name == known) return value;
  }
  throw UsageError("unknown option: " + name);
}

inline constexpr std::array<std::pair<const char*, LatePolicy>, 3> kLatePolicies{
    {{"drop", LatePolicy::kDrop}, {"insert", LatePolicy::kInsert}, {"error", LatePolicy::kError}}};
inline constexpr std::array<std::pair<const char*, ViolationPolicy>, 3> kViolationPolicies{
    {{"drop", ViolationPolicy::kDrop}, {"keep", ViolationPolicy::kKeep}, {"error", ViolationPolicy::kError}}};
inline constexpr std::array<std::pair<const char*, Implies>, 3> kImplies{
    {{"nothing", Implies::kNothing}, {"unique", Implies::kUnique}, {"clustered", Implies::kClustered}}};
inline constexpr std::array<std::pair<const char*, AttributeKind>, 4> kAttributeKinds{
    {{"integer", AttributeKind::kInteger},
     {"real", AttributeKind::kReal},
     {"bytes", AttributeKind::kBytes},
     {"decimal", AttributeKind::kDecimal}}};

inline std::vector<KeyColumn> to_key_columns(const std::vector<KeyArrays>& keys,
                                             const std::vector<AttributeType>& types) {
  if (keys.size() != types.size()) throw UsageError("one key column per join attribute is needed");
  std::vector<KeyColumn> columns;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto& [values, offsets, valid] = keys[i];
    columns.push_back(
        {types[i], values.data(), offsets ? offsets->data() : nullptr, valid ? valid->data() : nullptr});
  }
  return columns;
}

inline std::string encode(AttributeType type, const py::handle& value) {
  std::string out;
  if (value.is_none()) {
    append_null(out);
    return out;
  }
  switch (type.kind) {
    case AttributeKind::kInteger:
      append_integer(out, py::cast<int64_t>(value));
      break;
    case AttributeKind::kReal:
      append_real(out, py::cast<double>(value));
      break;
    case AttributeKind::kBytes:
      append_bytes(out, py::cast<std::string>(value));
      break;
    case AttributeKind::kDecimal: {
      const std::string bytes = py::cast<std::string>(value);
      if (bytes.size() != type.width) throw UsageError("a decimal must have as many bytes as its attribute");
      append_decimal(out, bytes.data(), type.width);
      break;
    }
  }
  return out;
}

inline AttributePattern to_pattern(AttributeType type, const std::optional<py::tuple>& pattern) {
  if (!pattern) return AttributePattern::any();
  if (pattern->size() == 1) return AttributePattern::constant(encode(type, (*pattern)[0]));
  AttributePattern range = AttributePattern::not_null();
  const py::object low = (*pattern)[0];
  const py::object high = (*pattern)[1];
  range.low_open = low.is_none();
  range.high_open = high.is_none();
  if (!range.low_open) range.low = encode(type, low);
  if (!range.high_open) range.high = encode(type, high);
  return range;
}

inline std::vector<KeyPattern> to_patterns(
    const std::vector<AttributeType>& types,
    const std::vector<std::vector<std::optional<py::tuple>>>& patterns) {
  std::vector<KeyPattern> converted;
  for (const auto& pattern : patterns) {
    if (pattern.size() != types.size()) throw UsageError("one pattern per join attribute is needed");
    KeyPattern& attributes = converted.emplace_back();
    for (size_t i = 0; i < pattern.size(); ++i)
      attributes.attributes.push_back(to_pattern(types[i], pattern[i]));
  }
  return converted;
}

inline py::tuple column_arrays(AttributeColumn&& column) {
  py::object offsets = py::none();
  py::object values;
  switch (column.type.kind) {
    case AttributeKind::kInteger:
      values = to_array(std::move(column.integers));
      break;
    case AttributeKind::kReal:
      values = to_array(std::move(column.reals));
      break;
    case AttributeKind::kBytes:
      offsets = to_array(std::move(column.ends));
      [[fallthrough]];
    case AttributeKind::kDecimal:
      values = to_array(std::vector<uint8_t>(column.bytes.begin(), column.bytes.end()));
      break;
  }
  return py::make_tuple(values, offsets, to_array(std::move(column.valid)));
}

inline py::tuple punctuation_arrays(OutputPunctuations& punctuations) {
  py::list attributes;
  for (auto& [constant, low, high] : punctuations.attributes) {
    attributes.append(py::make_tuple(column_arrays(std::move(constant)), column_arrays(std::move(low)),
                                     column_arrays(std::move(high))));
  }
  return py::make_tuple(to_array(std::move(punctuations.kinds)), to_array(std::move(punctuations.times)),
                        to_array(std::move(punctuations.untils)), attributes);
}

inline py::tuple refused_arrays(const std::vector<RefusedRow>& refused) {
  std::vector<uint8_t> sides;
  std::vector<uint32_t> batches;
  std::vector<uint32_t> rows;
  std::vector<Duration> late_by;
  for (const RefusedRow& row : refused) {
    sides.push_back(static_cast<uint8_t>(row.side));
    batches.push_back(row.row.batch);
    rows.push_back(row.row.row);
    late_by.push_back(row.late_by);
  }
  return py::make_tuple(to_array(std::move(sides)), to_array(std::move(batches)), to_array(std::move(rows)),
                        to_array(std::move(late_by)));
}

inline py::array_t<uint32_t> references_to_array(std::span<const RowRef> references) {
  std::vector<uint32_t> flat_refs;
  for (const RowRef row : references) {
    flat_refs.push_back(row.batch);
    flat_refs.push_back(row.row);
  }
  const auto rows = static_cast<py::ssize_t>(references.size());
  return to_array(std::move(flat_refs)).reshape({rows, py::ssize_t{2}});
}

inline py::object clock_or_none(Time clock) {
  return clock == kBeginning ? py::object(py::none()) : py::cast(clock);
}

}  // namespace streamjoin::bindings
