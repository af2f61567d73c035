#include "streamjoin/state/window_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/fresh_seed.h"
#include "state/checked_state.h"
#include "streamjoin/base/hash.h"

namespace streamjoin {
namespace {

constexpr auto kIgnore = [](TNode&) {};

struct Script {
  size_t steps;
  Code keys;
  bool late;
};

void run_script(std::mt19937_64& random, Script script) {
  CheckedState state;
  uint32_t batch = 1;
  uint32_t row = 0;
  const auto key = [&] { return static_cast<Code>(random() % static_cast<uint64_t>(script.keys)); };
  for (size_t step = 0; step < script.steps; ++step) {
    SCOPED_TRACE(step);
    const size_t action = random() % 100;
    if (action < 50) {
      if (random() % 8 == 0) ++batch, row = 0;
      const bool matched = random() % 3 == 0;
      const Time back = 1 + static_cast<Time>(random() % 30);
      if (script.late && random() % 4 == 0) {
        state.insert_late(state.newest() - back, key(), {batch, row++}, matched);
      } else {
        state.insert(state.newest() + static_cast<Time>(random() % 3), key(), {batch, row++}, matched);
      }
    } else if (action < 62) {
      state.invalidate_before(state.newest() - static_cast<Time>(random() % 40));
    } else if (action < 68) {
      state.purge(key());
    } else if (action < 80) {
      const bool may_stop = random() % 2 == 0;
      state.walk(key(), [&](RowRef) {
        const size_t choice = random() % 8;
        return choice < 3 ? Visit::kTakeOut : choice == 3 && may_stop ? Visit::kStop : Visit::kKeep;
      });
    } else if (action < 86) {
      state.look(key());
    } else if (action < 93) {
      state.sweep();
    } else if (action < 94) {
      state.sweep_all();
    } else if (action < 95) {
      state.pack();
    } else if (action < 98) {
      state.move_rows_to(++batch, random() % 2 == 0);
      ++batch, row = 0;
    } else {
      state.expect_same_rows();
    }
    if (testing::Test::HasFailure()) return;
  }
  state.invalidate_before(kEnd);
  state.sweep();
}

TEST(WindowState, BehavesLikeAListOfRowsUnderRandomScripts) {
  const uint64_t seed = fresh_seed();
  for (uint64_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    std::mt19937_64 random(mix(seed + round));
    const Code keys = round % 5 == 0 ? 200 : 1 + static_cast<Code>(random() % 12);
    run_script(random, {.steps = 250, .keys = keys, .late = round % 2 == 0});
    if (HasFailure()) return;
  }
}

TEST(WindowState, DeadRowsStayWithinTheBoundWhateverKilledThem) {
  std::mt19937_64 random(fresh_seed());
  WindowState state(nullptr);
  uint32_t row = 0;
  Time time = 0;
  for (int step = 0; step < 3000; ++step) {
    const size_t many = 1 + random() % 40;
    for (size_t i = 0; i < many; ++i) {
      const Code key = static_cast<Code>(random() % 100);
      if (random() % 10 == 0) {
        state.insert_late(time - static_cast<Time>(random() % 50), key, {1, row++});
      } else {
        state.insert(++time, key, {1, row++});
      }
    }
    for (size_t i = random() % 4; i > 0; --i) {
      const Code key = static_cast<Code>(random() % 100);
      if (ValueList* node = state.lists().find(key); node != nullptr) {
        state.purge(*node, kIgnore);
        state.remove_if_idle(node, key);
      }
    }
    state.invalidate_before(time - 1500 - static_cast<Time>(random() % 300), kIgnore);
    state.sweep();
    ASSERT_LE(state.dead_rows(), state.live_rows() / 4 + WindowState::kSlackRows);
    if (step % 50 == 0) {
      ASSERT_EQ(state.validate(), "");
    }
  }
}

TEST(WindowState, ExpiredAndPurgedRowsTogetherStayWithinTheBound) {
  WindowState state(nullptr);
  for (uint32_t row = 0; row < 1550; ++row) state.insert(row, row, {1, row});
  for (Code key = 300; key < 600; ++key) {
    ValueList* node = state.lists().find(key);
    state.purge(*node, kIgnore);
    state.remove_if_idle(node, key);
  }
  state.sweep();
  state.invalidate_before(250, kIgnore);
  state.sweep();
  EXPECT_EQ(state.live_rows(), 1000u);
  EXPECT_LE(state.dead_rows(), 1000 / 4 + WindowState::kSlackRows);
}

TEST(WindowState, KeysThatNobodyAsksForAgainDoNotKeepTheirRows) {
  WindowState state(nullptr);
  size_t largest = 0;
  for (uint32_t row = 0; row < 300000; ++row) {
    state.insert(row, row, {1, row});
    state.invalidate_before(Time{row} - 1000, kIgnore);
    if (row % 128 == 0) state.sweep();
    largest = std::max(largest, state.memory_bytes());
  }
  state.sweep();
  EXPECT_LE(state.lists().size(), 1001 + WindowState::kSlackRows);
  EXPECT_LT(largest, size_t{1} << 18);  // a few blocks of rows and little else
}

TEST(WindowState, MemoryReturnsWhenTheStateEmpties) {
  for (const bool by_purge : {false, true}) {
    WindowState state(nullptr);
    for (uint32_t row = 0; row < 400000; ++row) state.insert(row, row % 100000, {row / 1000, row});
    EXPECT_GT(state.memory_bytes(), size_t{400000} * 32);
    EXPECT_LT(state.memory_bytes(), size_t{400000} * 64);
    if (by_purge) {
      for (Code key = 0; key < 100000; ++key) {
        ValueList* node = state.lists().find(key);
        EXPECT_EQ(state.purge(*node, kIgnore), 4u);
        state.remove_if_idle(node, key);
      }
    } else {
      state.invalidate_before(kEnd, kIgnore);
    }
    state.sweep();
    EXPECT_EQ(state.live_rows(), 0u);
    EXPECT_EQ(state.dead_rows(), 0u);
    EXPECT_EQ(state.lists().size(), 0u);
    EXPECT_EQ(state.take_empty_batches().size(), 400u);
    // The current block, a spare one, an index that was not asked long enough, and the batches' counts.
    EXPECT_LE(state.memory_bytes() - state.lists().memory_bytes(), (size_t{2} << 16) + 8192);
    state.sweep_all();
    EXPECT_LE(state.memory_bytes(), (size_t{2} << 16) + 8192);
    EXPECT_EQ(state.validate(), "");
  }
}

TEST(WindowState, MemoryFollowsTheRowsThatAreLeftWhenOthersWerePurgedAtRandom) {
  std::mt19937_64 random(fresh_seed());
  WindowState state(nullptr);
  constexpr uint32_t kRows = 200000;
  std::vector<Code> keys(kRows);
  for (uint32_t row = 0; row < kRows; ++row) {
    keys[row] = row;
    state.insert(row, row, {1, row});
  }
  std::shuffle(keys.begin(), keys.end(), random);
  size_t left = kRows;
  for (const Code key : keys) {
    if (left == 1000) break;
    ValueList* node = state.lists().find(key);
    ASSERT_EQ(state.purge(*node, kIgnore), 1u);
    state.remove_if_idle(node, key);
    state.sweep();
    if (--left % 10000 == 0) {
      ASSERT_EQ(state.validate(), "");
    }
    if (left % 100 == 0) {
      // A purged row in four is not yet freed; a block in two is empty; eight blocks more.
      const size_t nodes = state.memory_bytes() - state.lists().memory_bytes();
      ASSERT_LE(nodes, left * 32 * 5 / 4 * 2 + 10 * (size_t{32} << WindowState::kSmallBlocks)) << left;
    }
  }
  std::vector<Code> found;
  state.for_each_row([&](TNode& row) {
    EXPECT_EQ(row.time, row.key);
    found.push_back(row.key);
  });
  std::sort(keys.end() - 1000, keys.end());
  EXPECT_EQ(found, std::vector<Code>(keys.end() - 1000, keys.end()));
}

TEST(WindowState, LargeBlocksComeAndGoWithTheRows) {
  WindowState state(nullptr);
  Time clock = 0;
  uint32_t row = 0;
  const auto slide_to = [&](size_t rows) {  // three rows a key
    const Time end = clock + static_cast<Time>(rows) + 1000;
    for (; clock < end; ++clock) {
      state.insert(clock, clock / 3, {1, row++});
      if (clock % 128 != 0) continue;
      state.invalidate_before(clock - static_cast<Time>(rows), kIgnore);
      state.sweep();
    }
    EXPECT_EQ(state.validate(), "");
    const double bytes = static_cast<double>(state.memory_bytes() - state.lists().memory_bytes());
    return bytes / static_cast<double>(rows);
  };
  EXPECT_LE(slide_to(size_t{1} << 16), 36);
  EXPECT_LE(slide_to(WindowState::kLargeAbove + 5000), 38);
  EXPECT_LE(slide_to(size_t{1} << 16), 36);
}

TEST(WindowState, AKeyHoldsItsDictionaryEntryForAsLongAsItIsIndexed) {
  KeyDictionary dictionary;
  WindowState state(&dictionary);
  bool created;
  const Code code = dictionary.intern("k", hash_bytes("k"), created);
  state.insert(1, code, {1, 0});
  state.insert(2, code, {1, 1});
  EXPECT_EQ(dictionary.references(code), 2u);
  state.invalidate_before(2, kIgnore);
  state.sweep_all();
  EXPECT_TRUE(state.take_released_keys().empty());
  state.invalidate_before(3, kIgnore);
  state.sweep_all();
  EXPECT_EQ(state.take_released_keys(), std::vector<Code>{code});
  EXPECT_TRUE(state.take_released_keys().empty());
}

TEST(WindowState, ADamagedSnapshotIsRefused) {
  WindowState state(nullptr);
  for (uint32_t row = 0; row < 5; ++row) state.insert(row, row % 2, {1, row});
  state.insert_late(1, 0, {1, 5});
  ArchiveWriter out;
  state.save(out);
  const std::string bytes = out.take();
  for (size_t length = 0; length < bytes.size(); ++length) {
    WindowState loaded(nullptr);
    ArchiveReader in(std::string_view(bytes).substr(0, length));
    EXPECT_THROW(loaded.load(in), DamagedArchive) << length;
  }
}

}  // namespace
}  // namespace streamjoin
