#include "streamjoin/punctuation/range_set.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

constexpr Code kMin = std::numeric_limits<Code>::min();
constexpr Code kMax = std::numeric_limits<Code>::max();

/// One expiry per code, for the few codes that the test looks at.
struct Twin {
  static constexpr int kCodes = 64;
  Code first;
  std::array<bool, kCodes> present{};
  std::array<Time, kCodes> expires{};

  /// Maximal runs of one expiry: (low, high, expires).
  std::vector<std::tuple<Code, Code, Time>> runs() const {
    std::vector<std::tuple<Code, Code, Time>> runs;
    for (int at = 0; at < kCodes; ++at) {
      if (!present[at]) continue;
      if (at > 0 && present[at - 1] && expires[at - 1] == expires[at]) {
        std::get<1>(runs.back()) = first + at;
      } else {
        runs.emplace_back(first + at, first + at, expires[at]);
      }
    }
    return runs;
  }
};

void expect_same(const RangeSet& set, const Twin& twin) {
  ASSERT_EQ(set.validate(), "");
  std::vector<std::tuple<Code, Code, Time>> got;
  set.for_each([&](Code low, Code high, Time expires) { got.emplace_back(low, high, expires); });
  ASSERT_EQ(got, twin.runs());
  ASSERT_EQ(set.ranges(), got.size());
  ASSERT_EQ(set.empty(), got.empty());
  for (int at = 0; at < Twin::kCodes; ++at) ASSERT_EQ(set.contains(twin.first + at), twin.present[at]) << at;
}

void run_script(std::mt19937_64& random, Code first, int lifespans) {
  RangeSet set;
  Twin twin{first, {}, {}};
  Time clock = 0;
  for (int step = 0; step < 300; ++step) {
    int low = static_cast<int>(random() % Twin::kCodes), high = low;
    if (random() % 2) high = std::min<int>(Twin::kCodes - 1, low + static_cast<int>(random() % 12));
    const int action = static_cast<int>(random() % 10);
    if (action < 5) {
      const Time expires =
          lifespans == 0 || random() % 3 == 0 ? kEnd : clock + static_cast<Time>(random() % lifespans);
      set.insert(first + low, first + high, expires);
      for (int at = low; at <= high; ++at) {
        twin.expires[at] = twin.present[at] ? std::max(twin.expires[at], expires) : expires;
        twin.present[at] = true;
      }
    } else if (action < 8) {
      set.erase(first + low, first + high);
      for (int at = low; at <= high; ++at) twin.present[at] = false;
    } else if (action == 8) {
      set.expire(++clock);
      for (int at = 0; at < Twin::kCodes; ++at) twin.present[at] &= twin.expires[at] >= clock;
    } else {
      std::vector<Code> covered;
      for (const auto& [from, to] : set.intersection(first + low, first + high)) {
        if (!covered.empty()) {
          ASSERT_LT(covered.back() + 1, from) << "parts that touch are one";
        }
        for (Code code = from;; ++code) {
          covered.push_back(code);
          if (code == to) break;
        }
      }
      std::vector<Code> expected;
      for (int at = low; at <= high; ++at) {
        if (twin.present[at]) expected.push_back(first + at);
      }
      ASSERT_EQ(covered, expected);
    }
    expect_same(set, twin);
    if (testing::Test::HasFatalFailure()) return;
    if (step % 50 == 49) {
      ArchiveWriter writer;
      set.save(writer);
      const std::string saved = writer.take();
      ArchiveReader reader(saved);
      set = RangeSet();
      set.load(reader);
      ASSERT_TRUE(reader.at_end());
      expect_same(set, twin);
    }
  }
}

TEST(RangeSet, BehavesLikeOneExpiryPerCode) {
  std::mt19937_64 random(fresh_seed());
  for (int round = 0; round < 60; ++round) {
    for (const Code first : {Code{0}, Code{-32}, kMin, Code(kMax - Twin::kCodes + 1)}) {
      run_script(random, first, round % 3 * 10);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(RangeSet, HoldsTheWholeRangeOfCodes) {
  RangeSet set;
  set.insert(kMin, kMax);
  EXPECT_EQ(set.ranges(), 1u);
  EXPECT_TRUE(set.contains(kMin) && set.contains(0) && set.contains(kMax));
  set.erase(0, 0);
  set.erase(kMin, kMin);
  set.erase(kMax, kMax);
  const std::vector<std::pair<Code, Code>> expected = {{kMin + 1, -1}, {1, kMax - 1}};
  EXPECT_EQ(set.intersection(kMin, kMax), expected);
  set.insert(kMax, kMax);
  set.insert(kMin, kMin);
  set.insert(0, 0);
  EXPECT_EQ(set.ranges(), 1u);
  set.erase(kMin, kMax);
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.contains(kMin) || set.contains(kMax));
  EXPECT_EQ(set.validate(), "");
}

TEST(RangeSet, NeighboursInAnyOrderBecomeOneRange) {
  RangeSet set;
  for (Code code = 0; code < 1000; ++code) set.insert(code * 7919 % 1000, code * 7919 % 1000);
  EXPECT_EQ(set.ranges(), 1u);
  EXPECT_EQ(set.intersection(-5, 5000), (std::vector<std::pair<Code, Code>>{{0, 999}}));
}

TEST(RangeSet, CrossedEndsAreNothing) {
  RangeSet set;
  set.insert(5, 4);
  EXPECT_TRUE(set.empty());
  set.insert(1, 9);
  set.erase(5, 4);
  EXPECT_EQ(set.ranges(), 1u);
  EXPECT_TRUE(set.intersection(5, 4).empty());
}

TEST(RangeSet, WhatNeverExpiresStaysAtTheEndOfTime) {
  RangeSet set;
  set.insert(1, 1);
  set.insert(2, 2, kEnd - 1);
  set.insert(3, 3, kBeginning);
  set.expire(kBeginning);
  EXPECT_EQ(set.ranges(), 3u);
  set.expire(kEnd);
  EXPECT_TRUE(set.contains(1));
  EXPECT_FALSE(set.contains(2) || set.contains(3));
}

TEST(RangeSet, DamagedArchivesAreRefusedAndChangeNothing) {
  const auto refused = [](const std::vector<std::array<int64_t, 3>>& ranges, uint64_t count) {
    ArchiveWriter writer;
    writer.value(count);
    for (const auto& range : ranges) {
      for (const int64_t value : range) writer.value(value);
    }
    const std::string saved = writer.take();
    ArchiveReader reader(saved);
    RangeSet set;
    set.insert(7, 7);
    EXPECT_THROW(set.load(reader), DamagedArchive);
    EXPECT_TRUE(set.contains(7));
    EXPECT_EQ(set.validate(), "");
  };
  refused({{5, 4, kEnd}}, 1);
  refused({{1, 4, kEnd}, {4, 6, 3}}, 2);
  refused({{1, 4, kEnd}, {5, 6, kEnd}}, 2);
  refused({{9, 9, kEnd}, {1, 1, kEnd}}, 2);
  refused({{9, 9, kEnd}}, uint64_t{1} << 60);
}

TEST(RangeSet, MemoryFollowsTheRanges) {
  RangeSet set;
  const size_t none = set.memory_bytes();
  for (Code code = 0; code < 1000; ++code) set.insert(2 * code, 2 * code, 10);
  EXPECT_GT(set.memory_bytes(), none + 1000 * 2 * sizeof(Code));
  set.expire(11);
  EXPECT_EQ(set.memory_bytes(), none);
}

}  // namespace
}  // namespace streamjoin
