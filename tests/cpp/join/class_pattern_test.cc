#include "streamjoin/join/class_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "streamjoin/base/key_bytes.h"

namespace streamjoin {
namespace {

// A stream with an integer class (number 4) and one of strings (number 1), of which six are interned.
class ClassPatternTest : public ::testing::TestWithParam<bool> {
 protected:
  ClassPatternTest() : state_({.dictionaries = {nullptr, &words_}, .indexed = GetParam()}) {
    for (Code i = 0; i < 6; ++i) {
      bool created;
      const std::string bytes = word(i);
      codes_.push_back(words_.intern(bytes, hash_bytes(bytes), created));
    }
  }
  ~ClassPatternTest() override { state_.purge_all(); }

  static std::string word(Code i) {
    std::string bytes;
    append_bytes(bytes, std::string(1, static_cast<char>('a' + i)));
    return bytes;
  }
  AttributePattern random_pattern(bool of_words) {
    const Code low = static_cast<Code>(random_() % 7);  // the last word is in no dictionary
    const Code high = low + static_cast<Code>(random_() % 3);
    switch (random_() % 3) {
      case 0:
        return AttributePattern::any();
      case 1:
        return of_words ? AttributePattern::constant(word(low)) : pattern_of({low, low});
      default:
        return of_words ? AttributePattern::range(word(low), word(high)) : pattern_of({low, high});
    }
  }
  bool matches(const KeyPattern& pattern, uint32_t node, bool with_words) const {
    std::string scratch;
    const AttributePattern& number = pattern.attributes[0];
    const AttributePattern& text = pattern.attributes[1];
    const bool fits = number.kind == AttributePattern::Kind::kAny ||
                      number.matches(bytes_of(state_.key(0, node), nullptr, scratch));
    return fits && (!with_words || text.kind == AttributePattern::Kind::kAny ||
                    text.matches(words_.bytes(state_.key(1, node))));
  }

  KeyDictionary words_;
  std::vector<Code> codes_;
  StreamState state_;
  std::mt19937_64 random_{23};
  const std::vector<size_t> classes_{4, 1};
  const std::vector<const KeyDictionary*> dictionaries_{nullptr, &words_, nullptr, nullptr, nullptr};
};

TEST_P(ClassPatternTest, FindsAndCountsTheRowsThatTheBytesMatch) {
  for (uint32_t i = 0; i < 120; ++i) {
    const std::vector<Code> keys{static_cast<Code>(random_() % 8), codes_[random_() % 6]};
    state_.insert(i, {0, i}, keys, {});
  }
  for (int i = 0; i < 30; ++i) {  // some are dead, and not swept yet
    const uint32_t node = state_.all()[random_() % state_.all().size()].node;
    if (state_.is_live(node)) state_.purge(node);
  }
  for (int round = 0; round < 500; ++round) {
    KeyPattern pattern{{random_pattern(false), random_pattern(true)}};
    if (pattern.is_any()) continue;
    const ClassPattern compiled(pattern, classes_, dictionaries_);
    size_t expected = 0;
    size_t by_number_alone = 0;
    for (const auto& entry : state_.all()) {
      if (!state_.is_live(entry.node)) continue;
      expected += matches(pattern, entry.node, true) ? 1 : 0;
      by_number_alone += matches(pattern, entry.node, false) ? 1 : 0;
    }
    ASSERT_EQ(compiled.count(state_, classes_, 1000), expected) << "round " << round;
    ASSERT_EQ(compiled.count(state_, classes_, 2), std::min<size_t>(expected, 2)) << "round " << round;
    // A stream that has the first class only, under another position: the other condition is left out.
    const bool of_number = pattern.attributes[0].kind != AttributePattern::Kind::kAny;
    ASSERT_EQ(compiled.count(state_, {4}, 1000), of_number ? by_number_alone : 0) << "round " << round;

    const ClassCondition& first = compiled.first();
    ASSERT_TRUE(first.constant || std::ranges::none_of(compiled.conditions(), &ClassCondition::constant));
    const size_t position = first.number == 4 ? 0 : 1;
    std::multiset<uint32_t> found;
    ClassPattern::rows(state_, position, first, [&](uint32_t node) { found.insert(node); });
    std::multiset<uint32_t> wanted;
    for (const auto& entry : state_.all()) {
      if (state_.is_live(entry.node) && first.matches(state_.key(position, entry.node)))
        wanted.insert(entry.node);
    }
    ASSERT_EQ(found, wanted) << "round " << round;
  }
}

TEST_P(ClassPatternTest, AConstantThatNoDictionaryKnowsMatchesNothing) {
  state_.insert(1, {0, 0}, std::vector<Code>{5, codes_[0]}, {});
  const KeyPattern pattern{{AttributePattern::any(), AttributePattern::constant(word(6))}};
  const ClassPattern compiled(pattern, classes_, dictionaries_);
  EXPECT_FALSE(compiled.first().matches(codes_[0]));
  EXPECT_EQ(compiled.count(state_, classes_, 9), 0u);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutIndexes, ClassPatternTest, ::testing::Bool());

}  // namespace
}  // namespace streamjoin
