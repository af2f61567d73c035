#include "streamjoin/engine/payload.h"

#include <cstring>
#include <limits>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

constexpr size_t kAhead = 16;  // rows between the fetch of a value and its copy

bool missing(RowRef row) {
  return row.batch == kNoRow.batch;
}
bool bit(const uint8_t* bits, int64_t at) {
  return (bits[at >> 3] >> (at & 7)) & 1;
}
void set_bit(std::vector<uint8_t>& bits, size_t at) {
  bits[at >> 3] |= static_cast<uint8_t>(1u << (at & 7));
}

}  // namespace

void Payload::put(uint32_t batch, std::vector<ColumnBuffers> columns) {
  SJ_CHECK(columns.size() == layout_.size(), "a batch has not as many columns as its stream");
  if (batch >= batches_.size()) batches_.resize(batch + 1);
  batches_[batch] = std::move(columns);
}

GatheredColumn Payload::gather(StreamRows rows, size_t column) const {
  GatheredColumn out;
  gather_validity(rows, column, out);
  switch (layout_[column].kind) {
    case ColumnKind::kFixed:
      gather_fixed(rows, column, out);
      break;
    case ColumnKind::kBits:
      gather_bits(rows, column, out);
      break;
    case ColumnKind::kBinary:
      gather_binary(rows, column, out.offsets, out);
      break;
    case ColumnKind::kLargeBinary:
      gather_binary(rows, column, out.large_offsets, out);
      break;
    case ColumnKind::kElsewhere:
      throw UsageError("this column type is not gathered here");
  }
  return out;
}

void Payload::gather_validity(StreamRows rows, size_t column, GatheredColumn& out) const {
  bool may_be_null = false;
  for (const auto& batch : batches_) may_be_null |= !batch.empty() && batch[column].validity != nullptr;
  for (size_t i = 0; i < rows.size() && !may_be_null; ++i) may_be_null = missing(rows[i]);
  if (!may_be_null) return;
  out.validity.assign((rows.size() + 7) / 8, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowRef row = rows[i];
    bool valid = !missing(row);
    if (valid) {
      const ColumnBuffers& from = buffers(row, column);
      valid = from.validity == nullptr || bit(from.validity, from.offset + row.row);
    }
    valid ? set_bit(out.validity, i) : void(++out.null_count);
  }
}

void Payload::gather_fixed(StreamRows rows, size_t column, GatheredColumn& out) const {
  const size_t width = layout_[column].width;
  out.values.resize(rows.size() * width);
  const auto source = [&](RowRef row) {
    const ColumnBuffers& from = buffers(row, column);
    return from.values + (static_cast<size_t>(from.offset) + row.row) * width;
  };
  const auto copy = [&](auto width_of) {
    uint8_t* to = out.values.data();
    for (size_t i = 0; i < rows.size(); ++i, to += width_of()) {
      if (i + kAhead < rows.size()) {
        if (const RowRef next = rows[i + kAhead]; !missing(next)) __builtin_prefetch(source(next));
      }
      const RowRef row = rows[i];
      if (!missing(row)) std::memcpy(to, source(row), width_of());
    }
  };
  // A width known to the compiler makes the copy one load and one store.
  if (width == 8) {
    copy([] { return size_t{8}; });
  } else if (width == 4) {
    copy([] { return size_t{4}; });
  } else {
    copy([width] { return width; });
  }
}

void Payload::gather_bits(StreamRows rows, size_t column, GatheredColumn& out) const {
  out.values.assign((rows.size() + 7) / 8, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowRef row = rows[i];
    if (missing(row)) continue;
    const ColumnBuffers& from = buffers(row, column);
    if (bit(from.values, from.offset + row.row)) set_bit(out.values, i);
  }
}

template <typename Offset>
void Payload::gather_binary(StreamRows rows, size_t column, std::vector<Offset>& offsets,
                            GatheredColumn& out) const {
  const auto range = [&](RowRef row) {
    const ColumnBuffers& from = buffers(row, column);
    const Offset* at = static_cast<const Offset*>(from.offsets) + from.offset + row.row;
    return std::pair(from.values + at[0], static_cast<size_t>(at[1] - at[0]));
  };
  offsets.resize(rows.size() + 1);
  size_t total = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowRef row = rows[i];
    if (!missing(row)) total += range(row).second;
    if (total > static_cast<size_t>(std::numeric_limits<Offset>::max())) {
      throw UsageError(
          "a result column of strings is larger than 2 GiB; use large_string or smaller batches");
    }
    offsets[i + 1] = static_cast<Offset>(total);
  }
  out.values.resize(total);
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowRef row = rows[i];
    if (missing(row)) continue;
    const auto [bytes, size] = range(row);
    if (size > 0) std::memcpy(out.values.data() + offsets[i], bytes, size);
  }
}

}  // namespace streamjoin
