#include "streamjoin/state/key_order.h"

#include <gtest/gtest.h>

#include <map>

#include "punctuation/random_patterns.h"
#include "streamjoin/base/hash.h"

namespace streamjoin {
namespace {

AttributeSplitter integers(size_t width) {
  return AttributeSplitter(std::vector<AttributeType>(width));
}

TEST(KeyOrder, FindsWhatALookAtEveryKeyFinds) {
  RandomPatterns random;
  for (int round = 0; round < 60; ++round) {
    const size_t width = 1 + round % 3;
    const AttributeSplitter splitter = integers(width);
    KeyDictionary dictionary;
    KeyOrder order;
    std::map<Code, PlainKey> twin;
    for (int step = 0; step < 300; ++step) {
      const PlainKey key = random.key(width);
      const EncodedKey encoded(key);
      const uint64_t hash = hash_bytes(encoded.bytes());
      const Code present = dictionary.find(encoded.bytes(), hash);
      if (present == kNoCode) {
        bool created;
        const Code code = dictionary.intern(encoded.bytes(), hash, created);
        order.add(code, encoded.views());
        twin[code] = key;
      } else if (random.below(2) == 0) {
        order.remove(present, encoded.views());
        dictionary.release(present);
        twin.erase(present);
      }
      if (step < 30 || random.below(2) == 0) continue;
      const PlainPattern pattern = random.pattern(width);
      std::vector<Code> expected;
      for (const auto& [code, plain] : twin) {
        if (matches(pattern, plain)) expected.push_back(code);
      }
      ASSERT_EQ(order.matching(encode(pattern), dictionary, splitter), expected);
      ASSERT_EQ(order.validate(dictionary, splitter), "");
    }
  }
}

TEST(KeyOrder, KeepsNoOrderThatNoPatternNeeded) {
  const AttributeSplitter splitter = integers(3);
  KeyDictionary dictionary;
  KeyOrder order;
  for (const PlainKey& key : all_keys(3)) {
    const EncodedKey encoded(key);
    bool created;
    order.add(dictionary.intern(encoded.bytes(), hash_bytes(encoded.bytes()), created), encoded.views());
  }
  const size_t none = order.memory_bytes();
  EXPECT_EQ(none, sizeof(KeyOrder));
  const PlainAttribute any{AttributePattern::Kind::kAny, {}, {}},
      five{AttributePattern::Kind::kConstant, 5, {}};
  const PlainAttribute range{AttributePattern::Kind::kRange, 2, 3};
  const size_t values = kValues + 1;

  EXPECT_EQ(order.matching(encode({any, any, any}), dictionary, splitter).size(), values * values * values);
  EXPECT_EQ(order.matching(encode({five, five, five}), dictionary, splitter).size(), 1u);
  EXPECT_EQ(
      order.matching(encode({any, {AttributePattern::Kind::kRange, 3, 2}, any}), dictionary, splitter).size(),
      0u);
  EXPECT_FALSE(order.active());
  EXPECT_EQ(order.memory_bytes(), none);

  EXPECT_EQ(order.matching(encode({range, any, five}), dictionary, splitter).size(), 2 * values);
  EXPECT_TRUE(order.active(2)) << "the constant is followed, not the range";
  EXPECT_FALSE(order.active(0) || order.active(1));
  EXPECT_EQ(order.matching(encode({five, any, five}), dictionary, splitter).size(), values);
  EXPECT_FALSE(order.active(0)) << "an order that is there already serves";
  EXPECT_EQ(order.matching(encode({any, range, any}), dictionary, splitter).size(), 2 * values * values);
  EXPECT_TRUE(order.active(1));
  order.clear();
  EXPECT_FALSE(order.active());
}

TEST(KeyOrder, ValidateNamesAKeyThatWasForgotten) {
  const AttributeSplitter splitter = integers(1);
  KeyDictionary dictionary;
  KeyOrder order;
  bool created;
  const EncodedKey one({1}), two({2});
  dictionary.intern(one.bytes(), hash_bytes(one.bytes()), created);
  order.activate(0, dictionary, splitter);
  EXPECT_EQ(order.validate(dictionary, splitter), "");
  dictionary.intern(two.bytes(), hash_bytes(two.bytes()), created);
  EXPECT_NE(order.validate(dictionary, splitter), "");
  order.add(1, two.views());
  EXPECT_EQ(order.validate(dictionary, splitter), "");
  order.remove(0, one.views());
  order.add(7, one.views());
  EXPECT_NE(order.validate(dictionary, splitter), "");
}

}  // namespace
}  // namespace streamjoin
