#include "streamjoin/engine/key_encoder.h"

#include <algorithm>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

const char* bytes_of(const KeyColumn& column) {
  return static_cast<const char*>(column.values);
}

std::string_view content(const KeyColumn& column, size_t row) {
  const int64_t from = column.offsets[row];
  return {bytes_of(column) + from, static_cast<size_t>(column.offsets[row + 1] - from)};
}

char* write_attribute(char* out, const KeyColumn& column, size_t row) {
  if (column.is_null(row)) return write_null(out);
  switch (column.type.kind) {
    case AttributeKind::kInteger:
      return write_integer(out, static_cast<const int64_t*>(column.values)[row]);
    case AttributeKind::kReal:
      return write_real(out, static_cast<const double*>(column.values)[row]);
    case AttributeKind::kBytes:
      return write_bytes(out, content(column, row));
    case AttributeKind::kDecimal:
      return write_decimal(out, bytes_of(column) + row * column.type.width, column.type.width);
  }
  return out;
}

/// Room for the attributes of rows first .. first + rows - 1, whichever are null.
size_t room(const KeyColumn& column, size_t first, size_t rows) {
  if (column.type.kind != AttributeKind::kBytes) return rows * largest_encoding(column.type);
  if (rows == 0) return 0;
  const char* from = bytes_of(column) + column.offsets[first];
  const char* to = bytes_of(column) + column.offsets[first + rows];
  return rows * 3 + static_cast<size_t>(to - from) + static_cast<size_t>(std::count(from, to, '\0'));
}

}  // namespace

KeyEncoder::KeyEncoder(std::vector<AttributeType> types, std::vector<bool> null_safe)
    : splitter_(std::move(types)), null_safe_(std::move(null_safe)) {
  if (this->types().size() != null_safe_.size()) {
    throw UsageError("a key needs to know of each attribute whether null equals null");
  }
  direct_ = this->types().size() == 1 && this->types()[0].kind == AttributeKind::kInteger && !null_safe_[0];
}

void KeyEncoder::check(std::span<const KeyColumn> columns) const {
  const bool same = std::ranges::equal(columns, types(), {}, &KeyColumn::type);
  SJ_CHECK(same, "key columns differ in number or type from the key");
}

bool KeyEncoder::null_key(std::span<const KeyColumn> columns, size_t row) const {
  for (size_t at = 0; at < columns.size(); ++at) {
    if (columns[at].is_null(row) && !null_safe_[at]) return true;
  }
  return false;
}

void KeyEncoder::encode(std::span<const KeyColumn> columns, size_t row, std::string& out) const {
  check(columns);
  size_t most = 0;
  for (const KeyColumn& column : columns) most += room(column, row, 1);
  out.resize(most);
  char* end = out.data();
  for (const KeyColumn& column : columns) end = write_attribute(end, column, row);
  out.resize(static_cast<size_t>(end - out.data()));
}

void KeyEncoder::encode_all(std::span<const KeyColumn> columns, size_t rows, std::string& arena,
                            std::vector<uint64_t>& ends) const {
  check(columns);
  size_t most = 0;
  for (const KeyColumn& column : columns) most += room(column, 0, rows);
  arena.resize(most);
  ends.resize(rows);
  char* const start = arena.data();
  char* end = start;
  for (size_t row = 0; row < rows; ++row) {
    for (const KeyColumn& column : columns) end = write_attribute(end, column, row);
    ends[row] = static_cast<uint64_t>(end - start);
  }
  arena.resize(static_cast<size_t>(end - start));
}

}  // namespace streamjoin
