#include "streamjoin/punctuation/constant_patterns.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "punctuation/random_patterns.h"

namespace streamjoin {
namespace {

TEST(ConstantPatterns, BehavesLikeAMapFromConstantsToWhatIsRemembered) {
  RandomPatterns random;
  for (int round = 0; round < 40; ++round) {
    // Attributes 0 and 2 of three are fixed.
    ConstantPatterns patterns(3, {0, 2});
    std::map<std::pair<PlainValue, PlainValue>, uint64_t> twin;
    uint64_t sequence = 0;
    for (int step = 0; step < 200; ++step) {
      const PlainKey key = random.key(3);
      const EncodedKey encoded(key);
      const std::pair constants(key[0], key[2]);
      const ConstantPatterns::Member* found = patterns.find(encoded.views());
      ASSERT_EQ(found != nullptr, twin.contains(constants));
      KeyPattern pattern = encode(PlainPattern{{AttributePattern::Kind::kConstant, key[0], {}},
                                               {AttributePattern::Kind::kAny, {}, {}},
                                               {AttributePattern::Kind::kConstant, key[2], {}}});
      if (!found) {
        patterns.insert(pattern, {0, kEnd, sequence});
        twin[constants] = sequence++;
      } else {
        ASSERT_EQ(found->second.sequence, twin[constants]);
        ASSERT_EQ(patterns.pattern(*found), pattern);
        if (random.below(2) == 0) {
          patterns.erase(*found);
          twin.erase(constants);
        }
      }
      const PlainPattern wider = random.pattern(3);
      const KeyPattern encoded_wider = encode(wider);
      if (encoded_wider.is_empty()) continue;
      std::set<uint64_t> inside, expected;
      for (const auto* member : patterns.inside(encoded_wider)) inside.insert(member->second.sequence);
      for (const auto& [fixed, number] : twin) {
        const bool contained = wider[1].kind == AttributePattern::Kind::kAny &&
                               matches(wider[0], fixed.first) && matches(wider[2], fixed.second);
        if (contained) expected.insert(number);
      }
      ASSERT_EQ(inside, expected);
      ASSERT_EQ(patterns.size(), twin.size());
      ASSERT_EQ(patterns.validate(), "");
    }
  }
}

}  // namespace
}  // namespace streamjoin
