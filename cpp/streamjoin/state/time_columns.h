// TimeColumns: keys and numbers of a stream's rows as arrays, in the order of the time list.
//
//   time list   [t=3 T][t=3 T][t=7 T][t=9 T]
//   key 0       [  180][    7][  180][   31]      so the rows of a period are one run in every array, and
//   value 0     [  2.5][ null][  1.0][  8.5]      what is asked of them is asked of neighbours in memory
//
// Invariants (validate() checks them):
//   1. Every array is as long as the time list, entries that are gone included.
//   2. The counts of kinds are those of the kinds.
// Cost: what the time list pays. Owned by one StreamState; one thread.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "streamjoin/base/code.h"
#include "streamjoin/state/numeric_value.h"

namespace streamjoin {

/// Numbers of one slot for a run of rows. Where all are of one kind, `kinds` need not be read.
struct ValueRun {
  const uint64_t* bits = nullptr;
  const uint8_t* kinds = nullptr;
  bool all_real = false;
  bool all_integer = false;

  NumericValue at(size_t i) const { return NumericValue::of_bits(bits[i], kinds[i]); }
};

class TimeColumns {
 public:
  TimeColumns() = default;
  TimeColumns(size_t keys, size_t values) : keys_(keys), values_(values) {}

  void insert(size_t place, std::span<const Code> keys, std::span<const NumericValue> values) {
    for (size_t i = 0; i < keys_.size(); ++i) keys_[i].insert(at(keys_[i], place), keys[i]);
    for (size_t i = 0; i < values_.size(); ++i) {
      Values& column = values_[i];
      column.bits.insert(at(column.bits, place), values[i].bits());
      column.kinds.insert(at(column.kinds, place), values[i].kind());
      ++column.of_kind[values[i].kind()];
    }
  }
  void erase_front(size_t count) {
    for (auto& column : keys_) column.erase(column.begin(), at(column, count));
    for (Values& column : values_) {
      for (size_t i = 0; i < count; ++i) --column.of_kind[column.kinds[i]];
      column.bits.erase(column.bits.begin(), at(column.bits, count));
      column.kinds.erase(column.kinds.begin(), at(column.kinds, count));
    }
  }
  /// Keeps the entries at these places, which ascend.
  void keep(std::span<const uint32_t> places) {
    for (auto& column : keys_) keep(column, places);
    for (Values& column : values_) {
      keep(column.bits, places);
      keep(column.kinds, places);
      column.of_kind = {};
      for (const uint8_t kind : column.kinds) ++column.of_kind[kind];
    }
  }
  void shrink_to_fit() {
    for (auto& column : keys_) column.shrink_to_fit();
    for (Values& column : values_) {
      column.bits.shrink_to_fit();
      column.kinds.shrink_to_fit();
    }
  }

  /// From a place on.
  const Code* keys(size_t number, size_t place) const { return keys_[number].data() + place; }
  ValueRun values(size_t slot, size_t place) const {
    const Values& column = values_[slot];
    return {column.bits.data() + place, column.kinds.data() + place,
            column.of_kind[NumericValue::kRealKind] == column.kinds.size(),
            column.of_kind[NumericValue::kIntegerKind] == column.kinds.size()};
  }

  size_t memory_bytes() const {
    size_t bytes = 0;
    for (const auto& column : keys_) bytes += column.capacity() * sizeof(Code);
    for (const Values& column : values_)
      bytes += column.bits.capacity() * sizeof(uint64_t) + column.kinds.capacity();
    return bytes;
  }
  std::string validate(size_t entries) const {
    for (const auto& column : keys_) {
      if (column.size() != entries) return "time columns: keys are not as long as the time list";
    }
    for (const Values& column : values_) {
      if (column.bits.size() != entries || column.kinds.size() != entries)
        return "time columns: values are not as long as the time list";
      for (uint8_t kind = 0; kind < NumericValue::kKinds; ++kind) {
        if (static_cast<size_t>(std::count(column.kinds.begin(), column.kinds.end(), kind)) !=
            column.of_kind[kind])
          return "time columns: the count of a kind is wrong";
      }
    }
    return {};
  }

 private:
  struct Values {
    std::vector<uint64_t> bits;
    std::vector<uint8_t> kinds;
    std::array<size_t, NumericValue::kKinds> of_kind{};
  };

  template <typename Column>
  static typename Column::iterator at(Column& column, size_t place) {
    return column.begin() + static_cast<ptrdiff_t>(place);
  }
  template <typename Column>
  static void keep(Column& column, std::span<const uint32_t> places) {
    for (size_t i = 0; i < places.size(); ++i) column[i] = column[places[i]];
    column.resize(places.size());
  }

  std::vector<std::vector<Code>> keys_;
  std::vector<Values> values_;
};

}  // namespace streamjoin
