// NumericValue: a number that a predicate compares, integer or real, or null. Kept by the state for as long
// as its row lives, so that a native predicate never looks at the payload.

#pragma once

#include <bit>
#include <cstdint>

namespace streamjoin {

class NumericValue {
 public:
  static constexpr uint8_t kKinds = 3;
  static constexpr uint8_t kIntegerKind = 1;
  static constexpr uint8_t kRealKind = 2;

  NumericValue() = default;
  static NumericValue of_integer(int64_t value) { return {static_cast<uint64_t>(value), Kind::kInteger}; }
  static NumericValue of_real(double value) { return {std::bit_cast<uint64_t>(value), Kind::kReal}; }
  static NumericValue null() { return {0, Kind::kNull}; }
  /// As `bits` and `kind` gave it.
  static NumericValue of_bits(uint64_t bits, uint8_t kind) { return {bits, static_cast<Kind>(kind)}; }

  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_integer() const { return kind_ == Kind::kInteger; }
  int64_t integer() const { return static_cast<int64_t>(bits_); }
  /// The value as a real; an integer is rounded to one.
  double real() const { return is_integer() ? static_cast<double>(integer()) : std::bit_cast<double>(bits_); }
  uint64_t bits() const { return bits_; }
  uint8_t kind() const { return static_cast<uint8_t>(kind_); }

 private:
  enum class Kind : uint8_t { kNull = 0, kInteger = kIntegerKind, kReal = kRealKind };
  NumericValue(uint64_t bits, Kind kind) : bits_(bits), kind_(kind) {}

  uint64_t bits_;
  Kind kind_;
};

}  // namespace streamjoin
