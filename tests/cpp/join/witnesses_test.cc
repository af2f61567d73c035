#include "streamjoin/join/witnesses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace streamjoin {
namespace {

using Member = Witnesses::Member;
using Named = std::pair<uint32_t, uint32_t>;

std::vector<Named> kept_by(const Witnesses& witnesses, Member member) {
  std::vector<Named> owners;
  witnesses.for_each_kept(member, [&](Member owner) { owners.emplace_back(owner.stream, owner.node); });
  std::sort(owners.begin(), owners.end());
  return owners;
}

TEST(Witnesses, LinksAgreeWithAMapOfOwners) {
  std::mt19937_64 random(3);
  Witnesses witnesses(4);
  std::map<Named, std::vector<Named>> expected;
  for (int step = 0; step < 3000; ++step) {
    const Member owner{static_cast<uint32_t>(random() % 4), static_cast<uint32_t>(random() % 12)};
    std::vector<Member> members;
    for (uint32_t stream = 0; stream < 4; ++stream) {
      if (stream != owner.stream && random() % 2 == 0)
        members.push_back({stream, static_cast<uint32_t>(random() % 12)});
    }
    if (random() % 3 == 0) {
      witnesses.drop(owner);
      expected.erase({owner.stream, owner.node});
    } else {
      witnesses.set(owner, members);
      auto& named = expected[{owner.stream, owner.node}];
      named.clear();
      for (const Member member : members) named.emplace_back(member.stream, member.node);
    }
    ASSERT_EQ(witnesses.validate(), "");
    const Member asked{static_cast<uint32_t>(random() % 4), static_cast<uint32_t>(random() % 12)};
    std::vector<Named> owners;
    for (const auto& [name, named] : expected) {
      if (std::ranges::find(named, Named(asked.stream, asked.node)) != named.end()) owners.push_back(name);
    }
    ASSERT_EQ(kept_by(witnesses, asked), owners);
  }
}

TEST(Witnesses, AWaitIsOverOnceTheClockIsPastItAndTheWitnessIsTheSame) {
  Witnesses witnesses(2);
  witnesses.set({0, 1}, {});
  witnesses.wait(1, 10, {0, 1});
  witnesses.set({0, 2}, {});
  witnesses.wait(1, 5, {0, 2});
  witnesses.set({0, 2}, {});  // has another witness now
  EXPECT_TRUE(witnesses.due(1, 10).empty());
  ASSERT_EQ(witnesses.due(1, 11).size(), 1u);
  EXPECT_TRUE(witnesses.due(1, 100).empty());
}

}  // namespace
}  // namespace streamjoin
