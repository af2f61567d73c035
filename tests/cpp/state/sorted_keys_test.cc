#include "streamjoin/state/sorted_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

/// An index as SortedKeys sees it: it builds the order, and tells it of added keys only while that is kept.
class CheckedKeys {
 public:
  void add(Code key) {
    if (keys_.insert(key).second && order_.kept()) order_.add(key);
  }
  void remove(Code key) { keys_.erase(key); }

  void compare_between(Code low, Code high) {
    if (!order_.kept() || order_.is_stale(keys_.size())) {
      order_.build({keys_.begin(), keys_.end()});
      ++builds;
    }
    const std::vector<Code> expected(keys_.lower_bound(low), keys_.upper_bound(high));
    ASSERT_EQ(order_.between(low, high, keys_.size(), [&](Code key) { return keys_.contains(key); }),
              expected);
    ASSERT_LE(order_.memory_bytes(), 8 * (2 * (2 * keys_.size() + SortedKeys::kSlack)));
  }
  void validate() const {
    ASSERT_EQ(order_.validate(), "");
    if (!order_.kept()) return;
    for (const Code key : keys_) ASSERT_TRUE(order_.contains(key));
  }

  int builds = 0;
  const std::set<Code>& keys() const { return keys_; }
  const SortedKeys& order() const { return order_; }

 private:
  std::set<Code> keys_;
  SortedKeys order_;
};

TEST(SortedKeys, FindsExactlyTheKeysOfARangeUnderRandomScripts) {
  std::mt19937_64 random(fresh_seed());
  for (int script = 0; script < 100; ++script) {
    CheckedKeys keys;
    const Code domain = 1 + static_cast<Code>(random() % 3000);
    const auto key = [&] { return static_cast<Code>(random() % static_cast<uint64_t>(domain)) - 500; };
    const uint64_t ranges = 1 + random() % 40;
    for (int step = 0; step < 1500; ++step) {
      if (random() % 1000 < ranges) {
        const Code low = key();
        keys.compare_between(low, low + std::max<Code>(0, key()));
      } else {
        random() % 2 == 0 ? keys.add(key()) : keys.remove(key());
      }
      if (step % 100 == 0) keys.validate();
      if (HasFailure()) return;
    }
  }
}

TEST(SortedKeys, AreDroppedOnceNoRangeHasAskedWhileTheKeysChangedOver) {
  CheckedKeys keys;
  for (Code key = 0; key < 1000; ++key) keys.add(key);
  keys.compare_between(0, 500);
  ASSERT_TRUE(keys.order().kept());
  for (Code key = 1000; key < 3000 + static_cast<Code>(SortedKeys::kSlack); ++key) {
    keys.add(key);
    keys.remove(key - 1000);
  }
  EXPECT_FALSE(keys.order().kept());
  EXPECT_EQ(keys.order().memory_bytes(), 0u);
}

TEST(SortedKeys, KeysThatAreGoneAreForgottenWhileRangesGoOn) {
  CheckedKeys keys;
  const Code slack = static_cast<Code>(SortedKeys::kSlack);
  for (Code key = 0; key < 20 * slack; ++key) {
    keys.add(key);
    keys.remove(key - 1000);
    if (key % 100 == 0) keys.compare_between(key - 700, key - 300);
    if (HasFailure()) return;
  }
  EXPECT_GT(keys.builds, 2);
  EXPECT_LT(keys.builds, 20);
}

}  // namespace
}  // namespace streamjoin
