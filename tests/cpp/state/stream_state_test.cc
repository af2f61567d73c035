#include "streamjoin/state/stream_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace streamjoin {
namespace {

struct PlainRow {
  Time time;
  std::vector<Code> keys;
  RowRef row;
  NumericValue value;
};

/// The rows of a period, with their keys and values as the columns have them, are those of the plain list.
void expect_columns(const StreamState& state, std::vector<PlainRow> plain, Time first, Time last,
                    StreamState::Cursor& cursor) {
  std::ranges::stable_sort(plain, {}, &PlainRow::time);
  std::erase_if(plain, [&](const PlainRow& row) { return row.time < first || last < row.time; });
  const StreamState::Places places = state.places_between(first, last, cursor);
  const StreamState::Places same = state.narrowed(state.all_places(), first, last);
  ASSERT_TRUE(places.begin == same.begin && places.end == same.end);
  size_t at = 0;
  for (size_t place = places.begin; place < places.end; ++place) {
    if (!state.is_live(state.listed(place).node)) continue;
    ASSERT_LT(at, plain.size());
    const PlainRow& row = plain[at++];
    ASSERT_EQ(state.row(state.listed(place).node), row.row);
    for (size_t p = 0; p < row.keys.size(); ++p) ASSERT_EQ(*state.columns().keys(p, place), row.keys[p]);
    const NumericValue value = state.columns().values(0, place).at(0);
    ASSERT_EQ(value.is_null(), row.value.is_null());
    ASSERT_EQ(value.bits(), row.value.bits());
  }
  ASSERT_EQ(at, plain.size());
}

/// The state beside a plain list of rows.
void run_seed(uint32_t seed, bool indexed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto upto = [&](int high) { return std::uniform_int_distribution<int>(0, high)(random); };
  const size_t classes = static_cast<size_t>(upto(3));
  StreamState state({std::vector<KeyDictionary*>(classes, nullptr), 1, indexed});
  std::vector<PlainRow> plain;  // in arrival order
  StreamState::Cursor cursor;
  Time now = 0;
  for (uint32_t step = 0; step < 600; ++step) {
    const int what = upto(99);
    if (what < 85) {
      now += upto(2);
      PlainRow row{upto(19) == 0 ? now - upto(9) : now, {}, {step / 7, step % 7}, {}};
      for (size_t p = 0; p < classes; ++p) row.keys.push_back(upto(4));
      const NumericValue value = upto(9) == 0 ? NumericValue::null() : NumericValue::of_integer(step);
      const uint32_t node = state.insert(row.time, row.row, row.keys, {&value, 1});
      if (indexed) {
        EXPECT_EQ(state.value(0, node).bits(), value.bits());
      }
      row.value = value;
      plain.push_back(row);
    } else if (what < 95) {
      const Time limit = now - upto(40);
      const size_t gone = std::erase_if(plain, [&](const PlainRow& row) { return row.time < limit; });
      ASSERT_EQ(state.invalidate_before(limit), gone);
    } else if (what < 97 && classes > 0) {
      const Code key = upto(4);
      const size_t gone =
          std::erase_if(plain, [&](const PlainRow& row) { return row.keys[classes - 1] == key; });
      ASSERT_EQ(state.purge_key(classes - 1, key), gone);
    } else if (what == 97) {
      state.sweep_all();
      ASSERT_EQ(state.dead_rows(), 0u);
    }
    state.sweep();
    ASSERT_LE(state.dead_rows(), state.live_rows() / 4 + StreamState::kSlackRows);
    ASSERT_EQ(state.live_rows(), plain.size());
    if (step % 5 == 0) {
      const auto oldest = std::ranges::min_element(plain, {}, &PlainRow::time);
      ASSERT_EQ(state.oldest(), oldest == plain.end() ? kEnd : oldest->time);
    }
    if (step % 20 != 0) continue;
    ASSERT_EQ(state.validate(), "");
    for (size_t p = 0; p < classes && indexed; ++p) {
      for (Code key = 0; key < 5; ++key) {
        std::vector<RowRef> expected;
        for (const PlainRow& row : plain) {
          if (row.keys[p] == key) expected.push_back(row.row);
        }
        std::vector<RowRef> found;
        state.look(p, key, [&](uint32_t node) { found.push_back(state.row(node)); });
        ASSERT_EQ(found, expected);
        const Time first = now - upto(20);
        const Time last = first + upto(10);
        const auto outside = [&](Time time) { return time < first || last < time; };
        std::erase_if(expected, [&](RowRef each) {
          return std::ranges::any_of(
              plain, [&](const PlainRow& row) { return row.row == each && outside(row.time); });
        });
        found.clear();
        if (const INode* list = state.find_list(p, key); list != nullptr) {
          state.look(p, *list, first, last, [&](uint32_t node, Time time) {
            ASSERT_EQ(time, state.time(node));
            if (!outside(time)) found.push_back(state.row(node));
          });
        }
        ASSERT_EQ(found, expected);
      }
    }
    const Time first = now - upto(20);
    const Time last = first + upto(10);
    if (!indexed) expect_columns(state, plain, first, last, cursor);
    size_t between = 0;
    for (const auto& entry : state.between(first, last)) between += state.is_live(entry.node);
    ASSERT_EQ(between, std::count_if(plain.begin(), plain.end(), [&](const PlainRow& row) {
                return first <= row.time && row.time <= last;
              }));
  }
}

TEST(StreamState, HoldsWhatAPlainListHolds) {
  for (uint32_t seed = 0; seed < 150; ++seed) run_seed(seed, seed % 3 != 0);
}

TEST(StreamState, NamesBatchesWhoseLastRowHasGone) {
  StreamState state({{nullptr}, 0, true});
  const Code key = 1;
  state.insert(10, {4, 0}, {&key, 1}, {});
  state.insert(20, {4, 1}, {&key, 1}, {});
  state.invalidate_before(15);
  EXPECT_TRUE(state.take_empty_batches().empty());
  EXPECT_EQ(state.rows_of_batch(4), 1u);
  EXPECT_EQ(state.move_rows_to(9), (std::vector<RowRef>{{4, 1}}));
  EXPECT_EQ(state.rows_of_batch(9), 1u);
  state.invalidate_before(30);
  EXPECT_EQ(state.take_empty_batches(), (std::vector<uint32_t>{9}));
}

TEST(StreamState, GivesDictionaryEntriesBackWithTheRows) {
  KeyDictionary dictionary;
  bool created;
  const Code code = dictionary.intern("de", hash_bytes("de"), created);
  StreamState state({{&dictionary}, 0, true});
  state.insert(10, {0, 0}, {&code, 1}, {});
  dictionary.release(code);
  EXPECT_EQ(dictionary.size(), 1u);
  EXPECT_EQ(state.purge_all(), 1u);
  state.sweep();
  EXPECT_EQ(dictionary.size(), 0u);
}

}  // namespace
}  // namespace streamjoin
