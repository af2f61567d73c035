#include "streamjoin/punctuation/attribute_order.h"

#include <gtest/gtest.h>

#include <set>

#include "punctuation/random_patterns.h"

namespace streamjoin {
namespace {

TEST(AttributeOrder, VisitsExactlyWhatMatchesInTheOrderOfTheAttribute) {
  RandomPatterns random;
  AttributeOrder<int> order;
  std::set<std::pair<PlainValue, int>> twin;  // null before all values, as in the encoding
  for (int step = 0; step < 4000; ++step) {
    const std::pair<PlainValue, int> item(random.value(), static_cast<int>(random.below(20)));
    if (random.below(2) == 0) {
      order.add(encode(item.first), item.second);
      twin.insert(item);
    } else {
      order.remove(encode(item.first), item.second);
      twin.erase(item);
    }
    ASSERT_EQ(order.size(), twin.size());
    ASSERT_EQ(order.contains(encode(item.first), item.second), twin.contains(item));
    const PlainPattern pattern = random.pattern(1);
    std::vector<int> visited, expected;
    order.visit(encode(pattern).attributes[0], [&](int id) { visited.push_back(id); });
    for (const auto& [value, id] : twin) {
      if (matches(pattern[0], value)) expected.push_back(id);
    }
    ASSERT_EQ(visited, expected);
  }
  order.clear();
  EXPECT_EQ(order.size(), 0u);
}

TEST(AttributeOrder, MemoryGrowsWithItemsAndTheirBytes) {
  AttributeOrder<int> order;
  EXPECT_EQ(order.memory_bytes(), 0u);
  order.add("short", 1);
  const size_t one = order.memory_bytes();
  order.add(std::string(1000, 'x'), 2);
  EXPECT_GE(order.memory_bytes(), 2 * one + 1000);
}

}  // namespace
}  // namespace streamjoin
