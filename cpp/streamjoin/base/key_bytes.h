// Key bytes: a key that is no plain integer, as one byte string that sorts (memcmp) as its attributes do.
//
//   key          [attribute][attribute]...          as many as the key has, nothing between them
//   attribute    00                                 null: before every value
//                01 [8 bytes, big-endian]           integer, sign bit flipped
//                01 [8 bytes, big-endian]           real: -inf < ... < inf < NaN; one NaN and one zero
//                01 [content, 00 -> 00 FF] 00 00    bytes: a prefix sorts before what it is a prefix of
//                01 [width bytes, big-endian]       decimal: two's complement, sign bit flipped
//
// Invariants:
//   1. Two values are equal exactly if their bytes are; they compare as their bytes do under memcmp.
//   2. No encoded attribute is a proper prefix of another of its type. So a key splits in one way only, and
//      equal concatenations mean equal attributes.
// NaN equals NaN and -0.0 equals 0.0, as in Spark.
// Cost: linear in the bytes. All functions are stateless.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace streamjoin {

enum class AttributeKind : uint8_t { kInteger, kReal, kBytes, kDecimal };

struct AttributeType {
  AttributeKind kind = AttributeKind::kInteger;
  /// Bytes of one kDecimal value (16 or 32 in Arrow); without meaning for the other kinds.
  uint32_t width = 0;

  bool operator==(const AttributeType&) const = default;
};

void append_null(std::string& out);
void append_integer(std::string& out, int64_t value);
void append_real(std::string& out, double value);
void append_bytes(std::string& out, std::string_view content);
/// `little_endian` points to `width` bytes of two's complement, least significant first, as Arrow keeps
/// decimals.
void append_decimal(std::string& out, const void* little_endian, uint32_t width);

/// The largest number of bytes that one attribute of a fixed-size type takes; 0 for kBytes.
size_t largest_encoding(AttributeType type);

// The same on raw memory, for batches. Each writes at `out` and returns the end of what it wrote; there must
// be room.
char* write_null(char* out);
char* write_integer(char* out, int64_t value);
char* write_real(char* out, double value);
/// Needs room for 3 bytes, the content, and one more byte for each 00 in it.
char* write_bytes(char* out, std::string_view content);
char* write_decimal(char* out, const void* little_endian, uint32_t width);

/// Cuts `key` into one view per type, into `out` (replaced). The views live as long as the bytes of `key`.
/// An InternalError if the bytes are not a key of these types.
void split(std::span<const AttributeType> types, std::string_view key, std::vector<std::string_view>& out);

/// Whether bytes that come from outside are one attribute of a type, or a key of these types.
bool attribute_fits(AttributeType type, std::string_view attribute);
bool key_fits(std::span<const AttributeType> types, std::string_view key);

// Decoders of one attribute. `is_null` first: the others are an InternalError on null and on bytes of another
// type.
bool is_null(std::string_view attribute);
int64_t decode_integer(std::string_view attribute);
double decode_real(std::string_view attribute);
std::string decode_bytes(std::string_view attribute);
/// Writes `width` bytes of two's complement, least significant first.
void decode_decimal(std::string_view attribute, uint32_t width, void* little_endian);

/// The types of a key, where code that holds keys must take them apart.
class AttributeSplitter {
 public:
  AttributeSplitter() = default;
  explicit AttributeSplitter(std::vector<AttributeType> types) : types_(std::move(types)) {}

  void split(std::string_view key, std::vector<std::string_view>& out) const {
    streamjoin::split(types_, key, out);
  }
  bool fits(std::string_view key) const { return key_fits(types_, key); }
  const std::vector<AttributeType>& types() const { return types_; }
  size_t attributes() const { return types_.size(); }

 private:
  std::vector<AttributeType> types_;
};

}  // namespace streamjoin
