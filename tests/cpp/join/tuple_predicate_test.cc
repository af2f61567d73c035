#include "streamjoin/join/tuple_predicate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

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

/// Rows of stream 1, or of stream 0, beside one row of the other.
class OneRun : public RunView {
 public:
  OneRun(size_t stream, std::vector<NumericValue> bound, std::vector<std::vector<NumericValue>> slots)
      : stream_(stream), bound_(std::move(bound)), slots_(std::move(slots)) {
    for (const auto& slot : slots_) {
      auto& [bits, kinds] = columns_.emplace_back();
      for (const NumericValue& value : slot) {
        bits.push_back(value.bits());
        kinds.push_back(value.kind());
      }
    }
  }
  size_t stream() const override { return stream_; }
  NumericValue bound(ValueSlot slot) const override { return bound_[slot.slot]; }
  ValueRun run(size_t slot) override {
    const auto& [bits, kinds] = columns_[slot];
    const auto all = [&](uint8_t kind) {
      return std::ranges::all_of(kinds, [=](uint8_t each) { return each == kind; });
    };
    return {bits.data(), kinds.data(), all(NumericValue::kRealKind), all(NumericValue::kIntegerKind)};
  }

 private:
  size_t stream_;
  std::vector<NumericValue> bound_;
  std::vector<std::vector<NumericValue>> slots_;
  std::vector<std::pair<std::vector<uint64_t>, std::vector<uint8_t>>> columns_;
};

TEST(TuplePredicate, ARunIsJudgedAsItsTuplesAre) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto upto = [&](int high) { return std::uniform_int_distribution<int>(0, high)(random); };
    const auto any_number = [&](int kind) {
      if (kind == 2 && upto(4) == 0) return NumericValue::null();
      if (kind == 2) kind = upto(1);
      if (kind == 0) return real(upto(8) / 2.0 - 2);
      const int64_t extremes[] = {kSmallest, kSmallest + 1, kLargest, kLargest - 1};
      return number(upto(9) == 0 ? extremes[upto(3)] : upto(8) - 4);
    };
    const int kind_of_run = upto(2), kind_of_bound = upto(2);
    const NumericValue constant = upto(1) == 0 ? number(upto(5) - 1) : real(upto(9) / 2.0 - 1);
    const auto op = static_cast<Comparison>(upto(5));
    std::unique_ptr<NativePredicate> predicate;
    const int form = upto(2);
    if (form == 0) predicate = make_band({0, 0}, {1, 0}, constant);
    if (form == 1) predicate = make_compare({0, 0}, op, {1, 0}, constant);
    if (form == 2) predicate = make_distance({0, 0}, {0, 1}, {1, 0}, {1, 1}, constant);
    const auto stream = static_cast<size_t>(upto(1));
    const std::vector<NumericValue> bound{any_number(kind_of_bound), any_number(kind_of_bound)};
    std::vector<std::vector<NumericValue>> slots(2);
    for (int n = upto(20); n >= 0; --n) {
      for (auto& slot : slots) slot.push_back(any_number(kind_of_run));
    }
    OneRun run(stream, bound, slots);
    std::vector<uint8_t> found(slots[0].size(), 1);
    if (upto(1) == 0) found[0] = 0;
    std::vector<uint8_t> expected = found;
    predicate->judge(run, found);
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::vector<NumericValue> row{slots[0][i], slots[1][i]};
      const bool holds = asked(*predicate, stream == 0 ? std::vector{row, bound} : std::vector{bound, row});
      expected[i] = expected[i] != 0 && holds;
    }
    ASSERT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace streamjoin
