#include "streamjoin/engine/attribute_column.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace streamjoin {
namespace {

using Valid = std::vector<uint8_t>;

TEST(AttributeColumn, IntegersComeBackFromTheirBytes) {
  AttributeColumn column({AttributeKind::kInteger});
  const std::vector<int64_t> values = {std::numeric_limits<int64_t>::min(), -1, 0, 5,
                                       std::numeric_limits<int64_t>::max()};
  for (const int64_t value : values) {
    std::string bytes;
    append_integer(bytes, value);
    column.append_encoded(bytes);
  }
  EXPECT_EQ(column.integers, values);
  column.append_integer(9);
  column.append_null();
  EXPECT_EQ(column.size(), 7u);
  EXPECT_EQ(column.integers.size(), 7u);
  EXPECT_EQ(column.valid, (Valid{1, 1, 1, 1, 1, 1, 0}));
}

TEST(AttributeColumn, RealsComeBackFromTheirBytes) {
  AttributeColumn column({AttributeKind::kReal});
  for (const double value : {-1.5, 0.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    std::string bytes;
    append_real(bytes, value);
    column.append_encoded(bytes);
  }
  column.append_null();
  ASSERT_EQ(column.reals.size(), 5u);
  EXPECT_EQ(column.reals[0], -1.5);
  EXPECT_EQ(column.reals[1], 0.0);
  EXPECT_EQ(column.reals[2], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(column.reals[3]));
  EXPECT_EQ(column.valid, (Valid{1, 1, 1, 1, 0}));
}

TEST(AttributeColumn, BytesLieOneBehindTheOtherAndANullTakesNone) {
  AttributeColumn column({AttributeKind::kBytes});
  const std::string with_zero("a\0b", 3);
  for (const std::string& value : {with_zero, std::string(), std::string("xyz")}) {
    std::string bytes;
    append_bytes(bytes, value);
    column.append_encoded(bytes);
    column.append_null();
  }
  EXPECT_EQ(column.bytes, with_zero + "xyz");
  EXPECT_EQ(column.ends, (std::vector<int64_t>{0, 3, 3, 3, 3, 6, 6}));
  EXPECT_EQ(column.valid, (Valid{1, 0, 1, 0, 1, 0}));
}

TEST(AttributeColumn, DecimalsKeepTheirWidthAndSign) {
  AttributeColumn column({AttributeKind::kDecimal, 16});
  std::array<char, 16> minus_two;
  minus_two.fill('\xff');
  minus_two[0] = '\xfe';
  std::string bytes;
  append_decimal(bytes, minus_two.data(), 16);
  column.append_null();
  column.append_encoded(bytes);
  EXPECT_EQ(column.bytes, std::string(16, '\0') + std::string(minus_two.begin(), minus_two.end()));
  EXPECT_EQ(column.valid, (Valid{0, 1}));
}

TEST(AttributeColumn, EncodedNullsAreNulls) {
  std::string null;
  append_null(null);
  for (const AttributeKind kind :
       {AttributeKind::kInteger, AttributeKind::kReal, AttributeKind::kBytes, AttributeKind::kDecimal}) {
    AttributeColumn column({kind, 32});
    column.append_encoded(null);
    EXPECT_EQ(column.valid, Valid{0});
  }
}

}  // namespace
}  // namespace streamjoin
