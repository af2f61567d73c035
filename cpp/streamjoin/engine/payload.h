// Payload: the stored columns of one stream, and the gathering of result columns from them.
//
//   result rows   (batch 7, row 3) (batch 9, row 0) ...       late materialisation: references until the very
//   end batches       7 -> [column buffers]   9 -> [column buffers]
//
// The buffers belong to Arrow and are kept alive by the caller; here are only their addresses. A result row
// reads its batch's buffer directly, so a column costs the same whether the window lies in two batches or in
// two thousand. Fixed-width, boolean, and binary columns (with 32- or 64-bit offsets) are gathered here;
// other types by the caller.

#pragma once

#include <cstdint>
#include <vector>

#include "streamjoin/state/nodes.h"

namespace streamjoin {

enum class ColumnKind : uint8_t { kFixed, kBits, kBinary, kLargeBinary, kElsewhere };

struct ColumnLayout {
  ColumnKind kind = ColumnKind::kElsewhere;
  uint32_t width = 0;  // bytes a value, of kFixed
};

/// One column of one batch, in Arrow's layout; `validity` is a bitmap or nullptr; `offset` rows lie before
/// the first.
struct ColumnBuffers {
  const uint8_t* values = nullptr;
  const void* offsets = nullptr;
  const uint8_t* validity = nullptr;
  int64_t offset = 0;
};

/// A gathered column, in Arrow's layout. `validity` is empty when no value is null.
struct GatheredColumn {
  std::vector<uint8_t> values;
  std::vector<int64_t> large_offsets;
  std::vector<int32_t> offsets;
  std::vector<uint8_t> validity;
  int64_t null_count = 0;
};

/// The references of one stream among result rows, each of which names `streams` rows one behind the other.
struct StreamRows {
  const RowRef* first = nullptr;
  size_t streams = 0;
  size_t count = 0;

  size_t size() const { return count; }
  RowRef operator[](size_t i) const { return first[i * streams]; }
};

class Payload {
 public:
  explicit Payload(std::vector<ColumnLayout> layout) : layout_(std::move(layout)) {}

  void put(uint32_t batch, std::vector<ColumnBuffers> columns);
  void drop(uint32_t batch) { batches_[batch].clear(); }

  /// The values of `column` for these rows; null where a row is missing (an outer side).
  GatheredColumn gather(StreamRows rows, size_t column) const;

 private:
  const ColumnBuffers& buffers(RowRef row, size_t column) const { return batches_[row.batch][column]; }
  void gather_validity(StreamRows rows, size_t column, GatheredColumn& out) const;
  void gather_fixed(StreamRows rows, size_t column, GatheredColumn& out) const;
  void gather_bits(StreamRows rows, size_t column, GatheredColumn& out) const;
  template <typename Offset>
  void gather_binary(StreamRows rows, size_t column, std::vector<Offset>& offsets, GatheredColumn& out) const;

  std::vector<ColumnLayout> layout_;
  std::vector<std::vector<ColumnBuffers>> batches_;  // by number; empty: not held
};

}  // namespace streamjoin
