#include "streamjoin/join/bounds.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/wide_integer.h"
#include "streamjoin/join/join_type.h"

namespace streamjoin {
namespace {

using Bound = std::optional<Duration>;

const std::vector<Time> kTimes = {kBeginning + 1, kBeginning + 2, -11, -1, 0, 1, 5, 12, kEnd - 2, kEnd - 1};
const std::vector<Bound> kBoundEnds = {
    std::nullopt, Bound(kBeginning + 1), Bound(-7), Bound(-1), Bound(0), Bound(1), Bound(6), Bound(kEnd)};

bool fits(Bound lower, Bound upper, Time left, Time right) {
  const Wide difference = Wide{right} - left;
  return (!lower || difference >= *lower) && (!upper || difference <= *upper);
}

template <typename F>
void for_all_bounds(F f) {
  for (const Bound lower : kBoundEnds) {
    for (const Bound upper : kBoundEnds) f(lower, upper, Bounds(lower, upper));
  }
}

TEST(Bounds, FirstAndReachSayWhichPairsFit) {
  for_all_bounds([](Bound lower, Bound upper, const Bounds& bounds) {
    for (const Time left : kTimes) {
      for (const Time right : kTimes) {
        const bool expected = fits(lower, upper, left, right);
        EXPECT_EQ(bounds.first(kLeft, left) <= right && right <= bounds.reach(kLeft, left), expected);
        EXPECT_EQ(bounds.first(kRight, right) <= left && left <= bounds.reach(kRight, right), expected);
        if (bounds.empty()) {
          EXPECT_FALSE(expected);
        }
      }
    }
  });
}

TEST(Bounds, WhatIsForgottenMatchesNoRowFromTheClockOnAndWhatStaysMayMatch) {
  for_all_bounds([](Bound lower, Bound upper, const Bounds& bounds) {
    if (bounds.empty()) return;
    for (const Side side : {kLeft, kRight}) {
      for (const Time clock : kTimes) {
        for (const Time other : kTimes) {
          const bool forgotten = other < bounds.forget_before(side, clock);
          // The latest time of `side` that a row of the other stream can match, in integers that hold it.
          const Bound end = side == kLeft ? lower : upper;
          const Wide reach = side == kLeft ? Wide{other} - end.value_or(0) : Wide{other} + end.value_or(0);
          EXPECT_EQ(forgotten, end.has_value() && clock > reach);
        }
      }
    }
  });
}

TEST(Bounds, AnEndedStreamLetsEverythingBeForgottenEvenIfTheWindowIsOpen) {
  const Bounds open(std::nullopt, std::nullopt);
  EXPECT_EQ(open.forget_before(kLeft, kEnd), kEnd);
  EXPECT_EQ(open.forget_before(kRight, kEnd), kEnd);
  EXPECT_EQ(open.forget_before(kLeft, kEnd - 1), kBeginning);
}

TEST(Bounds, OnlyCrossedEndsAreEmpty) {
  EXPECT_TRUE(Bounds(1, 0).empty());
  EXPECT_FALSE(Bounds(0, 0).empty());
  EXPECT_FALSE(Bounds(std::nullopt, -5).empty());
  EXPECT_FALSE(Bounds(5, std::nullopt).empty());
}

TEST(JoinType, PreservedSidesAreThoseOfTheTableInTheDocumentation) {
  const auto sides = [](JoinType type) { return std::pair(preserves(type, kLeft), preserves(type, kRight)); };
  EXPECT_EQ(sides(JoinType::kInner), std::pair(false, false));
  EXPECT_EQ(sides(JoinType::kLeft), std::pair(true, false));
  EXPECT_EQ(sides(JoinType::kRight), std::pair(false, true));
  EXPECT_EQ(sides(JoinType::kFull), std::pair(true, true));
  EXPECT_EQ(sides(JoinType::kLeftSemi), std::pair(false, false));
  EXPECT_EQ(sides(JoinType::kLeftAnti), std::pair(true, false));
}

}  // namespace
}  // namespace streamjoin
