// Deterministic streams of timed int64 keys for benchmarks: one row per unit of time, keys by recipe and
// seed.
//
//   uniform_keys        keys drawn evenly from a domain so small that a row meets m rows of equal key among
//   the R rows
//                       that a window of R time units holds of the other stream
//   paired_unique_keys  two streams, every key once in each: right is left shuffled within stretches of R
//   rows, so every row
//                       has exactly one match, less than R time units away
//
// Keys are spread over 64 bits by a bijection: no table profits from keys that count up. The same options
// give the same rows.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "streamjoin/base/hash.h"

namespace streamjoin::bench {

struct TimedKeys {
  std::vector<int64_t> times, keys;
};

struct UniformKeysOptions {
  size_t rows = 0;
  size_t window_rows = 1;
  double matches_per_row = 1;  // the m above; the domain has window_rows / m keys, at least one
  uint64_t seed = 1;
};

struct PairedKeysOptions {
  size_t rows = 0;  // of each stream
  size_t window_rows = 1;
  uint64_t seed = 1;
};

/// Times 1, 2, 3, ... and the key number of each row spread over 64 bits.
template <typename KeyNumber>
TimedKeys one_row_per_unit(size_t rows, KeyNumber key_number) {
  TimedKeys stream;
  stream.times.reserve(rows);
  stream.keys.reserve(rows);
  for (size_t row = 0; row < rows; ++row) {
    stream.times.push_back(static_cast<int64_t>(row) + 1);
    stream.keys.push_back(
        static_cast<int64_t>((static_cast<uint64_t>(key_number(row)) + 1) * 0x9e3779b97f4a7c15ULL));
  }
  return stream;
}

inline TimedKeys uniform_keys(const UniformKeysOptions& options) {
  const auto domain = std::max<uint64_t>(
      1, static_cast<uint64_t>(static_cast<double>(options.window_rows) / options.matches_per_row));
  std::mt19937_64 random(options.seed);
  // Not std::uniform_int_distribution: its outcome differs from library to library.
  return one_row_per_unit(options.rows, [&](size_t) { return slot_of(random(), domain); });
}

inline std::pair<TimedKeys, TimedKeys> paired_unique_keys(const PairedKeysOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<size_t> shuffled(options.rows);
  for (size_t row = 0; row < options.rows; ++row) shuffled[row] = row;
  for (size_t begin = 0; begin < options.rows; begin += options.window_rows) {
    const size_t end = std::min(options.rows, begin + options.window_rows);
    for (size_t row = begin; row < end; ++row) {
      std::swap(shuffled[row], shuffled[row + slot_of(random(), end - row)]);
    }
  }
  return {one_row_per_unit(options.rows, [](size_t row) { return row; }),
          one_row_per_unit(options.rows, [&](size_t row) { return shuffled[row]; })};
}

}  // namespace streamjoin::bench
