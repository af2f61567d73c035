#include "streamjoin/base/time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/wide_integer.h"

namespace streamjoin {
namespace {

Time clamped(Wide value) {
  return static_cast<Time>(std::clamp<Wide>(value, kBeginning, kEnd));
}

std::vector<Time> telling_times() {
  std::vector<Time> times;
  for (const Time around : {kBeginning, kBeginning / 2, Time{0}, kEnd / 2, kEnd}) {
    for (Duration step = -3; step <= 3; ++step) times.push_back(clamped(Wide{around} + step));
  }
  return times;
}

TEST(Time, SumsAndDifferencesAreThoseOfWiderIntegersCutToTheRange) {
  for (const Time a : telling_times()) {
    for (const Time b : telling_times()) {
      EXPECT_EQ(add_saturating(a, b), clamped(Wide{a} + b)) << a << " + " << b;
      EXPECT_EQ(subtract_saturating(a, b), clamped(Wide{a} - b)) << a << " - " << b;
    }
  }
}

TEST(Time, AnEndlessLifespanHasNoEndWheneverItBegan) {
  for (const Time time : telling_times()) EXPECT_EQ(end_of(time, kEnd), kEnd);
  EXPECT_EQ(end_of(-5, 5), 0);
  EXPECT_EQ(end_of(7, 0), 7);
  EXPECT_EQ(end_of(kEnd - 1, 5), kEnd);
}

}  // namespace
}  // namespace streamjoin
