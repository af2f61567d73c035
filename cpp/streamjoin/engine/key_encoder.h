// KeyEncoder: the key columns of a batch to keys of bytes.
//
//   columns   country "de" "fr"  null        arena  [de|7][fr|9][null|7]
//             shop      7    9     7         ends        ^    ^       ^
//
// A key is null, and matches nothing, if an attribute that is compared with `=` is null; with `<=>` null is a
// value like others. Null keys are encoded all the same, so that row and key stay in step.
// Cost: linear in the bytes; encode_all allocates at most twice a batch, nothing when its buffers are reused.
// Immutable after construction; any thread. Columns are borrowed for the call.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "streamjoin/base/key_bytes.h"

namespace streamjoin {

/// One key column of a batch. `values`: int64_t, double, bytes (row r is offsets[r] to offsets[r + 1]) or
/// `type.width` bytes a row.
struct KeyColumn {
  AttributeType type;
  const void* values = nullptr;
  const int64_t* offsets = nullptr;  // kBytes only: one more than there are rows
  const uint8_t* valid = nullptr;    // a byte a row, 0 = null; nullptr: none is null

  bool is_null(size_t row) const { return valid != nullptr && valid[row] == 0; }
};

class KeyEncoder {
 public:
  /// `null_safe[i]`: attribute i is compared with `<=>`. UsageError if the two differ in length.
  KeyEncoder(std::vector<AttributeType> types, std::vector<bool> null_safe);

  /// One integer attribute that is not null-safe: its value is its own code, and nothing needs encoding.
  bool direct() const { return direct_; }
  /// An attribute that is not null-safe is null in this row.
  bool null_key(std::span<const KeyColumn> columns, size_t row) const;

  /// The key of one row, into `out` (replaced).
  void encode(std::span<const KeyColumn> columns, size_t row, std::string& out) const;
  /// The keys of all rows, one behind the other, into `arena`; the key of row r ends at ends[r]. Both are
  /// replaced.
  void encode_all(std::span<const KeyColumn> columns, size_t rows, std::string& arena,
                  std::vector<uint64_t>& ends) const;

  const std::vector<AttributeType>& types() const { return splitter_.types(); }
  const AttributeSplitter& splitter() const { return splitter_; }

 private:
  void check(std::span<const KeyColumn> columns) const;

  AttributeSplitter splitter_;
  std::vector<bool> null_safe_;
  bool direct_;
};

}  // namespace streamjoin
