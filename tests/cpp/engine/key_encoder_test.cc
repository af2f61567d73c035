#include "streamjoin/engine/key_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/fresh_seed.h"
#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

/// A column that owns its memory, in exactly as many bytes as it needs, so that a sanitizer sees a read too
/// far.
struct Column {
  AttributeType type;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<char> bytes;
  std::vector<int64_t> offsets;
  std::vector<uint8_t> valid;

  KeyColumn view() const {
    const void* values = bytes.data();
    if (type.kind == AttributeKind::kInteger) values = integers.data();
    if (type.kind == AttributeKind::kReal) values = reals.data();
    return {type, values, offsets.empty() ? nullptr : offsets.data(), valid.empty() ? nullptr : valid.data()};
  }
  void append(size_t row, std::string& out) const {
    if (!valid.empty() && valid[row] == 0) {
      append_null(out);
    } else if (type.kind == AttributeKind::kInteger) {
      append_integer(out, integers[row]);
    } else if (type.kind == AttributeKind::kReal) {
      append_real(out, reals[row]);
    } else if (type.kind == AttributeKind::kBytes) {
      append_bytes(out, std::string_view(bytes.data() + offsets[row], offsets[row + 1] - offsets[row]));
    } else {
      append_decimal(out, bytes.data() + row * type.width, type.width);
    }
  }
};

Column random_column(std::mt19937_64& random, size_t rows) {
  Column column;
  column.type = {static_cast<AttributeKind>(random() % 4), random() % 2 ? 16u : 32u};
  const bool with_nulls = random() % 2;
  size_t skipped = random() % 3;  // a sliced array starts inside its buffer
  if (column.type.kind == AttributeKind::kBytes) {
    column.bytes.assign(skipped, 'z');
    column.offsets.push_back(static_cast<int64_t>(skipped));
  }
  for (size_t row = 0; row < rows; ++row) {
    column.integers.push_back(static_cast<int64_t>(random()));
    column.reals.push_back(random() % 5 == 0 ? -0.0 : static_cast<double>(random()) - 1e18);
    if (with_nulls) column.valid.push_back(random() % 3 != 0);
    size_t length = column.type.kind == AttributeKind::kBytes ? random() % 30 : column.type.width;
    for (; length > 0; --length) column.bytes.push_back(static_cast<char>(random() % 8 == 0 ? 0 : random()));
    if (column.type.kind == AttributeKind::kBytes)
      column.offsets.push_back(static_cast<int64_t>(column.bytes.size()));
  }
  column.bytes.shrink_to_fit();
  return column;
}

TEST(KeyEncoder, EncodesBatchesAsAttributeByAttribute) {
  std::mt19937_64 random(fresh_seed());
  std::string arena = "left over";
  std::vector<uint64_t> ends = {77};
  for (int round = 0; round < 400; ++round) {
    const size_t rows = random() % 40;
    std::vector<Column> columns;
    std::vector<KeyColumn> views;
    std::vector<AttributeType> types;
    for (size_t left = 1 + random() % 4; left > 0; --left) columns.push_back(random_column(random, rows));
    for (const Column& column : columns) {
      views.push_back(column.view());
      types.push_back(column.type);
    }
    const KeyEncoder encoder(types, std::vector<bool>(types.size(), false));
    encoder.encode_all(views, rows, arena, ends);
    ASSERT_EQ(ends.size(), rows);
    ASSERT_EQ(arena.size(), rows == 0 ? 0 : ends.back());
    uint64_t start = 0;
    for (size_t row = 0; row < rows; ++row) {
      std::string expected, one = "left over";
      for (const Column& column : columns) column.append(row, expected);
      ASSERT_EQ(arena.substr(start, ends[row] - start), expected);
      encoder.encode(views, row, one);
      ASSERT_EQ(one, expected);
      start = ends[row];
    }
  }
}

TEST(KeyEncoder, AKeyIsNullIfAnAttributeThatIsNotNullSafeIs) {
  const std::vector<AttributeType> types = {{AttributeKind::kInteger, 0}, {AttributeKind::kReal, 0}};
  const int64_t integers[] = {1, 2, 3, 4};
  const double reals[] = {1, 2, 3, 4};
  const uint8_t first[] = {1, 0, 1, 0}, second[] = {1, 1, 0, 0};
  const std::vector<KeyColumn> columns = {{types[0], integers, nullptr, first},
                                          {types[1], reals, nullptr, second}};
  const auto nulls = [&](bool first_safe, bool second_safe) {
    const KeyEncoder encoder(types, {first_safe, second_safe});
    std::string rows;
    for (size_t row = 0; row < 4; ++row) rows += encoder.null_key(columns, row) ? 'n' : '.';
    return rows;
  };
  EXPECT_EQ(nulls(false, false), ".nnn");
  EXPECT_EQ(nulls(true, false), "..nn");
  EXPECT_EQ(nulls(false, true), ".n.n");
  EXPECT_EQ(nulls(true, true), "....");
}

TEST(KeyEncoder, OnlyOnePlainIntegerIsItsOwnCode) {
  const AttributeType integer{AttributeKind::kInteger, 0}, real{AttributeKind::kReal, 0};
  EXPECT_TRUE(KeyEncoder({integer}, {false}).direct());
  EXPECT_FALSE(KeyEncoder({integer}, {true}).direct());
  EXPECT_FALSE(KeyEncoder({real}, {false}).direct());
  EXPECT_FALSE(KeyEncoder({integer, integer}, {false, false}).direct());
  EXPECT_FALSE(KeyEncoder({}, {}).direct());
}

TEST(KeyEncoder, AKeyWithoutAttributesIsTheSameForAllRows) {
  std::string arena = "x";
  std::vector<uint64_t> ends;
  KeyEncoder({}, {}).encode_all({}, 3, arena, ends);
  EXPECT_EQ(arena, "");
  EXPECT_EQ(ends, (std::vector<uint64_t>{0, 0, 0}));
}

TEST(KeyEncoder, RefusesColumnsOfAnotherKey) {
  EXPECT_THROW(KeyEncoder({{AttributeKind::kReal, 0}}, {}), UsageError);
  const KeyEncoder encoder({{AttributeKind::kReal, 0}}, {false});
  const int64_t value = 1;
  const KeyColumn column{{AttributeKind::kInteger, 0}, &value, nullptr, nullptr};
  std::string out;
  EXPECT_THROW(encoder.encode({&column, 1}, 0, out), InternalError);
  EXPECT_THROW(encoder.encode({}, 0, out), InternalError);
}

}  // namespace
}  // namespace streamjoin
