// ArchiveWriter and ArchiveReader: plain values to bytes and back, for snapshots.
//
// Little-endian, no padding, no type tags: reader and writer walk the same fields in the same order. The
// reader checks every length before it trusts it, so damaged bytes give a DamagedArchive and never a wild
// read or a giant allocation.

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace streamjoin {

static_assert(std::endian::native == std::endian::little, "snapshots are written as little-endian memory");

class DamagedArchive : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ArchiveWriter {
 public:
  template <typename T>
  void value(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void text(std::string_view text) {
    value<uint64_t>(text.size());
    bytes_.append(text);
  }
  template <typename T>
  void array(const std::vector<T>& values) {
    static_assert(std::is_arithmetic_v<T>);
    value<uint64_t>(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ArchiveReader {
 public:
  explicit ArchiveReader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T value() {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if constexpr (std::is_same_v<T, bool>) {
      const uint8_t byte = value<uint8_t>();
      if (byte > 1) throw DamagedArchive("snapshot holds a byte that is neither true nor false");
      return byte != 0;
    } else {
      T value;
      std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
      return value;
    }
  }
  std::string text() { return std::string(bytes(value<uint64_t>())); }
  template <typename T>
  std::vector<T> array() {
    static_assert(std::is_arithmetic_v<T>);
    const uint64_t count = value<uint64_t>();
    if (count > left_.size() / sizeof(T)) throw DamagedArchive("snapshot ends inside an array");
    std::vector<T> values(count);
    const std::string_view source = bytes(count * sizeof(T));
    if (count > 0) std::memcpy(values.data(), source.data(), source.size());
    return values;
  }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view bytes(uint64_t count) {
    if (count > left_.size()) throw DamagedArchive("snapshot ends too early");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  std::string_view left_;
};

}  // namespace streamjoin
