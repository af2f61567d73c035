#include "streamjoin/join/tuple_predicate.h"

#include <gtest/gtest.h>

#include <limits>

namespace streamjoin {
namespace {

constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

/// One tuple: values[stream][slot].
class OneTuple : public TupleView {
 public:
  explicit OneTuple(std::vector<std::vector<NumericValue>> values) : values_(std::move(values)) {}
  size_t size() const override { return 1; }
  std::span<const RowRef> rows() override { return {}; }
  NumericValue value(size_t, size_t stream, size_t slot) const override { return values_[stream][slot]; }

 private:
  std::vector<std::vector<NumericValue>> values_;
};

NumericValue number(int64_t value) {
  return NumericValue::of_integer(value);
}
NumericValue real(double value) {
  return NumericValue::of_real(value);
}
bool asked(TuplePredicate& predicate, std::vector<std::vector<NumericValue>> values) {
  OneTuple tuple(std::move(values));
  uint8_t holds = 1;
  predicate.evaluate(tuple, {&holds, 1});
  return holds != 0;
}

TEST(TuplePredicate, ABandIncludesItsEdgeAndDoesNotOverflow) {
  const auto band = make_band({0, 0}, {1, 0}, number(3));
  EXPECT_TRUE(asked(*band, {{number(1)}, {number(4)}}));
  EXPECT_FALSE(asked(*band, {{number(1)}, {number(5)}}));
  EXPECT_FALSE(asked(*band, {{number(kSmallest)}, {number(kLargest)}}));
  EXPECT_TRUE(asked(*band, {{number(kLargest - 3)}, {number(kLargest)}}));
  EXPECT_FALSE(asked(*band, {{number(kLargest - 4)}, {number(kLargest)}}));
  EXPECT_TRUE(asked(*band, {{real(0.5)}, {number(3)}}));
}

TEST(TuplePredicate, ADistanceIsLessThanItsLimit) {
  const auto distance = make_distance({0, 0}, {0, 1}, {1, 0}, {1, 1}, number(5));
  EXPECT_FALSE(asked(*distance, {{number(0), number(0)}, {number(3), number(4)}}));
  EXPECT_TRUE(asked(*distance, {{number(0), number(0)}, {number(3), number(3)}}));
  EXPECT_TRUE(asked(*distance, {{real(0), real(0)}, {real(3), real(3.9)}}));
  EXPECT_FALSE(asked(*distance, {{number(kSmallest), number(0)}, {number(kLargest), number(0)}}));
  const auto negative = make_distance({0, 0}, {0, 1}, {1, 0}, {1, 1}, real(-1));
  EXPECT_FALSE(asked(*negative, {{real(0), real(0)}, {real(0), real(0)}}));
}

TEST(TuplePredicate, AComparisonAddsItsOffsetToTheRightSideExactly) {
  const auto less = make_compare({0, 0}, Comparison::kLess, {1, 0}, number(1));
  EXPECT_TRUE(asked(*less, {{number(4)}, {number(4)}}));
  EXPECT_FALSE(asked(*less, {{number(5)}, {number(4)}}));
  EXPECT_TRUE(asked(*less, {{number(kLargest)}, {number(kLargest)}}));
  const auto equal = make_compare({0, 0}, Comparison::kEqual, {1, 0}, number(0));
  EXPECT_FALSE(asked(*equal, {{number(kLargest)}, {number(kLargest - 1)}}));
}

TEST(TuplePredicate, ANullMakesEveryFormFalse) {
  const NumericValue null = NumericValue::null();
  EXPECT_FALSE(asked(*make_band({0, 0}, {1, 0}, number(3)), {{null}, {number(1)}}));
  EXPECT_FALSE(asked(*make_compare({0, 0}, Comparison::kNotEqual, {1, 0}, number(0)), {{number(1)}, {null}}));
  EXPECT_FALSE(asked(*make_distance({0, 0}, {0, 1}, {1, 0}, {1, 1}, number(5)),
                     {{number(0), null}, {number(0), number(0)}}));
}

}  // namespace
}  // namespace streamjoin
