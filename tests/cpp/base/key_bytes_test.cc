#include "streamjoin/base/key_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/fresh_seed.h"
#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

__extension__ using Wide = __int128;

int sign(int order) {
  return (order > 0) - (order < 0);
}
int compare(std::string_view a, std::string_view b) {
  const int order = std::memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
  return order != 0 ? sign(order) : (a.size() > b.size()) - (a.size() < b.size());
}

std::string integer(int64_t value) {
  std::string out;
  append_integer(out, value);
  return out;
}
std::string real(double value) {
  std::string out;
  append_real(out, value);
  return out;
}
std::string bytes(std::string_view content) {
  std::string out;
  append_bytes(out, content);
  return out;
}
std::string null() {
  std::string out;
  append_null(out);
  return out;
}

TEST(KeyBytes, IntegersCompareAsTheirBytesAndComeBack) {
  std::mt19937_64 random(fresh_seed());
  std::vector<int64_t> values = {INT64_MIN, INT64_MIN + 1, -256, -255,          -1,       0,
                                 1,         255,           256,  INT64_MAX - 1, INT64_MAX};
  for (int i = 0; i < 200; ++i) values.push_back(static_cast<int64_t>(random()) >> random() % 64);
  for (const int64_t a : values) {
    EXPECT_EQ(decode_integer(integer(a)), a);
    for (const int64_t b : values)
      EXPECT_EQ(compare(integer(a), integer(b)), (a > b) - (a < b)) << a << ' ' << b;
  }
}

TEST(KeyBytes, RealsCompareAsTheirBytesWithNanEqualAndLargest) {
  std::mt19937_64 random(fresh_seed());
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values = {
      -infinity, -1.5, -std::numeric_limits<double>::denorm_min(), 0.0, 1e-300, 1.5, 1e300, infinity};
  for (int i = 0; i < 300; ++i) values.push_back(std::bit_cast<double>(random()));
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  for (const double a : values) {
    const double back = decode_real(real(a));
    EXPECT_TRUE(std::isnan(a) ? std::isnan(back) : back == a) << a;
    for (const double b : values) {
      const int order = std::isnan(a) || std::isnan(b) ? std::isnan(a) - std::isnan(b) : (a > b) - (a < b);
      EXPECT_EQ(compare(real(a), real(b)), order) << a << ' ' << b;
    }
  }
}

TEST(KeyBytes, AllNansAndBothZerosAreOne) {
  const double odd_nan = std::bit_cast<double>(uint64_t{0xfff0000000000001});
  EXPECT_EQ(real(odd_nan), real(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(real(-0.0), real(0.0));
  EXPECT_FALSE(std::signbit(decode_real(real(-0.0))));
}

TEST(KeyBytes, ContentComparesAsItsBytesWithZerosInIt) {
  std::mt19937_64 random(fresh_seed());
  std::vector<std::string> values = {
      "", std::string(1, '\0'), std::string(2, '\0'), "a", std::string("a\0", 2), "a\1", "\xff"};
  const char letters[] = {'\0', '\0', '\1', 'a', '\xfe', '\xff'};
  for (int i = 0; i < 300; ++i) {
    std::string value(random() % 20, ' ');
    for (char& letter : value) letter = letters[random() % (i % 2 ? 6 : 4)];
    values.push_back(value);
  }
  for (const std::string& a : values) {
    EXPECT_EQ(decode_bytes(bytes(a)), a);
    for (const std::string& b : values) EXPECT_EQ(compare(bytes(a), bytes(b)), sign(a.compare(b)));
  }
}

TEST(KeyBytes, WrittenAndAppendedContentAreTheSameAtEveryLength) {
  for (size_t length = 0; length < 40; ++length) {
    for (size_t zero = 0; zero <= length; ++zero) {  // at `length`: no zero at all
      std::string content(length, 'x');
      if (zero < length) content[zero] = '\0';
      std::vector<char> room(length + 3 +
                             (zero < length ? 1 : 0));  // exact, so that a sanitizer sees a byte too many
      char* end = write_bytes(room.data(), content);
      EXPECT_EQ(std::string(room.data(), end), bytes(content)) << length << ' ' << zero;
    }
  }
}

TEST(KeyBytes, DecimalsCompareAsTheirBytesAndComeBack) {
  std::mt19937_64 random(fresh_seed());
  std::vector<Wide> values = {0, 1, -1};
  for (int i = 0; i < 200; ++i) {
    const auto wide = static_cast<Wide>(static_cast<int64_t>(random())) * (Wide{1} << 64) +
                      static_cast<int64_t>(random() >> 1);
    values.push_back(wide >> random() % 127);
  }
  for (const uint32_t width : {16u, 32u}) {
    std::vector<std::string> encoded;
    for (const auto value : values) {
      std::array<char, 32> raw, back;
      raw.fill(value < 0 ? '\xff' : '\0');
      std::memcpy(raw.data(), &value, 16);
      append_decimal(encoded.emplace_back(), raw.data(), width);
      decode_decimal(encoded.back(), width, back.data());
      EXPECT_EQ(std::memcmp(raw.data(), back.data(), width), 0);
    }
    for (size_t a = 0; a < values.size(); ++a) {
      for (size_t b = 0; b < values.size(); ++b) {
        EXPECT_EQ(compare(encoded[a], encoded[b]), (values[a] > values[b]) - (values[a] < values[b]));
      }
    }
  }
}

TEST(KeyBytes, NullComesBeforeEveryValue) {
  for (const std::string& value :
       {integer(INT64_MIN), real(-std::numeric_limits<double>::infinity()), bytes("")}) {
    EXPECT_LT(compare(null(), value), 0);
    EXPECT_FALSE(is_null(value));
  }
  EXPECT_TRUE(is_null(null()));
  EXPECT_THROW(decode_integer(null()), InternalError);
  EXPECT_THROW(decode_bytes(null()), InternalError);
}

TEST(KeyBytes, KeysSplitIntoTheAttributesTheyWereMadeOf) {
  std::mt19937_64 random(fresh_seed());
  const std::string raw(32, '\x7f');
  for (int round = 0; round < 500; ++round) {
    std::vector<AttributeType> types;
    std::vector<std::string> parts;
    std::string key;
    for (size_t i = random() % 6; i > 0; --i) {
      const auto kind = static_cast<AttributeKind>(random() % 4);
      types.push_back({kind, random() % 2 ? 16u : 32u});
      std::string part;
      if (random() % 4 == 0) {
        append_null(part);
      } else if (kind == AttributeKind::kInteger) {
        append_integer(part, static_cast<int64_t>(random() % 3));
      } else if (kind == AttributeKind::kReal) {
        append_real(part, static_cast<double>(random() % 3));
      } else if (kind == AttributeKind::kBytes) {
        append_bytes(part, std::string(random() % 4, static_cast<char>(random() % 2)));
      } else {
        append_decimal(part, raw.data(), types.back().width);
      }
      key += part;
      parts.push_back(part);
    }
    std::vector<std::string_view> out = {"rubbish of before"};
    split(types, key, out);
    EXPECT_EQ(std::vector<std::string>(out.begin(), out.end()), parts);
    AttributeSplitter(types).split(key, out);
    EXPECT_EQ(std::vector<std::string>(out.begin(), out.end()), parts);
  }
}

TEST(KeyBytes, BytesThatAreNoKeyAreRefused) {
  std::vector<std::string_view> out;
  const std::vector<AttributeType> types = {{AttributeKind::kBytes, 0}, {AttributeKind::kInteger, 0}};
  const std::string good = bytes("ab") + integer(1);
  split(types, good, out);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_THROW(split(types, good.substr(0, length), out), InternalError) << length;
  }
  EXPECT_THROW(split(types, good + "x", out), InternalError);
  EXPECT_THROW(split(types, std::string("\1a\0\7", 4) + good, out), InternalError);
  EXPECT_THROW(split(types, "\2" + good, out), InternalError);
}

TEST(KeyBytes, WhatCannotBeSplitDoesNotFit) {
  const std::vector<AttributeType> types = {{AttributeKind::kBytes, 0}, {AttributeKind::kInteger, 0}};
  const std::string good = bytes("ab") + integer(1);
  EXPECT_TRUE(key_fits(types, good));
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(key_fits(types, good.substr(0, length))) << length;
  }
  EXPECT_FALSE(key_fits(types, good + "x"));
  EXPECT_TRUE(attribute_fits(types[0], bytes("ab")));
  EXPECT_FALSE(attribute_fits(types[1], bytes("ab")));
  EXPECT_FALSE(attribute_fits(types[1], ""));
}

}  // namespace
}  // namespace streamjoin
