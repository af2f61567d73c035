#include "streamjoin/join/stream_promises.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "streamjoin/base/hash.h"
#include "streamjoin/base/key_bytes.h"

namespace streamjoin {
namespace {

// Two integer classes and one of strings, of which eight are interned.
class StreamPromisesTest : public ::testing::Test {
 protected:
  StreamPromisesTest() {
    for (int i = 0; i < 8; ++i) {
      std::string bytes;
      append_bytes(bytes, std::string(1, static_cast<char>('a' + i)));
      bool created;
      dictionary_.intern(bytes, hash_bytes(bytes), created);
    }
  }
  std::string text(Code code) const { return std::string(dictionary_.bytes(code)); }
  AttributePattern random_pattern(size_t position) {
    const Code low = static_cast<Code>(random_() % 8);
    const Code high = std::min<Code>(7, low + static_cast<Code>(random_() % 3));
    switch (random_() % 3) {
      case 0:
        return AttributePattern::any();
      case 1:
        return position < 2 ? pattern_of({low, low}) : AttributePattern::constant(text(low));
      default:
        return position < 2 ? pattern_of({low, high}) : AttributePattern::range(text(low), text(high));
    }
  }

  KeyDictionary dictionary_;
  std::mt19937_64 random_{17};
};

TEST_F(StreamPromisesTest, CoversWhatOnePromiseOnKnownClassesMatches) {
  for (int round = 0; round < 200; ++round) {
    StreamPromises promises({nullptr, nullptr, &dictionary_}, kEnd);
    std::vector<KeyPattern> made;
    for (int i = 0; i < 5; ++i) {
      KeyPattern pattern{{random_pattern(0), random_pattern(1), random_pattern(2)}};
      pattern.normalise();
      if (pattern.is_any()) continue;
      promises.remember(pattern, 0);
      made.push_back(pattern);
    }
    ASSERT_EQ(promises.validate(), "");
    ArchiveWriter out;
    promises.save(out);
    const std::string bytes = out.take();
    ArchiveReader in(bytes);
    StreamPromises loaded({nullptr, nullptr, &dictionary_}, kEnd);
    loaded.load(in);
    for (int i = 0; i < 50; ++i) {
      const std::vector<Code> codes{static_cast<Code>(random_() % 8), static_cast<Code>(random_() % 8),
                                    static_cast<Code>(random_() % 8)};
      const StreamPromises::Positions known = random_() % 8;
      bool expected = false;
      for (const KeyPattern& pattern : made) {
        bool matches = true;
        for (size_t position = 0; position < 3; ++position) {
          const AttributePattern& attribute = pattern.attributes[position];
          std::string scratch;
          const KeyDictionary* dictionary = position == 2 ? &dictionary_ : nullptr;
          if (attribute.kind == AttributePattern::Kind::kAny) continue;
          matches &= (known >> position & 1) != 0 &&
                     attribute.matches(bytes_of(codes[position], dictionary, scratch));
        }
        expected |= matches;
      }
      ASSERT_EQ(promises.covers(codes, known), expected) << "round " << round;
      ASSERT_EQ(loaded.covers(codes, known), expected) << "round " << round;
    }
    for (const KeyPattern& pattern : made) ASSERT_TRUE(promises.contains(pattern));
    for (const KeyPattern& pattern : made) promises.forget(pattern);
    ASSERT_EQ(promises.held(), 0u);
  }
}

TEST_F(StreamPromisesTest, APromiseEndsWithItsLifespan) {
  StreamPromises promises({nullptr}, 10);
  const std::vector<Code> five{5};
  promises.remember(KeyPattern{{pattern_of({5, 5})}}, 100);
  EXPECT_EQ(promises.covered_until(five, 1), 110);
  promises.expire(110);
  EXPECT_TRUE(promises.covers(five, 1));
  promises.expire(111);
  EXPECT_FALSE(promises.covers(five, 1));
  EXPECT_FALSE(promises.takes(100, 111));
}

}  // namespace
}  // namespace streamjoin
