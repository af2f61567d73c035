#include "streamjoin/engine/binary_operator.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "base/fresh_seed.h"
#include "streamjoin/base/check.h"
#include "streamjoin/base/hash.h"

namespace streamjoin {
namespace {

OperatorOptions with_integer_keys(BinaryJoinOptions join, bool in_dictionary) {
  // A null-safe integer key goes through the dictionary: the same values, the other way.
  return {.join = join, .key_types = {{AttributeKind::kInteger}}, .null_safe = {in_dictionary}};
}

OperatorOptions with_text_keys(BinaryJoinOptions join) {
  return {.join = join, .key_types = {{AttributeKind::kBytes}}, .null_safe = {false}};
}

std::string encoded(int64_t value) {
  std::string bytes;
  append_integer(bytes, value);
  return bytes;
}

std::string encoded(std::string_view value) {
  std::string bytes;
  append_bytes(bytes, value);
  return bytes;
}

KeyPattern constant(std::string bytes) {
  return {{AttributePattern::constant(std::move(bytes))}};
}

struct Promised {
  std::vector<int64_t> before;
  std::vector<Time> times;
  std::vector<int64_t> keys;
};

Output push(BinaryOperator& op, Side side, uint32_t batch, const std::vector<Time>& times,
            const std::vector<int64_t>& keys, const Promised& promised = {}) {
  const std::vector<KeyColumn> columns = {{{AttributeKind::kInteger}, keys.data()}};
  const std::vector<KeyColumn> promised_columns = {{{AttributeKind::kInteger}, promised.keys.data()}};
  return op.push(side, batch, times, columns, nullptr, {promised.before, promised.times, promised_columns});
}

Output push_text(BinaryOperator& op, Side side, uint32_t batch, Time time,
                 const std::vector<std::string>& keys) {
  std::string all;
  std::vector<int64_t> ends{0};
  for (const std::string& key : keys) ends.push_back(static_cast<int64_t>((all += key).size()));
  const std::vector<Time> times(keys.size(), time);
  const std::vector<KeyColumn> columns = {{{AttributeKind::kBytes}, all.data(), ends.data()}};
  return op.push(side, batch, times, columns, nullptr);
}

void expect_same_rows(const std::vector<RefusedRow>& a, const std::vector<RefusedRow>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(a[i].side == b[i].side && a[i].row == b[i].row && a[i].late_by == b[i].late_by);
  }
}

void expect_same(const Output& a, const Output& b) {
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (size_t i = 0; i < a.rows.size(); ++i) {
    ASSERT_TRUE(a.rows[i].left == b.rows[i].left && a.rows[i].right == b.rows[i].right) << "row " << i;
  }
  expect_same_rows(a.late, b.late);
  expect_same_rows(a.violations, b.violations);
  ASSERT_EQ(a.punctuations.kinds, b.punctuations.kinds);
  ASSERT_EQ(a.punctuations.times, b.punctuations.times);
  ASSERT_EQ(a.punctuations.untils, b.punctuations.untils);
  ASSERT_EQ(a.punctuations.attributes[0].constant.integers, b.punctuations.attributes[0].constant.integers);
  ASSERT_EQ(a.punctuations.attributes[0].constant.valid, b.punctuations.attributes[0].constant.valid);
}

TEST(BinaryOperator, KeysInADictionaryGiveWhatKeysThatAreTheirOwnCodesGive) {
  const uint64_t first = fresh_seed();
  for (uint64_t seed = first; seed < first + 400; ++seed) {
    SCOPED_TRACE("STREAMJOIN_SEED=" + std::to_string(seed));
    std::mt19937_64 random(mix(seed));
    const auto below = [&](size_t bound) { return random() % bound; };
    BinaryJoinOptions join;
    join.type = static_cast<JoinType>(below(6));
    join.bounds = Bounds(-static_cast<Duration>(below(10)), static_cast<Duration>(below(10)));
    join.late = static_cast<LatePolicy>(below(2));
    join.violation = static_cast<ViolationPolicy>(below(2));
    for (SideOptions& side : join.sides) side.implies = static_cast<Implies>(below(3));
    BinaryOperator direct(with_integer_keys(join, false));
    BinaryOperator interned(with_integer_keys(join, true));
    std::array<Time, 2> clock{};
    for (uint32_t step = 1; step < 60; ++step) {
      const Side side = below(2) == 0 ? kLeft : kRight;
      const auto key = [&] { return static_cast<int64_t>(step / 4 + below(6)) - 8; };
      if (below(10) < 6) {
        std::vector<Time> times;
        std::vector<int64_t> keys;
        for (size_t row = below(10); row > 0; --row) {
          clock[side] += static_cast<Time>(below(3));
          times.push_back(clock[side] - static_cast<Time>(below(6) == 0 ? below(8) : 0));
          keys.push_back(key());
        }
        Promised promised;
        for (size_t row = 0; row <= times.size() && below(2) == 0; row += 1 + below(4)) {
          promised.before.push_back(static_cast<int64_t>(row));
          promised.times.push_back(below(4) == 0 ? kBeginning : clock[side]);
          promised.keys.push_back(key());
        }
        expect_same(push(direct, side, step, times, keys, promised),
                    push(interned, side, step, times, keys, promised));
      } else if (below(3) > 0) {
        std::vector<KeyPattern> patterns;
        for (size_t count = below(4); count > 0; --count) patterns.push_back(constant(encoded(key())));
        expect_same(direct.punctuate(side, patterns, clock[side]),
                    interned.punctuate(side, patterns, clock[side]));
      } else {
        ++clock[side];
        expect_same(direct.advance(side, clock[side]), interned.advance(side, clock[side]));
      }
      ASSERT_EQ(direct.validate(), "");
      ASSERT_EQ(interned.validate(), "");
      for (const Side each : {kLeft, kRight}) ASSERT_EQ(direct.live_rows(each), interned.live_rows(each));
      if (HasFailure()) return;
    }
    expect_same(direct.finish(), interned.finish());
    ASSERT_EQ(interned.stats().dictionary_entries, 0u);
    if (HasFailure()) return;
  }
}

TEST(BinaryOperator, PunctuationsWithRowsStandBetweenThem) {
  for (const bool interned : {false, true}) {
    BinaryOperator op(with_integer_keys({}, interned));
    push(op, kRight, 1, {1, 1}, {7, 8});
    // 7 is promised away behind the first row, 8 behind all: at time 5, since none is known.
    const Output output =
        push(op, kLeft, 1, {2, 5, 5}, {7, 7, 8}, {{1, 3, 3}, {3, kBeginning, 4}, {7, 8, 99}});
    ASSERT_EQ(output.rows.size(), 2u);
    EXPECT_EQ(output.rows[0].left.row, 0u);
    EXPECT_EQ(output.rows[1].left.row, 2u);
    ASSERT_EQ(output.violations.size(), 1u);
    EXPECT_EQ(output.violations[0].row.row, 1u);
    EXPECT_EQ(output.punctuations.times, std::vector<Time>({4}));  // of 99; the others have rows on the left
    EXPECT_EQ(op.live_rows(kRight), 0u);
    EXPECT_EQ(op.stats().counters[kLeft].punctuations_in, 3u);
    EXPECT_THROW(push(op, kLeft, 2, {6}, {1}, {{2}, {6}, {1}}), UsageError);
    EXPECT_THROW(push(op, kLeft, 2, {6}, {1}, {{1, 0}, {6, 6}, {1, 1}}), UsageError);
    EXPECT_THROW(push(op, kLeft, 2, {6}, {1}, {{-1}, {6}, {1}}), UsageError);
    EXPECT_EQ(op.validate(), "");
  }
}

TEST(BinaryOperator, NothingIsLeftWhenEverythingIsPunctuatedOrExpired) {
  for (const bool by_punctuation : {true, false}) {
    BinaryJoinOptions join;
    if (!by_punctuation) join.bounds = Bounds(-10, 10);
    BinaryOperator op(with_text_keys(join));
    for (uint32_t i = 0; i < 500; ++i) {
      const std::string key = "key " + std::to_string(i);
      EXPECT_TRUE(push_text(op, kLeft, 2 * i, i, {key, key}).rows.empty());
      EXPECT_EQ(push_text(op, kRight, 2 * i + 1, i, {key}).rows.size(), 2u);
      if (!by_punctuation) continue;
      op.punctuate(kLeft, {constant(encoded(key))}, i);
      EXPECT_EQ(op.punctuate(kRight, {constant(encoded(key))}, i).punctuations.kinds.size(), 1u);
    }
    EXPECT_EQ(op.stats().dictionary_entries == 0, by_punctuation);
    if (!by_punctuation) {
      op.advance(kLeft, 1000);
      op.advance(kRight, 1000);
    }
    const OperatorStats stats = op.stats();
    for (const Side side : {kLeft, kRight}) {
      EXPECT_EQ(stats.state_rows[side], 0u);
      EXPECT_EQ(stats.state_keys[side], 0u);
      EXPECT_EQ(stats.promises_held[side], 0u);
    }
    EXPECT_EQ(stats.dictionary_entries, 0u);
    EXPECT_EQ(stats.rows_out, 1000u);
    EXPECT_EQ(op.validate(), "");
  }
}

TEST(BinaryOperator, APatternOverTextClosesEveryKeyItMatchesAndNoOther) {
  BinaryOperator op(with_text_keys({}));
  push_text(op, kRight, 1, 1, {"apple", "banana", "cherry"});
  const Output output = op.punctuate(kLeft, {{{AttributePattern::range(encoded("a"), encoded("bz"))}}}, 2);
  EXPECT_EQ(op.live_rows(kRight), 1u);
  ASSERT_EQ(output.punctuations.kinds.size(), 1u);
  EXPECT_EQ(output.punctuations.attributes[0].low.bytes, "a");
  EXPECT_EQ(output.punctuations.attributes[0].high.bytes, "bz");
  EXPECT_EQ(push_text(op, kLeft, 1, 3, {"avocado", "cherry", "bz", "bzz"}).violations.size(), 2u);
  EXPECT_EQ(op.stats().rows_out, 1u);
  EXPECT_EQ(op.validate(), "");
}

TEST(BinaryOperator, NullKeysMatchNothingUnlessTheyAreComparedNullSafely) {
  for (const bool null_safe : {false, true}) {
    BinaryJoinOptions join;
    join.type = JoinType::kLeft;
    BinaryOperator op(with_integer_keys(join, null_safe));
    const int64_t key = 0;
    const uint8_t valid = 0;
    const Time time = 1;
    const std::vector<KeyColumn> columns = {{{AttributeKind::kInteger}, &key, nullptr, &valid}};
    EXPECT_TRUE(op.push(kRight, 1, {&time, 1}, columns, nullptr).rows.empty());
    const Output output = op.push(kLeft, 1, {&time, 1}, columns, nullptr);
    ASSERT_EQ(output.rows.size(), 1u);
    EXPECT_EQ(output.rows[0].right == kNoRow, !null_safe);
  }
}

TEST(BinaryOperator, WithoutKeysEveryPairInsideTheWindowMatches) {
  BinaryJoinOptions join;
  join.bounds = Bounds(-1, 1);
  BinaryOperator op(OperatorOptions{.join = join, .key_types = {}, .null_safe = {}});
  const std::vector<Time> times = {1, 2, 5};
  EXPECT_TRUE(op.push(kLeft, 1, times, {}, nullptr).rows.empty());
  EXPECT_EQ(op.push(kRight, 1, times, {}, nullptr).rows.size(), 5u);
  EXPECT_EQ(op.validate(), "");
}

TEST(BinaryOperator, ASnapshotThatIsCutOffOrGoesOnIsRefused) {
  BinaryOperator op(with_text_keys({}));
  push_text(op, kLeft, 1, 1, {"a", "b", "c"});
  push_text(op, kRight, 1, 1, {"b", "d"});
  op.punctuate(kLeft, {{{AttributePattern::at_least(encoded("c"))}}}, 1);
  op.punctuate(kRight, {constant(encoded("x"))}, 1);
  const std::string bytes = op.save();
  for (size_t length = 0; length < bytes.size(); ++length) {
    BinaryOperator other(with_text_keys({}));
    EXPECT_THROW(other.load(std::string_view(bytes).substr(0, length)), DamagedArchive) << length;
  }
  BinaryOperator longer(with_text_keys({}));
  EXPECT_THROW(longer.load(bytes + "x"), DamagedArchive);
  BinaryOperator other(with_text_keys({}));
  other.load(bytes);
  EXPECT_EQ(other.validate(), "");
  EXPECT_EQ(push_text(other, kRight, 2, 2, {"a"}).rows.size(), 1u);
}

/// An operator with rows, late rows, promises of every form and a cluster, all drawn at random.
class RandomOperator {
 public:
  explicit RandomOperator(std::mt19937_64& random) : random_(random), text_(below(2) == 0) {
    BinaryJoinOptions join;
    join.type = static_cast<JoinType>(below(6));
    join.bounds = Bounds(-20, 20);
    join.late = LatePolicy::kInsert;
    join.violation = static_cast<ViolationPolicy>(below(2));
    for (SideOptions& side : join.sides) {
      side.implies = static_cast<Implies>(below(3));
      if (below(3) == 0) side.lifespan = static_cast<Duration>(below(30));
    }
    options_ = text_ ? with_text_keys(join) : with_integer_keys(join, below(2) == 0);
  }

  BinaryOperator make() const { return BinaryOperator(options_); }

  void use(BinaryOperator& op, uint32_t first_batch) {
    for (uint32_t step = 0; step < 20; ++step) {
      const Side side = below(2) == 0 ? kLeft : kRight;
      clock_ += static_cast<Time>(below(3));
      const auto key = [&] { return static_cast<int64_t>(below(9)); };
      const auto bytes = [&](int64_t at) {
        return text_ ? encoded("key " + std::to_string(at)) : encoded(at);
      };
      if (below(10) < 6) {
        const Time time = clock_ - static_cast<Time>(below(4) == 0 ? below(9) : 0);
        const int64_t at = key();
        text_ ? push_text(op, side, first_batch + step, time, {"key " + std::to_string(at), "x"})
              : push(op, side, first_batch + step, {time, time}, {at, 77});
      } else if (below(4) == 0) {
        op.advance(side, clock_);
      } else {
        const int64_t low = key();
        op.punctuate(side,
                     {below(2) == 0 ? constant(bytes(low))
                                    : KeyPattern{{AttributePattern::range(bytes(low), bytes(low + 2))}}},
                     clock_);
      }
    }
  }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }

  std::mt19937_64& random_;
  bool text_;
  OperatorOptions options_;
  Time clock_ = 0;
};

TEST(BinaryOperator, ASnapshotWithAChangedByteIsRefusedOrLoadsAsAStateThatHolds) {
  const uint64_t first = fresh_seed();
  size_t refused = 0;
  for (uint64_t seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE("STREAMJOIN_SEED=" + std::to_string(seed));
    std::mt19937_64 random(mix(seed));
    RandomOperator script(random);
    BinaryOperator op = script.make();
    script.use(op, 1);
    for (const Side side : {kLeft, kRight}) op.move_rows_to(side, 0);
    const std::string bytes = op.save();
    for (int change = 0; change < 60; ++change) {
      std::string changed = bytes;
      const size_t at = random() % bytes.size();
      // Small changes of numbers are those that no check of a length sees.
      changed[at] = static_cast<char>(random() % 2 == 0 ? changed[at] ^ (1 << random() % 8) : random());
      BinaryOperator other = script.make();
      try {
        other.load(changed);
      } catch (const DamagedArchive&) {
        ++refused;
        continue;
      }
      ASSERT_EQ(other.validate(), "") << "byte " << at;
      RandomOperator(script).use(other, 100);
      ASSERT_EQ(other.validate(), "") << "byte " << at;
      other.finish();
      ASSERT_EQ(other.stats().dictionary_entries, 0u) << "byte " << at;
    }
  }
  EXPECT_GT(refused, 500u);
}

}  // namespace
}  // namespace streamjoin
