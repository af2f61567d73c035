#include "streamjoin/disorder/productivity.h"

#include <gtest/gtest.h>

namespace streamjoin {
namespace {

// Three rows in order: delay 0 with 10 and 20 cross results, 1 and 2 results; delay 2 with 30 and 6. Two rows
// of delay 4 came out of order: each counts with the mean of the three, 20 and 3.
TEST(Productivity, ARowOutOfOrderCountsWithTheMeanOfItsInterval) {
  Productivity productivity;
  productivity.add_in_order(0, 10, 1);
  productivity.add_in_order(0, 20, 2);
  productivity.add_out_of_order(4);
  productivity.add_in_order(2, 30, 6);
  productivity.add_out_of_order(4);
  const Productivity::Interval interval = productivity.end_interval();
  EXPECT_EQ(interval.cross, (std::vector<double>{30, 0, 30, 0, 40}));
  EXPECT_EQ(interval.joined, (std::vector<double>{3, 0, 6, 0, 6}));
  EXPECT_EQ(interval.produced, 9);
  EXPECT_EQ(interval.due, 15);
  EXPECT_TRUE(productivity.end_interval().joined.empty()) << "an interval starts from nothing";
}

// Target 0.8: a quarter of what it allows to lose, in proportion, is kept: the aim is 0.8 + 0.8 * 0.2 / 4 =
// 0.84. Eight intervals a period, so two are given to make good: 100 were due and 80 came, 4 too few for the
// aim; of 50 that are due next, twice over, 0.84 + 4 / (50 * 2) = 0.88.
TEST(ResultMonitor, RequirementMakesGoodWhatThePeriodHasLost) {
  ResultMonitor monitor(7);
  EXPECT_DOUBLE_EQ(monitor.requirement(0.8, 50), 0.84);
  monitor.add({60, 70, 0});
  monitor.add({20, 30, 0});
  EXPECT_DOUBLE_EQ(monitor.requirement(0.8, 50), 0.88);
  EXPECT_DOUBLE_EQ(monitor.requirement(0.8, 0), 0.84) << "nothing is due: nothing to make good with";
}

TEST(ResultMonitor, RequirementStaysBetweenNothingAndHalfTheLossOfTheAim) {
  ResultMonitor lost(7);
  lost.add({0, 1000, 0});
  EXPECT_DOUBLE_EQ(lost.requirement(0.8, 10), 0.92);
  EXPECT_DOUBLE_EQ(lost.requirement(1, 10), 1);
  ResultMonitor gained(7);
  gained.add({1000, 1000, 0});
  EXPECT_DOUBLE_EQ(gained.requirement(0.8, 10), 0);
}

TEST(ResultMonitor, ForgetsWhatIsOlderThanItsIntervals) {
  ResultMonitor monitor(2);
  for (const double produced : {1.0, 2.0, 4.0}) monitor.add({produced, 10, 0});
  EXPECT_EQ(monitor.produced(), 6);
  EXPECT_EQ(monitor.due(), 20);
}

// 100 due, 90 came; the model gave 20 up: half of that was lost.
TEST(ResultMonitor, CorrectionIsLostOverForetold) {
  ResultMonitor monitor(7);
  EXPECT_EQ(monitor.correction(), 1);
  monitor.add({50, 55, 15});
  monitor.add({40, 45, 5});
  EXPECT_DOUBLE_EQ(monitor.correction(), 0.5);
  monitor.add({0, 1000, 0});
  EXPECT_DOUBLE_EQ(monitor.correction(), 4) << "never more than fourfold";
}

}  // namespace
}  // namespace streamjoin
