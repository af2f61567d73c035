#include "streamjoin/engine/payload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "base/fresh_seed.h"
#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

using Value = std::optional<std::string>;  // the bytes of one value; of a boolean "0" or "1"

bool bit(const std::vector<uint8_t>& bits, size_t at) {
  return (bits[at / 8] >> (at % 8)) & 1;
}
void set_bit(std::vector<uint8_t>& bits, size_t at) {
  bits[at / 8] |= static_cast<uint8_t>(1u << (at % 8));
}

/// A column of Arrow's layout in memory of exactly its size, made from plain values; a slice if `offset` rows
/// lie before it.
struct Buffers {
  std::vector<uint8_t> values, validity;
  std::vector<int32_t> offsets;
  std::vector<int64_t> large_offsets;
  int64_t offset;

  Buffers(ColumnLayout layout, const std::vector<Value>& content, int64_t skipped) : offset(skipped) {
    const size_t rows = content.size() + static_cast<size_t>(skipped);
    const bool nulls = std::ranges::any_of(content, [](const Value& value) { return !value; });
    if (nulls) validity.resize((rows + 7) / 8);
    if (layout.kind == ColumnKind::kBits) values.resize((rows + 7) / 8);
    offsets.push_back(0);
    large_offsets.push_back(0);
    for (size_t row = 0; row < rows; ++row) {
      const Value value =
          row < static_cast<size_t>(skipped) ? Value() : content[row - static_cast<size_t>(skipped)];
      if (value && nulls) set_bit(validity, row);
      if (layout.kind == ColumnKind::kBits) {
        if (value == "1") set_bit(values, row);
      } else {
        const std::string bytes =
            value.value_or(std::string(layout.kind == ColumnKind::kFixed ? layout.width : 0, '?'));
        values.insert(values.end(), bytes.begin(), bytes.end());
      }
      offsets.push_back(static_cast<int32_t>(values.size()));
      large_offsets.push_back(static_cast<int64_t>(values.size()));
    }
  }
  ColumnBuffers view(ColumnLayout layout) const {
    const bool large = layout.kind == ColumnKind::kLargeBinary;
    return {values.data(), large ? static_cast<const void*>(large_offsets.data()) : offsets.data(),
            validity.empty() ? nullptr : validity.data(), offset};
  }
};

std::vector<Value> plain(ColumnLayout layout, const GatheredColumn& column, size_t rows) {
  std::vector<Value> values;
  for (size_t row = 0; row < rows; ++row) {
    if (!column.validity.empty() && !bit(column.validity, row)) {
      values.emplace_back();
    } else if (layout.kind == ColumnKind::kBits) {
      values.emplace_back(bit(column.values, row) ? "1" : "0");
    } else {
      int64_t from = static_cast<int64_t>(row * layout.width), to = from + layout.width;
      if (layout.kind == ColumnKind::kBinary) from = column.offsets[row], to = column.offsets[row + 1];
      if (layout.kind == ColumnKind::kLargeBinary)
        from = column.large_offsets[row], to = column.large_offsets[row + 1];
      values.emplace_back(std::string(column.values.begin() + from, column.values.begin() + to));
    }
  }
  return values;
}

class RandomPayload {
 public:
  explicit RandomPayload(uint64_t seed) : random_(seed) {}
  size_t below(size_t bound) { return random_() % bound; }

  std::vector<Value> values(ColumnLayout layout, size_t rows) {
    const bool nulls = below(2) == 0;
    std::vector<Value> values;
    for (size_t row = 0; row < rows; ++row) {
      if (nulls && below(3) == 0) {
        values.emplace_back();
      } else if (layout.kind == ColumnKind::kBits) {
        values.emplace_back(below(2) == 0 ? "0" : "1");
      } else {
        std::string bytes(layout.kind == ColumnKind::kFixed ? layout.width : below(6), '\0');
        for (char& byte : bytes) byte = static_cast<char>(random_());
        values.emplace_back(bytes);
      }
    }
    return values;
  }

 private:
  std::mt19937_64 random_;
};

TEST(Payload, GathersWhatARowByRowLookGives) {
  RandomPayload random(fresh_seed());
  const std::vector<ColumnLayout> layout = {{ColumnKind::kFixed, 8},      {ColumnKind::kFixed, 4},
                                            {ColumnKind::kFixed, 1},      {ColumnKind::kFixed, 16},
                                            {ColumnKind::kBits, 0},       {ColumnKind::kBinary, 0},
                                            {ColumnKind::kLargeBinary, 0}};
  for (int round = 0; round < 200; ++round) {
    Payload payload(layout);
    std::list<Buffers> memory;
    std::map<uint32_t, std::vector<std::vector<Value>>> twin;  // batch -> column -> values
    std::vector<RowRef> held;
    for (size_t i = 1 + random.below(4); i > 0; --i) {
      const uint32_t batch = static_cast<uint32_t>(random.below(10));
      const size_t rows = 1 + random.below(30);
      std::vector<ColumnBuffers> columns;
      twin[batch].clear();
      for (const ColumnLayout& one : layout) {
        twin[batch].push_back(random.values(one, rows));
        memory.emplace_back(one, twin[batch].back(), static_cast<int64_t>(random.below(12)));
        columns.push_back(memory.back().view(one));
      }
      payload.put(batch, columns);
    }
    if (twin.size() > 1 && random.below(2) == 0) {
      payload.drop(twin.begin()->first);
      twin.erase(twin.begin());
    }
    for (const auto& [batch, columns] : twin) {
      for (uint32_t row = 0; row < columns[0].size(); ++row) held.push_back({batch, row});
    }
    const bool missing = random.below(2) == 0;
    const size_t streams = 1 + random.below(5);
    const size_t stream = random.below(streams);
    const size_t results = random.below(60);
    std::vector<RowRef> refs(streams * results, kNoRow);
    for (size_t i = 0; i < results; ++i) {
      const RowRef row = missing && random.below(5) == 0 ? kNoRow : held[random.below(held.size())];
      refs[i * streams + stream] = row;
    }
    for (size_t column = 0; column < layout.size(); ++column) {
      std::vector<Value> expected;
      for (size_t i = 0; i < results; ++i) {
        const RowRef from = refs[i * streams + stream];
        expected.push_back(from == kNoRow ? Value() : twin[from.batch][column][from.row]);
      }
      const GatheredColumn gathered = payload.gather({refs.data() + stream, streams, results}, column);
      ASSERT_EQ(plain(layout[column], gathered, results), expected);
      ASSERT_EQ(gathered.null_count, std::ranges::count(expected, Value()));
    }
  }
}

TEST(Payload, NoValidityIsMadeWhereNothingIsNull) {
  Payload payload({{ColumnKind::kFixed, 8}});
  const Buffers buffers({ColumnKind::kFixed, 8}, {Value("12345678")}, 0);
  payload.put(0, {buffers.view({ColumnKind::kFixed, 8})});
  const std::vector<RowRef> refs = {{0, 0}, kNoRow};
  EXPECT_TRUE(payload.gather({refs.data(), 2, 1}, 0).validity.empty());
}

TEST(Payload, ColumnsItDoesNotGatherAreRefused) {
  Payload payload({ColumnLayout{}});
  EXPECT_THROW(payload.gather({}, 0), UsageError);
  EXPECT_THROW(payload.put(0, {}), InternalError);
}

}  // namespace
}  // namespace streamjoin
