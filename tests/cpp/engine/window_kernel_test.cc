#include "streamjoin/engine/window_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

struct Side {
  std::vector<int64_t> keys;
  std::vector<Time> times;
  std::vector<uint8_t> valid;

  TimedKeyColumns columns() const { return {keys, times, valid}; }
  bool is_valid(size_t row) const { return valid.empty() || valid[row] != 0; }
};

__extension__ using Wide = __int128;

// The judge: every pair looked at, the difference in 128 bits, where nothing overflows.
bool matches(const Side& left, size_t l, const Side& right, size_t r, Duration lower, Duration upper) {
  if (!left.is_valid(l) || !right.is_valid(r) || left.keys[l] != right.keys[r]) return false;
  const Wide difference = static_cast<Wide>(right.times[r]) - left.times[l];
  const bool low = lower == kBeginning || (lower != kEnd && difference >= lower);
  const bool high = upper == kEnd || (upper != kBeginning && difference <= upper);
  return low && high;
}

struct Expected {
  RowPairs pairs;
  std::vector<int64_t> semi, anti;
};

Expected nested_loops(const Side& left, const Side& right, Duration lower, Duration upper) {
  Expected expected;
  for (size_t l = 0; l < left.keys.size(); ++l) {
    std::vector<std::pair<Time, int64_t>> found;
    for (size_t r = 0; r < right.keys.size(); ++r) {
      if (matches(left, l, right, r, lower, upper)) found.emplace_back(right.times[r], r);
    }
    std::sort(found.begin(), found.end());
    for (const auto& [time, row] : found) {
      expected.pairs.left.push_back(static_cast<int64_t>(l));
      expected.pairs.right.push_back(row);
    }
    (found.empty() ? expected.anti : expected.semi).push_back(static_cast<int64_t>(l));
  }
  return expected;
}

void expect_as_nested_loops(const Side& left, const Side& right, Duration lower, Duration upper) {
  const Expected expected = nested_loops(left, right, lower, upper);
  const RowPairs pairs = window_join(left.columns(), right.columns(), lower, upper);
  EXPECT_EQ(pairs.left, expected.pairs.left);
  EXPECT_EQ(pairs.right, expected.pairs.right);
  EXPECT_EQ(window_semi_join(left.columns(), right.columns(), lower, upper), expected.semi);
  EXPECT_EQ(window_anti_join(left.columns(), right.columns(), lower, upper), expected.anti);
}

class Script {
 public:
  explicit Script(uint64_t seed) : random_(seed) {}

  int64_t upto(int64_t largest) { return std::uniform_int_distribution<int64_t>(0, largest)(random_); }

  Time time(int64_t span, bool near_limits) {
    const Time offset = upto(2 * span) - span;
    if (!near_limits) return offset;
    const Time edge = kEnd - 1 - upto(span);
    return upto(1) ? edge : -edge;
  }

  Duration bound(int64_t span, bool near_limits) {
    switch (upto(near_limits ? 5 : 9)) {
      case 0:
        return kBeginning;
      case 1:
        return kEnd;
      case 2:
        return near_limits ? kEnd - 1 - upto(3) : upto(span);
      case 3:
        return near_limits ? kBeginning + 1 + upto(3) : -upto(span);
      default:
        return upto(2 * span) - span;
    }
  }

  Side side(int64_t rows, int64_t keys, int64_t span, bool near_limits) {
    Side side;
    const bool nulls = upto(2) == 0;
    for (int64_t row = 0; row < rows; ++row) {
      side.keys.push_back(upto(keys) - keys / 2);
      side.times.push_back(time(span, near_limits));
      if (nulls) side.valid.push_back(static_cast<uint8_t>(upto(3) > 0));
    }
    if (upto(1)) std::sort(side.times.begin(), side.times.end());
    return side;
  }

 private:
  std::mt19937_64 random_;
};

TEST(WindowKernel, equals_nested_loops_on_random_rows) {
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Script script(seed);
    const bool near_limits = script.upto(3) == 0;
    const int64_t keys = script.upto(1) ? script.upto(2) : script.upto(40);
    const int64_t span = script.upto(1) ? 5 : 100;
    const Side left = script.side(script.upto(80), keys, span, near_limits);
    const Side right = script.side(script.upto(80), keys, span, near_limits);
    expect_as_nested_loops(left, right, script.bound(span, near_limits), script.bound(span, near_limits));
    if (HasFailure()) return;
  }
}

TEST(WindowKernel, equals_nested_loops_on_groups_far_longer_than_a_block) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Script script(seed);
    const int64_t keys = script.upto(3);
    const Side left = script.side(400, keys, 2000, false), right = script.side(1500, keys, 2000, false);
    expect_as_nested_loops(left, right, -script.upto(300), script.upto(300));
    if (HasFailure()) return;
  }
}

TEST(WindowKernel, keeps_keys_apart_that_fill_every_corner_of_64_bits) {
  Side left, right;
  for (int bit = 0; bit < 64; ++bit) {
    left.keys.push_back(static_cast<int64_t>(uint64_t{1} << bit));
    left.keys.push_back(static_cast<int64_t>(~(uint64_t{1} << bit)));
  }
  left.keys.push_back(0);
  left.keys.push_back(-1);
  left.times.assign(left.keys.size(), 0);
  right = left;
  std::reverse(right.keys.begin(), right.keys.end());
  expect_as_nested_loops(left, right, 0, 0);
}

TEST(WindowKernel, both_ends_of_the_bound_are_inside) {
  const Side left{{1}, {100}, {}}, right{{1, 1, 1, 1}, {94, 95, 110, 111}, {}};
  const RowPairs pairs = window_join(left.columns(), right.columns(), -5, 10);
  EXPECT_EQ(pairs.right, (std::vector<int64_t>{1, 2}));
}

TEST(WindowKernel, equal_times_come_in_row_order) {
  const Side left{{1}, {0}, {}}, right{{1, 1, 1, 1}, {3, 2, 3, 2}, {}};
  EXPECT_EQ(window_join(left.columns(), right.columns(), 0, 3).right, (std::vector<int64_t>{1, 3, 0, 2}));
}

TEST(WindowKernel, a_lower_bound_above_the_upper_matches_nothing) {
  const Side rows{{1, 1, 1}, {0, 1, 2}, {}};
  EXPECT_TRUE(window_join(rows.columns(), rows.columns(), 1, 0).left.empty());
  EXPECT_TRUE(window_join(rows.columns(), rows.columns(), kEnd, kBeginning).left.empty());
  EXPECT_TRUE(window_semi_join(rows.columns(), rows.columns(), 1, 0).empty());
  EXPECT_EQ(window_anti_join(rows.columns(), rows.columns(), 1, 0).size(), 3u);
}

TEST(WindowKernel, open_ends_reach_from_one_end_of_time_to_the_other) {
  const Side left{{1, 1}, {kBeginning + 1, kEnd - 1}, {}}, right = left;
  EXPECT_EQ(window_join(left.columns(), right.columns(), kBeginning, kEnd).left.size(), 4u);
  // The largest finite bound is not open: the whole span of time is twice as long.
  EXPECT_EQ(window_join(left.columns(), right.columns(), kBeginning + 1, kEnd - 1).left.size(), 2u);
}

TEST(WindowKernel, empty_sides_give_empty_results) {
  const Side none, rows{{1, 2}, {0, 0}, {}};
  EXPECT_TRUE(window_join(none.columns(), rows.columns(), 0, 0).left.empty());
  EXPECT_TRUE(window_join(rows.columns(), none.columns(), 0, 0).left.empty());
  EXPECT_TRUE(window_anti_join(none.columns(), none.columns(), 0, 0).empty());
  EXPECT_EQ(window_anti_join(rows.columns(), none.columns(), 0, 0), (std::vector<int64_t>{0, 1}));
}

TEST(WindowKernel, null_keys_match_nothing_and_not_each_other) {
  const Side left{{5, 5}, {0, 0}, {0, 1}}, right{{5, 5}, {0, 0}, {0, 0}};
  EXPECT_TRUE(window_join(left.columns(), right.columns(), 0, 0).left.empty());
  EXPECT_EQ(window_anti_join(left.columns(), right.columns(), 0, 0), (std::vector<int64_t>{0, 1}));
}

TEST(WindowKernel, a_side_joined_with_itself_pairs_each_row_with_itself_once) {
  const Side rows{{1, 2, 3}, {0, 0, 0}, {}};
  const RowPairs pairs = window_join(rows.columns(), rows.columns(), 0, 0);
  EXPECT_EQ(pairs.left, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(pairs.right, (std::vector<int64_t>{0, 1, 2}));
}

TEST(WindowKernel, refuses_columns_of_different_lengths_and_extreme_times) {
  const Side good{{1}, {0}, {}}, short_times{{1, 2}, {0}, {}}, short_valid{{1, 2}, {0, 0}, {1}};
  const Side at_beginning{{1}, {kBeginning}, {}}, at_end{{1}, {kEnd}, {}};
  for (const Side* bad : {&short_times, &short_valid, &at_beginning, &at_end}) {
    EXPECT_THROW(window_join(bad->columns(), good.columns(), 0, 0), UsageError);
    EXPECT_THROW(window_semi_join(good.columns(), bad->columns(), 0, 0), UsageError);
    EXPECT_THROW(window_anti_join(good.columns(), bad->columns(), 0, 0), UsageError);
  }
}

}  // namespace
}  // namespace streamjoin
