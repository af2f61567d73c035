#include "streamjoin/state/i_node_index.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

constexpr Code kSmallest = std::numeric_limits<Code>::min();
constexpr Code kLargest = std::numeric_limits<Code>::max();

/// The head link of an I-Node marks it, so that a node that was moved to the wrong key is seen.
using Twin = std::map<Code, uint32_t>;

Code random_key(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0:
      return kSmallest + static_cast<Code>(random() % 50);
    case 1:
      return kLargest - static_cast<Code>(random() % 50);
    case 2:
      return static_cast<Code>(random() % 2000000) - 1000000;
    case 3:
      return static_cast<Code>(random());
    default:
      return static_cast<Code>(random() % 600) - 300;
  }
}

std::vector<Code> keys_of(const Twin& twin, Code low, Code high) {
  std::vector<Code> keys;
  for (const auto& [key, mark] : twin) {
    if (low <= key && key <= high) keys.push_back(key);
  }
  return keys;
}

void expect_same(INodeIndex& index, const Twin& twin) {
  ASSERT_EQ(index.validate(), "");
  ASSERT_EQ(index.size(), twin.size());
  for (const auto& [key, mark] : twin) {
    const INode* node = index.find(key);
    ASSERT_NE(node, nullptr);
    ASSERT_EQ(node->key, key);
    ASSERT_EQ(node->head, mark);
  }
  size_t visited = 0;
  index.for_each([&](const INode& node) { visited += twin.count(node.key); });
  ASSERT_EQ(visited, twin.size());
}

void run_script(std::mt19937_64& random, bool wide_ranges) {
  INodeIndex index;
  Twin twin;
  for (int step = 0; step < 3000; ++step) {
    const bool growing = step / 1000 % 2 == 0;
    const Code key = random_key(random);
    if (random() % 10 < (growing ? 7 : 2)) {
      bool added;
      INode& node = index.find_or_add(key, added);
      ASSERT_EQ(added, twin.count(key) == 0);
      ASSERT_TRUE(!added || !node.has_rows());
      node.head = static_cast<uint32_t>(step);
      twin[key] = static_cast<uint32_t>(step);
    } else if (!twin.empty()) {
      auto gone = twin.lower_bound(key);
      if (gone == twin.end()) gone = twin.begin();
      INode* node = index.find(gone->first);
      ASSERT_NE(node, nullptr);
      index.remove(node);
      ASSERT_EQ(index.find(gone->first), nullptr);
      twin.erase(gone);
    }
    ASSERT_EQ(index.find(key) != nullptr, twin.count(key) == 1);
    if (step % 20 == 0) {
      Code low = random_key(random);
      Code high = wide_ranges ? random_key(random) : static_cast<Code>(random() % 900) - 450;
      if (!wide_ranges) low = high - static_cast<Code>(random() % 500);
      ASSERT_EQ(index.keys_between(low, high), keys_of(twin, low, high)) << low << " .. " << high;
    }
    if (random() % 50 == 0) random() % 2 == 0 ? index.give_back_now() : index.give_back(random() % 100);
    if (step % 200 == 0) expect_same(index, twin);
  }
  expect_same(index, twin);
}

TEST(INodeIndex, HoldsWhatAMapHoldsUnderRandomUse) {
  std::mt19937_64 random(fresh_seed());
  for (int round = 0; round < 20; ++round) {
    run_script(random, round % 2 == 0);
    if (HasFatalFailure()) return;
  }
}

TEST(INodeIndex, RangesReachBothEndsOfTheIntegers) {
  INodeIndex index;
  const std::vector<Code> keys = {kSmallest, kSmallest + 1, -1, 0, 7, kLargest - 1, kLargest};
  bool added;
  for (const Code key : keys) index.find_or_add(key, added);
  EXPECT_EQ(index.keys_between(kSmallest, kLargest), keys);
  EXPECT_EQ(index.keys_between(kSmallest, -1), (std::vector<Code>{kSmallest, kSmallest + 1, -1}));
  EXPECT_EQ(index.keys_between(kSmallest, kSmallest), std::vector<Code>{kSmallest});
  EXPECT_EQ(index.keys_between(kLargest, kLargest), std::vector<Code>{kLargest});
  EXPECT_EQ(index.keys_between(kLargest - 4000, kLargest), (std::vector<Code>{kLargest - 1, kLargest}));
  EXPECT_EQ(index.keys_between(0, kLargest), (std::vector<Code>{0, 7, kLargest - 1, kLargest}));
  EXPECT_TRUE(index.keys_between(kLargest, kSmallest).empty());
  EXPECT_TRUE(index.keys_between(8, 7).empty());
}

TEST(INodeIndex, MemoryFollowsTheKeys) {
  INodeIndex index;
  const size_t empty = index.memory_bytes();
  bool added;
  for (const bool ordered : {false, true}) {
    for (Code key = 0; key < 100000; ++key) index.find_or_add(key * 1000, added);
    EXPECT_LE(index.memory_bytes(), (ordered ? 48 + 35 : 35) * size_t{100000} + empty);
    if (!ordered) {
      EXPECT_EQ(index.keys_between(0, 99999 * 1000).size(), 100000u);  // wide: builds the order
    }
    for (Code key = 0; key < 100000; ++key) index.remove(index.find(key * 1000));
    EXPECT_EQ(index.size(), 0u);
    index.give_back_now();
    EXPECT_EQ(index.memory_bytes(), empty);
    EXPECT_EQ(index.validate(), "");
  }
}

TEST(INodeIndex, ATableThatStaysEmptyGivesItsMemoryBackAndOneThatBreathesDoesNot) {
  INodeIndex index;
  const size_t empty = index.memory_bytes();
  bool added;
  size_t full = 0;
  for (int breath = 0; breath < 200; ++breath) {
    for (Code key = 0; key < 1000; ++key) index.find_or_add(key, added);
    index.give_back(128);
    if (breath == 0) full = index.memory_bytes();
    ASSERT_EQ(index.memory_bytes(), full);
    for (Code key = 0; key < 1000; ++key) index.remove(index.find(key));
    index.give_back(128);
  }
  for (int call = 0; call < 1024; ++call) index.give_back(0);
  EXPECT_EQ(index.memory_bytes(), empty);
  EXPECT_EQ(index.validate(), "");
}

TEST(INodeIndex, TheGenerationChangesWheneverTheSlotsMoveAsAWhole) {
  INodeIndex index;
  bool added;
  const INode* first = &index.find_or_add(1, added);
  const uint32_t generation = index.generation();
  for (Code key = 2; index.generation() == generation; ++key) {
    ASSERT_EQ(index.find(1), first);
    ASSERT_LT(key, 1000);
    index.find_or_add(key, added);
  }
  EXPECT_NE(index.find(1), nullptr);
}

}  // namespace
}  // namespace streamjoin
