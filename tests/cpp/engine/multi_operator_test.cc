#include "streamjoin/engine/multi_operator.h"

#include <gtest/gtest.h>

namespace streamjoin {
namespace {

/// Strings as a key column.
struct Words {
  explicit Words(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      bytes += word;
      ends.push_back(static_cast<int64_t>(bytes.size()));
      valid.push_back(word != "null");
    }
  }
  std::vector<KeyColumn> columns() const {
    return {{{AttributeKind::kBytes, 0}, bytes.data(), ends.data(), valid.data()}};
  }
  std::string bytes;
  std::vector<int64_t> ends{0};
  std::vector<uint8_t> valid;
};

MultiOperatorOptions three_streams(bool null_safe) {
  MultiOperatorOptions options;
  options.join.alternatives = {{{0, 5, 5}, {5, 0, 5}, {5, 5, 0}}};
  options.join.value_slots = {0, 0, 0};
  options.classes = {{{{AttributeKind::kBytes, 0}}, {null_safe}}};
  options.attributes = {{0}, {0, 0}, {0}};
  return options;
}

MultiOutput push(MultiOperator& join, size_t stream, const std::vector<Words>& keys) {
  std::vector<std::vector<KeyColumn>> columns;
  for (const Words& words : keys) columns.push_back(words.columns());
  const std::vector<Time> times(keys[0].valid.size(), 10);
  return join.push(stream, 1, times, columns, {});
}

TEST(MultiOperator, ARowWithTwoDifferentKeysOfOneClassMatchesNothing) {
  MultiOperator join(three_streams(false));
  push(join, 0, {Words({"a", "b"})});
  push(join, 1, {Words({"a", "a"}), Words({"b", "a"})});
  const MultiOutput output = push(join, 2, {Words({"a", "b"})});
  EXPECT_EQ(output.rows, (std::vector<RowRef>{{1, 0}, {1, 1}, {1, 0}}));
  EXPECT_EQ(join.join().state(1).live_rows(), 1u);
  EXPECT_EQ(join.join().counters(1).rows_in, 2u);
  EXPECT_EQ(join.dictionary_entries(), 2u);
  EXPECT_EQ(join.validate(), "");
}

TEST(MultiOperator, NullMatchesNullOnlyWhereTheClassIsNullSafe) {
  for (const bool null_safe : {false, true}) {
    MultiOperator join(three_streams(null_safe));
    push(join, 0, {Words({"null"})});
    push(join, 1, {Words({"null"}), Words({"null"})});
    EXPECT_EQ(push(join, 2, {Words({"null"})}).rows.size(), null_safe ? 3u : 0u);
    EXPECT_EQ(join.join().state(0).live_rows(), null_safe ? 1u : 0u);
  }
}

TEST(MultiOperator, GoesOnFromASnapshotAndLetsKeysGoAfterwards) {
  MultiOperator first(three_streams(false));
  push(first, 0, {Words({"a", "b"})});
  push(first, 1, {Words({"a"}), Words({"a"})});
  const std::string bytes = first.save();
  MultiOperator join(three_streams(false));
  join.load(bytes);
  EXPECT_EQ(join.save(), bytes);
  EXPECT_EQ(push(join, 2, {Words({"a"})}).rows.size(), 3u);
  const MultiOutput output = join.finish();
  EXPECT_EQ(output.punctuations.kinds.size(), 1u);
  EXPECT_EQ(join.dictionary_entries(), 0u);
  EXPECT_EQ(join.validate(), "");
  EXPECT_THROW(MultiOperator(three_streams(false)).load(bytes.substr(0, bytes.size() / 2)), DamagedArchive);
}

TEST(MultiOperator, ASnapshotWithAChangedByteIsRefusedOrLoadsAsAStateThatHolds) {
  MultiOperator first(three_streams(false));
  push(first, 0, {Words({"a", "b", "b"})});
  push(first, 1, {Words({"a", "c"}), Words({"a", "c"})});
  const std::string bytes = first.save();
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int mask : {1, 2, 128, 255}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      MultiOperator join(three_streams(false));
      try {
        join.load(changed);
      } catch (const DamagedArchive&) {
        ++refused;
        continue;
      }
      ASSERT_EQ(join.validate(), "") << at;
      push(join, 2, {Words({"a", "b", "d"})});
      join.finish();
      ASSERT_EQ(join.validate(), "") << at;
    }
  }
  EXPECT_GT(refused, bytes.size());
}

}  // namespace
}  // namespace streamjoin
