#include "streamjoin/state/key_dictionary.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

/// Keys of many lengths, on both sides of what fits into an entry.
std::string key(uint64_t number) {
  return std::to_string(number) + std::string(number % 37, number % 2 ? '\0' : 'x');
}

struct Twin {
  struct Entry {
    Code code;
    uint32_t references;
  };
  std::map<std::string, Entry> by_bytes;
  std::map<Code, std::string> by_code;

  Code smallest_free() const {
    Code code = 0;
    for (const auto& [taken, bytes] : by_code) {
      if (taken != code) break;
      ++code;
    }
    return code;
  }
};

using HashFunction = uint64_t (*)(std::string_view);

void expect_same(const KeyDictionary& dictionary, const Twin& twin, HashFunction hash) {
  ASSERT_EQ(dictionary.validate(), "");
  ASSERT_EQ(dictionary.size(), twin.by_bytes.size());
  for (const auto& [bytes, entry] : twin.by_bytes) {
    ASSERT_EQ(dictionary.find(bytes, hash(bytes)), entry.code);
    ASSERT_EQ(dictionary.bytes(entry.code), bytes);
    ASSERT_EQ(dictionary.references(entry.code), entry.references);
  }
  auto expected = twin.by_code.begin();
  dictionary.for_each([&](Code code, std::string_view bytes) {
    ASSERT_NE(expected, twin.by_code.end());
    ASSERT_EQ(code, expected->first);
    ASSERT_EQ(bytes, expected->second);
    ++expected;
  });
  ASSERT_EQ(expected, twin.by_code.end());
}

void run_script(std::mt19937_64& random, HashFunction hash, uint64_t keys, int steps, bool archives) {
  KeyDictionary dictionary;
  Twin twin;
  for (int step = 0; step < steps; ++step) {
    // Waves: mostly growing, then mostly shrinking, so that tables and chunks come and go.
    const bool grow = random() % 10 < (step / (steps / 6) % 2 == 0 ? 8u : 2u);
    if (grow || twin.by_bytes.empty()) {
      const std::string bytes = key(random() % keys);
      const auto found = twin.by_bytes.find(bytes);
      const Code expected = found == twin.by_bytes.end() ? twin.smallest_free() : found->second.code;
      dictionary.prefetch(hash(bytes));
      dictionary.prefetch_entry(hash(bytes));
      dictionary.prefetch_bytes(hash(bytes));
      ASSERT_EQ(dictionary.find(bytes, hash(bytes)), found == twin.by_bytes.end() ? kNoCode : expected);
      bool created = false;
      ASSERT_EQ(dictionary.intern(bytes, hash(bytes), created), expected);
      ASSERT_EQ(created, found == twin.by_bytes.end());
      ++twin.by_bytes.try_emplace(bytes, Twin::Entry{expected, 0}).first->second.references;
      twin.by_code[expected] = bytes;
    } else {
      auto entry = twin.by_bytes.lower_bound(key(random() % keys));
      if (entry == twin.by_bytes.end()) entry = twin.by_bytes.begin();
      const Code code = entry->second.code;
      if (random() % 8 == 0) {
        dictionary.reference(code);
        ++entry->second.references;
      } else {
        const bool last = --entry->second.references == 0;
        ASSERT_EQ(dictionary.release(code), last);
        if (last) {
          twin.by_code.erase(code);
          twin.by_bytes.erase(entry);
        }
      }
    }
    if (step % (steps / 20) == 0) expect_same(dictionary, twin, hash);
    if (archives && step % (steps / 5) == 0) {
      ArchiveWriter writer;
      dictionary.save(writer);
      const std::string saved = writer.take();
      ArchiveReader reader(saved);
      KeyDictionary loaded;
      loaded.load(reader);
      ASSERT_TRUE(reader.at_end());
      expect_same(loaded, twin, hash);
      dictionary = std::move(loaded);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  for (const auto& [bytes, entry] : twin.by_bytes) {
    for (uint32_t left = entry.references; left > 0; --left)
      ASSERT_EQ(dictionary.release(entry.code), left == 1);
  }
  ASSERT_EQ(dictionary.size(), 0u);
  ASSERT_EQ(dictionary.validate(), "");
}

TEST(KeyDictionary, BehavesLikeAMapThatGivesTheSmallestFreeCode) {
  std::mt19937_64 random(fresh_seed());
  for (const uint64_t keys : {3, 20, 200, 3000}) {
    run_script(random, hash_bytes, keys, 6000, true);
    if (HasFatalFailure()) return;
  }
}

TEST(KeyDictionary, HoldsWithHashesThatCollide) {
  std::mt19937_64 random(fresh_seed());
  const HashFunction few = [](std::string_view bytes) { return hash_bytes(bytes) % 3 << 62; };
  const HashFunction end = [](std::string_view bytes) {
    return ~uint64_t{0} << (32 + hash_bytes(bytes) % 4);
  };
  const HashFunction one = [](std::string_view) { return uint64_t{0}; };
  for (const HashFunction hash : {few, end, one}) {
    run_script(random, hash, 100, 3000, false);
    if (HasFatalFailure()) return;
  }
}

TEST(KeyDictionary, ViewsOfBytesHoldWhileOthersComeAndGo) {
  KeyDictionary dictionary;
  bool created;
  const std::string shorter = "short", longer(100, 'l');
  const std::string_view first = dictionary.bytes(dictionary.intern(shorter, hash_bytes(shorter), created));
  const std::string_view second = dictionary.bytes(dictionary.intern(longer, hash_bytes(longer), created));
  std::vector<Code> others;
  for (uint64_t number = 0; number < 5000; ++number) {
    others.push_back(dictionary.intern(key(number), hash_bytes(key(number)), created));
  }
  for (const Code code : others) dictionary.release(code);
  EXPECT_EQ(first, shorter);
  EXPECT_EQ(second, longer);
}

TEST(KeyDictionary, MemoryFollowsTheLiveEntries) {
  KeyDictionary dictionary;
  bool created;
  for (uint64_t number = 0; number < 100000; ++number)
    dictionary.intern(key(number), hash_bytes(key(number)), created);
  const size_t full = dictionary.memory_bytes();
  EXPECT_LT(full, 100000u * (32 + 24 + 40));
  for (Code code = 0; code < 99000; ++code) EXPECT_TRUE(dictionary.release(code));
  EXPECT_LT(dictionary.memory_bytes(), full / 40);
  for (Code code = 99000; code < 100000; ++code) EXPECT_TRUE(dictionary.release(code));
  EXPECT_LT(dictionary.memory_bytes(), 10000u);
  EXPECT_EQ(dictionary.validate(), "");
}

TEST(KeyDictionary, TheEmptyKeyIsAKey) {
  KeyDictionary dictionary;
  bool created;
  EXPECT_EQ(dictionary.find("", hash_bytes("")), kNoCode);
  EXPECT_EQ(dictionary.intern("", hash_bytes(""), created), 0);
  EXPECT_TRUE(created);
  EXPECT_EQ(dictionary.bytes(0), "");
  EXPECT_TRUE(dictionary.release(0));
}

TEST(KeyDictionary, DamagedArchivesAreRefusedAndChangeNothing) {
  struct Row {
    uint32_t code, references;
    std::string bytes;
  };
  KeyDictionary dictionary;
  bool created;
  dictionary.intern("kept", hash_bytes("kept"), created);
  const auto refused = [&](const std::vector<Row>& rows, uint64_t count) {
    ArchiveWriter writer;
    writer.value(count);
    for (const Row& row : rows) {
      writer.value(row.code);
      writer.value(row.references);
      writer.text(row.bytes);
    }
    const std::string saved = writer.take();
    ArchiveReader reader(saved);
    EXPECT_THROW(dictionary.load(reader), DamagedArchive);
  };
  refused({{0, 1, "a"}}, 2);
  refused({{0, 0, "a"}}, 1);
  refused({{0, 1, "a"}, {0, 1, "b"}}, 2);
  refused({{5, 1, "a"}, {4, 1, "b"}}, 2);
  refused({{0, 1, "a"}, {1, 1, "a"}}, 2);
  refused({{0xffffffff, 1, "a"}}, 1);
  EXPECT_EQ(dictionary.find("kept", hash_bytes("kept")), 0);
  EXPECT_EQ(dictionary.validate(), "");
}

}  // namespace
}  // namespace streamjoin
