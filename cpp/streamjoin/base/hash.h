// Hashing of key codes and key bytes, and the mapping of a hash to a table slot.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace streamjoin {

/// Mixes all bits of `value` into all bits of the result. Bijective, so distinct codes never share a full
/// hash.
inline uint64_t mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93ULL;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93ULL;
  value ^= value >> 32;
  return value;
}

/// A hash of a code that is good in its high bits, which are all that slot_of looks at. One multiplication:
/// it is computed for every row.
inline uint64_t hash_code(int64_t code) {
  const uint64_t value = static_cast<uint64_t>(code);
  return (value ^ (value >> 32)) * 0xd6e8feb86659fd93ULL;
}

inline uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = mix(bytes.size() + 1);
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mix(hash ^ word);
  }
  uint64_t word = 0;
  if (left > 0) std::memcpy(&word, at, left);
  return mix(hash ^ word);
}

/// Maps a hash evenly to [0, slots) without division; any number of slots below 2^32.
inline size_t slot_of(uint64_t hash, size_t slots) {
  return static_cast<size_t>(((hash >> 32) * static_cast<uint64_t>(slots)) >> 32);
}

}  // namespace streamjoin
