#include "streamjoin/join/window_matrix.h"

#include <gtest/gtest.h>

namespace streamjoin {
namespace {

TEST(WindowMatrix, APeriodIsWhereARowOfTheOtherStreamMustLie) {
  // B lies 0 .. 5 after A.
  const WindowMatrix matrix({{{0, 5}, {0, 0}}});
  Period of_b;
  matrix.narrow(0, 1, 0, 100, of_b);
  EXPECT_EQ(of_b.first, 100);
  EXPECT_EQ(of_b.last, 105);
  Period of_a;
  matrix.narrow(0, 0, 1, 100, of_a);
  EXPECT_EQ(of_a.first, 95);
  EXPECT_EQ(of_a.last, 100);
}

TEST(WindowMatrix, ARowIsForgottenOnlyWhenEveryOtherStreamIsPastIt) {
  const WindowMatrix matrix({{{0, 5, 9}, {5, 0, 9}, {9, 9, 0}}});
  EXPECT_EQ(matrix.forget_before(0, std::vector<Time>{0, 100, 100}), 91);
  EXPECT_EQ(matrix.forget_before(0, std::vector<Time>{0, 100, kBeginning}), kBeginning);
  EXPECT_EQ(matrix.forget_before(0, std::vector<Time>{0, 100, kEnd}), 95);
  EXPECT_EQ(matrix.forget_before(0, std::vector<Time>{0, kEnd, kEnd}), kEnd);
}

TEST(WindowMatrix, AnOpenBoundKeepsARowUntilTheStreamEnds) {
  const WindowMatrix matrix({{{0, std::nullopt}, {3, 0}}});
  EXPECT_EQ(matrix.forget_before(0, std::vector<Time>{0, 1000}), kBeginning);
  EXPECT_EQ(matrix.forget_before(0, std::vector<Time>{0, kEnd}), kEnd);
}

TEST(WindowMatrix, TheHullIsTheLargestOfAllAlternatives) {
  const WindowMatrix matrix({{{0, 5}, {0, 0}}, {{0, 0}, {7, 0}}});
  EXPECT_EQ(matrix.hull(0, 1), 5);
  EXPECT_EQ(matrix.hull(1, 0), 7);
  EXPECT_EQ(matrix.all(), 3u);
}

TEST(WindowMatrix, RefusesAMatrixOfAnotherShape) {
  EXPECT_THROW(WindowMatrix({}), UsageError);
  EXPECT_THROW(WindowMatrix({{{0, 5}, {0}}}), UsageError);
}

}  // namespace
}  // namespace streamjoin
