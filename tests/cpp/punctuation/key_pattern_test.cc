#include "streamjoin/punctuation/key_pattern.h"

#include <gtest/gtest.h>

#include "punctuation/random_patterns.h"
#include "streamjoin/base/key_bytes.h"

namespace streamjoin {
namespace {

std::string integer(int64_t value) {
  std::string out;
  append_integer(out, value);
  return out;
}

TEST(KeyPattern, MatchesWhatItsPlainFormMatches) {
  RandomPatterns random;
  for (int round = 0; round < 3000; ++round) {
    const PlainPattern plain = random.pattern(3);
    const KeyPattern pattern = encode(plain);
    for (const PlainKey& key : all_keys(3)) {
      const EncodedKey encoded(key);
      ASSERT_EQ(pattern.matches(encoded.views()), matches(plain, key));
    }
  }
}

TEST(KeyPattern, ContainsNeverLiesAndIsExactForPatternsWithinTheDomain) {
  RandomPatterns random;
  for (int round = 0; round < 20000; ++round) {
    const PlainPattern a = random.pattern(2), b = random.pattern(2);
    bool inside = true;
    for (const PlainKey& key : all_keys(2)) inside &= !matches(b, key) || matches(a, key);
    const bool claimed = encode(a).contains(encode(b));
    ASSERT_TRUE(!claimed || inside);
    // Open ends reach beyond the few values of the test, where only the claim itself can be judged.
    if (!has_open_end(a) && !has_open_end(b) && !has_any(b)) {
      ASSERT_EQ(claimed, inside);
    }
  }
}

TEST(KeyPattern, ContainsFollowsTheShapes) {
  const auto one = [](AttributePattern pattern) { return KeyPattern{{std::move(pattern)}}; };
  std::string null;
  append_null(null);
  const KeyPattern any = one(AttributePattern::any()), five = one(AttributePattern::constant(integer(5)));
  const KeyPattern range = one(AttributePattern::range(integer(1), integer(9)));
  const KeyPattern up = one(AttributePattern::at_least(integer(1))),
                   down = one(AttributePattern::at_most(integer(9)));
  const KeyPattern values = one(AttributePattern::not_null()),
                   nothing = one(AttributePattern::constant(null));
  EXPECT_TRUE(any.contains(values) && any.contains(nothing) && any.contains(any));
  EXPECT_FALSE(values.contains(any) || values.contains(nothing) || range.contains(any) || five.contains(any));
  EXPECT_TRUE(values.contains(up) && up.contains(range) && down.contains(range) && range.contains(five));
  EXPECT_FALSE(range.contains(up) || range.contains(down) || up.contains(down) || up.contains(values));
  EXPECT_TRUE(five.contains(one(AttributePattern::range(integer(5), integer(5)))));
  EXPECT_TRUE(five.contains(one(AttributePattern::range(integer(7), integer(6)))))
      << "nothing is inside everything";
  EXPECT_FALSE(any.contains(KeyPattern{}));
}

TEST(KeyPattern, KindsOfPatternAreTold) {
  RandomPatterns random;
  for (int round = 0; round < 2000; ++round) {
    const PlainPattern plain = random.pattern(2);
    const KeyPattern pattern = encode(plain);
    size_t any = 0, constant = 0, empty = 0;
    for (const PlainAttribute& attribute : plain) {
      any += attribute.kind == AttributePattern::Kind::kAny;
      constant += attribute.kind == AttributePattern::Kind::kConstant;
      empty += attribute.kind == AttributePattern::Kind::kRange && attribute.low && attribute.high &&
               *attribute.low > *attribute.high;
    }
    EXPECT_EQ(pattern.is_any(), any == 2);
    EXPECT_EQ(pattern.is_constant(), constant == 2);
    EXPECT_EQ(pattern.is_empty(), empty > 0);
  }
}

TEST(KeyPattern, NormalisingChangesTheFormAndNotTheMeaning) {
  RandomPatterns random;
  for (int round = 0; round < 3000; ++round) {
    const KeyPattern pattern = encode(random.pattern(2));
    KeyPattern normal = pattern;
    normal.normalise();
    EXPECT_TRUE(normal.contains(pattern) && pattern.contains(normal));
    for (const AttributePattern& one : normal.attributes) {
      EXPECT_FALSE(one.kind == AttributePattern::Kind::kRange && !one.low_open && !one.high_open &&
                   one.low == one.high);
    }
  }
}

TEST(KeyPattern, ComesBackFromAnArchiveAndADamagedOneIsRefused) {
  RandomPatterns random;
  for (int round = 0; round < 200; ++round) {
    const KeyPattern pattern = encode(random.pattern(3));
    ArchiveWriter writer;
    pattern.save(writer);
    const std::string saved = writer.take();
    KeyPattern back;
    ArchiveReader reader(saved);
    back.load(reader);
    EXPECT_EQ(back, pattern);
    EXPECT_TRUE(reader.at_end());
    for (size_t length = 0; length < saved.size(); ++length) {
      ArchiveReader cut(std::string_view(saved).substr(0, length));
      EXPECT_THROW(back.load(cut), DamagedArchive);
    }
    EXPECT_EQ(back, pattern);
    std::string wrong = saved;
    wrong[4] = 9;
    ArchiveReader strange(wrong);
    EXPECT_THROW(back.load(strange), DamagedArchive);
  }
}

}  // namespace
}  // namespace streamjoin
