#include "streamjoin/engine/grouped_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace streamjoin {
namespace {

TEST(GroupTable, numbers_keys_in_order_of_first_appearance) {
  GroupTable table(4);
  EXPECT_EQ(table.find_or_add(50, table.home(50)), 0u);
  EXPECT_EQ(table.find_or_add(-7, table.home(-7)), 1u);
  EXPECT_EQ(table.find_or_add(50, table.home(50)), 0u);
  EXPECT_EQ(table.find(-7, table.home(-7)), 1u);
  EXPECT_EQ(table.find(8, table.home(8)), GroupTable::kNoGroup);
  EXPECT_EQ(table.groups(), 2u);
}

TEST(GroupTable, for_no_rows_knows_no_key) {
  const GroupTable table(0);
  EXPECT_EQ(table.find(0, table.home(0)), GroupTable::kNoGroup);
}

TEST(GroupedRows, holds_each_valid_row_once_in_its_keys_group_by_time_then_row) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<int64_t> keys, times;
    std::vector<uint8_t> valid;
    std::map<int64_t, std::set<std::pair<Time, int64_t>>> expected;
    const int64_t rows = static_cast<int64_t>(random() % 300),
                  domain = 1 + static_cast<int64_t>(random() % 60);
    for (int64_t row = 0; row < rows; ++row) {
      keys.push_back(static_cast<int64_t>(random()) % domain);
      times.push_back(static_cast<int64_t>(random() % 50));
      valid.push_back(random() % 5 != 0);
      if (valid.back()) expected[keys.back()].insert({times.back(), row});
    }
    const GroupedRows grouped({keys, times, valid});
    ASSERT_EQ(grouped.table().groups(), expected.size());
    size_t longest = 0;
    for (const auto& [key, group_rows] : expected) {
      const uint32_t group = grouped.table().find(key, grouped.table().home(key));
      ASSERT_NE(group, GroupTable::kNoGroup);
      const GroupedRows::Run run = grouped.run_of(group);
      ASSERT_EQ(run.count, group_rows.size());
      const GroupedRows::Entry* entry = grouped.entries() + run.first;
      for (const auto& place : group_rows) {
        ASSERT_EQ(std::make_pair(entry->time, entry->row), place);
        ++entry;
      }
      longest = std::max(longest, group_rows.size());
    }
    ASSERT_EQ(grouped.longest(), longest);
  }
}

}  // namespace
}  // namespace streamjoin
