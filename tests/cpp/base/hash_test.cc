#include "streamjoin/base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

TEST(Mix, DistinctValuesStayDistinct) {
  std::set<uint64_t> seen;
  size_t values = 0;
  for (const uint64_t start : {uint64_t{0}, uint64_t{1} << 31, uint64_t{1} << 63, ~uint64_t{0} - 5000}) {
    for (uint64_t step = 0; step < 5000; ++step, ++values) seen.insert(mix(start + step));
  }
  EXPECT_EQ(seen.size(), values);
}

TEST(Mix, OneBitOfInputChangesAboutHalfOfTheOutput) {
  std::mt19937_64 random(fresh_seed());
  for (int bit = 0; bit < 64; ++bit) {
    int changed = 0;
    for (int round = 0; round < 1000; ++round) {
      const uint64_t value = random();
      changed += std::popcount(mix(value) ^ mix(value ^ (uint64_t{1} << bit)));
    }
    EXPECT_NEAR(changed / 1000.0, 32.0, 4.0) << "bit " << bit;
  }
}

TEST(HashBytes, DependsOnEveryByte) {
  std::mt19937_64 random(fresh_seed());
  for (size_t length = 0; length <= 40; ++length) {
    // In memory of its own length, so that a sanitizer sees a read too far.
    const std::vector<char> zeros(length);
    std::set<uint64_t> seen = {hash_bytes({zeros.data(), length})};
    for (size_t at = 0; at < length; ++at) {
      std::vector<char> changed = zeros;
      changed[at] = static_cast<char>(1 + random() % 255);
      seen.insert(hash_bytes({changed.data(), length}));
      EXPECT_EQ(hash_bytes({changed.data(), length}),
                hash_bytes(std::string(changed.begin(), changed.end())));
    }
    EXPECT_EQ(seen.size(), length + 1);
  }
}

TEST(HashBytes, DependsOnTheLength) {
  std::set<uint64_t> seen;
  for (size_t length = 0; length <= 100; ++length) seen.insert(hash_bytes(std::string(length, '\0')));
  EXPECT_EQ(seen.size(), 101u);
}

TEST(SlotOf, StaysInsideTheTableAndFillsItEvenly) {
  for (const size_t slots : {size_t{1}, size_t{7}, size_t{16}, size_t{100}}) {
    std::vector<int> filled(slots);
    const int each = 1000;
    for (uint64_t value = 0; value < each * slots; ++value) {
      const size_t slot = slot_of(mix(value), slots);
      ASSERT_LT(slot, slots);
      ++filled[slot];
    }
    EXPECT_GT(*std::min_element(filled.begin(), filled.end()), each * 7 / 10);
  }
  EXPECT_EQ(slot_of(0, 1000), 0u);
  EXPECT_EQ(slot_of(~uint64_t{0}, 1000), 999u);
}

}  // namespace
}  // namespace streamjoin
