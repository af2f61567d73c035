#include "streamjoin/memory/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

struct Node {
  uint64_t value;
  uint64_t copy;
};

constexpr SlabOptions kSmallBlocks{.nodes_per_block_log2 = 4};
constexpr size_t kBlockBytes = sizeof(Node) << 4;

TEST(Slab, NodesKeepTheirContentAndIndicesAreNeverSharedUnderRandomUse) {
  std::mt19937_64 random(fresh_seed());
  for (int round = 0; round < 30; ++round) {
    Slab<Node> slab(kSmallBlocks);
    std::map<uint32_t, uint64_t> twin;
    for (int step = 0; step < 2000; ++step) {
      const bool growing = step / 500 % 2 == 0;
      if (twin.empty() || random() % 10 < (growing ? 7 : 3)) {
        const uint64_t value = random();
        const uint32_t index = slab.allocate();
        ASSERT_LT(index, kNoNode);
        ASSERT_TRUE(twin.emplace(index, value).second) << "an index was handed out twice";
        slab[index] = {value, value};
      } else {
        auto gone = twin.lower_bound(static_cast<uint32_t>(random() % (twin.rbegin()->first + 1)));
        slab.release(gone->first);
        twin.erase(gone);
      }
      ASSERT_EQ(slab.used(), twin.size());
      if (step % 7 == 0) {
        ASSERT_EQ(slab.validate(), "");
      }
    }
    for (const auto& [index, value] : twin) {
      ASSERT_EQ(slab[index].value, value);
      ASSERT_EQ(slab[index].copy, value);
    }
  }
}

TEST(Slab, AMovingWindowNeedsNoMoreMemoryThanItsNodes) {
  Slab<Node> slab(kSmallBlocks);
  std::deque<uint32_t> window;
  for (uint64_t step = 0; step < 20000; ++step) {
    window.push_back(slab.allocate());
    slab[window.back()].value = step;
    if (window.size() > 100) {
      ASSERT_EQ(slab[window.front()].value, step - 100);
      slab.release(window.front());
      window.pop_front();
    }
    ASSERT_LE(slab.memory_bytes(), 100 * sizeof(Node) + 3 * kBlockBytes);
  }
  EXPECT_EQ(slab.validate(), "");
}

TEST(Slab, WhenAllNodesAreGoneAtMostTwoBlocksStay) {
  Slab<Node> slab(kSmallBlocks);
  std::vector<uint32_t> nodes;
  for (int i = 0; i < 5000; ++i) nodes.push_back(slab.allocate());
  EXPECT_GE(slab.memory_bytes(), 5000 * sizeof(Node));
  std::mt19937_64 random(fresh_seed());
  std::shuffle(nodes.begin(), nodes.end(), random);
  for (const uint32_t node : nodes) slab.release(node);
  EXPECT_EQ(slab.used(), 0u);
  EXPECT_LE(slab.memory_bytes(), 2 * kBlockBytes);
  EXPECT_EQ(slab.validate(), "");
}

TEST(Slab, FreedNodesInPartlyUsedBlocksAreFilledAgain) {
  Slab<Node> slab(kSmallBlocks);
  std::vector<uint32_t> nodes;
  for (int i = 0; i < 1600; ++i) nodes.push_back(slab.allocate());
  const size_t full = slab.memory_bytes();
  for (size_t i = 0; i < nodes.size(); i += 2) slab.release(nodes[i]);
  for (size_t i = 0; i < nodes.size(); i += 2) slab.allocate();
  EXPECT_EQ(slab.memory_bytes(), full);
  EXPECT_EQ(slab.validate(), "");
}

TEST(Slab, IsSparseOnceMoreThanHalfOfItsBlocksCouldGo) {
  Slab<Node> slab(kSmallBlocks);
  std::vector<uint32_t> nodes;
  for (int i = 0; i < 1600; ++i) nodes.push_back(slab.allocate());
  std::vector<uint32_t> left;  // one node of each block stays, so no block can go
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(slab.is_sparse(), 100 > 2 * (slab.used() / 16) + 8);
    i % 16 == 0 ? left.push_back(nodes[i]) : slab.release(nodes[i]);
  }
  EXPECT_TRUE(slab.is_sparse());
  EXPECT_EQ(slab.validate(), "");

  Slab<Node> denser({.nodes_per_block_log2 = 5});
  for (const uint32_t node : left) denser[denser.allocate()] = slab[node];
  slab.swap(denser);
  EXPECT_FALSE(slab.is_sparse());
  EXPECT_EQ(slab.nodes_per_block_log2(), 5u);
  EXPECT_EQ(slab.used(), left.size());
  EXPECT_LE(slab.memory_bytes(), left.size() * sizeof(Node) + 2 * (sizeof(Node) << 5));
  EXPECT_EQ(slab.validate(), "");
  EXPECT_EQ(denser.validate(), "");
}

TEST(Slab, BlocksAsLargeAsHugePagesWorkToo) {
  Slab<Node> slab(SlabOptions{.nodes_per_block_log2 = 17});  // 2 MiB
  std::vector<uint32_t> nodes;
  for (uint64_t i = 0; i < 300000; ++i) {
    nodes.push_back(slab.allocate());
    slab[nodes.back()] = {i, i};
  }
  for (uint64_t i = 0; i < 300000; ++i) ASSERT_EQ(slab[nodes[i]].copy, i);
  for (const uint32_t node : nodes) slab.release(node);
  EXPECT_EQ(slab.validate(), "");
}

}  // namespace
}  // namespace streamjoin
