// A new seed for each run of a random test, printed; STREAMJOIN_SEED=<number> in the environment replays a
// run.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace streamjoin {

inline uint64_t fresh_seed() {
  const char* given = std::getenv("STREAMJOIN_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace streamjoin
