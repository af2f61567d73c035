#include "streamjoin/state/value_list_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

/// The code whose hash is `hash`: hash_code undone.
Code code_of_hash(uint64_t hash) {
  constexpr uint64_t kFactor = 0xd6e8feb86659fd93ULL;
  uint64_t inverse = kFactor;
  for (int step = 0; step < 6; ++step) inverse *= 2 - kFactor * inverse;
  const uint64_t folded = hash * inverse;
  return static_cast<Code>(folded ^ (folded >> 32));
}

/// One row a key, and a map beside it.
class IndexAndMap {
 public:
  void add(Code key) {
    if (map_.count(key) > 0) return;
    const uint32_t row = rows_.allocate();
    rows_[row].start(0, key, {0, 0});
    bool added = false;
    index_.add_at(index_.find_slot(key, hash_code(key)), key, hash_code(key), row, added);
    EXPECT_TRUE(added);
    map_[key] = row;
  }
  void remove(Code key) {
    const auto at = map_.find(key);
    ValueList* list = index_.find(key);
    ASSERT_EQ(list != nullptr, at != map_.end());
    if (list == nullptr) return;
    ASSERT_EQ(index_.find_by_tail(hash_code(key), at->second), list);
    index_.remove(list);
    rows_.release(at->second);
    map_.erase(at);
  }
  void compare() {
    ASSERT_EQ(index_.validate(), "");
    ASSERT_EQ(index_.size(), map_.size());
    for (const auto& [key, row] : map_) {
      ValueList* likely = index_.find_likely_slot(hash_code(key));
      const ValueList* list = index_.confirm(likely, key, hash_code(key));
      ASSERT_EQ(list->tail(), row);
    }
  }
  void compare_between(Code low, Code high) {
    std::vector<Code> expected;
    for (auto at = map_.lower_bound(low); at != map_.end() && at->first <= high; ++at)
      expected.push_back(at->first);
    ASSERT_EQ(index_.keys_between(low, high), expected);
  }
  ValueListIndex& index() { return index_; }

 private:
  Slab<TNode> rows_;
  ValueListIndex index_{rows_};
  std::map<Code, uint32_t> map_;
};

TEST(ValueListIndex, IsAMapUnderRandomScripts) {
  std::mt19937_64 random(fresh_seed());
  for (int script = 0; script < 200; ++script) {
    IndexAndMap both;
    const Code keys = 1 + static_cast<Code>(random() % 20000);
    const uint64_t adds = 1 + random() % 9;
    for (int step = 0; step < 400; ++step) {
      const Code key = static_cast<Code>(random() % static_cast<uint64_t>(keys));
      random() % 10 < adds ? both.add(key) : both.remove(key);
      if (step % 50 == 0) both.compare_between(key, key + static_cast<Code>(random() % 10000));
      if (random() % 100 == 0) both.index().give_back_now();
    }
    both.compare();
    if (HasFailure()) return;
  }
}

TEST(ValueListIndex, TellsKeysOfOneTagApart) {
  std::mt19937_64 random(fresh_seed());
  for (const uint64_t tag : {uint64_t{0}, uint64_t{77}, uint64_t{0xffffffff}}) {
    IndexAndMap both;
    std::vector<Code> keys;
    for (uint64_t low = 0; low < 40; ++low) keys.push_back(code_of_hash(tag << 32 | low));
    for (const Code key : keys) ASSERT_EQ(hash_code(key) >> 32, tag);
    for (int step = 0; step < 500; ++step) {
      const Code key = keys[random() % keys.size()];
      random() % 2 == 0 ? both.add(key) : both.remove(key);
      both.compare();
      if (HasFailure()) return;
    }
  }
}

TEST(ValueListIndex, GivesMemoryBackOnceItStaysEmpty) {
  IndexAndMap both;
  const size_t smallest = both.index().memory_bytes();
  for (Code key = 0; key < 100000; ++key) both.add(key);
  EXPECT_LE(both.index().memory_bytes(), size_t{100000} * 28);
  for (Code key = 0; key < 100000; ++key) both.remove(key);
  // It is held for as many rows as would fill it again, and then not for long.
  for (int rows = 0; rows < 100000; rows += 128) both.index().give_back(128);
  EXPECT_GT(both.index().memory_bytes(), smallest);
  for (int rows = 0; rows < 100000; rows += 128) both.index().give_back(128);
  EXPECT_EQ(both.index().memory_bytes(), smallest);
}

TEST(ValueListIndex, ShortCallsAreNotTakenForLongOnes) {
  IndexAndMap both;
  const size_t smallest = both.index().memory_bytes();
  for (Code key = 0; key < 4096; ++key) both.add(key);
  for (Code key = 0; key < 4096; ++key) both.remove(key);
  // A push and a punctuation for every thirty rows of half a window: it is filled again soon.
  for (int rows = 0; rows < 2048; rows += 30) both.index().give_back(30), both.index().give_back(0);
  EXPECT_GT(both.index().memory_bytes(), smallest);
  for (int call = 0; call < 1024; ++call) both.index().give_back(0);  // punctuations alone free it too
  EXPECT_EQ(both.index().memory_bytes(), smallest);
}

}  // namespace
}  // namespace streamjoin
