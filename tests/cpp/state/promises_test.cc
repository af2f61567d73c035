#include "streamjoin/state/promises.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "base/fresh_seed.h"
#include "streamjoin/base/hash.h"

namespace streamjoin {
namespace {

constexpr Code kSmallest = std::numeric_limits<Code>::min();
constexpr Code kLargest = std::numeric_limits<Code>::max();
constexpr Code kKeys = 40;

/// Promises over a state, beside maps from key to expiry. Keys are 0 .. kKeys - 1.
class CheckedPromises {
 public:
  explicit CheckedPromises(PromiseOptions options) : options_(options) { start(); }

  void store(Code key, Time time) {
    const bool promised = this->promised(key);
    state_->insert(time, key, {1, 0});
    rows_.emplace_back(time, key);
    if (promised) promises_->reopen(*state_->lists().find(key), key);
    // A row that breaks a promise makes its key one that is remembered by itself.
    if (promised) single_[key] = std::max(single(key), covered(key));
  }
  void remember(Code key, Time expires) {
    const PunctuationFlag flag = promises_->remember(key, expires);
    single_[key] = std::max(single(key), expires);
    EXPECT_EQ(flag, expected_flag(key));
  }
  void forget(Code key) {
    promises_->forget(key);
    single_.erase(key);
    if (options_.codes_are_values) covered_.erase(key);
  }
  /// As the contract has it: keys with rows are remembered one by one as well.
  void cover(Code low, Code high, Time expires) {
    promises_->cover(low, high, expires);
    for (Code key = std::max<Code>(low, 0); key <= std::min(high, kKeys - 1); ++key) {
      covered_[key] = std::max(covered(key), expires);
      if (has_rows(key)) remember(key, expires);
    }
  }
  void uncover(Code low, Code high) {
    promises_->uncover(low, high);
    for (Code key = std::max<Code>(low, 0); key <= std::min(high, kKeys - 1); ++key) {
      covered_.erase(key);
      forget(key);  // it may have become part of a range, or not yet
    }
  }
  void invalidate_before(Time limit) {
    std::erase_if(rows_, [&](const auto& row) { return row.first < limit; });
    state_->invalidate_before(limit, [&](TNode& node) {
      ValueList* list = state_->lists().find(node.key);
      if (!node.is(TNode::kLastPromised) || !list->promised()) return;
      if (state_->has_live_rows(*list)) {
        state_->mark_last_promised(*list);
      } else {
        promises_->close(*list, node.key);
      }
    });
    state_->sweep_all();
  }
  void expire(Time clock) {
    promises_->expire(clock);
    if (options_.lifespan == kEnd) return;
    std::erase_if(single_, [&](const auto& one) { return one.second < clock; });
    std::erase_if(covered_, [&](const auto& one) { return one.second < clock; });
  }
  void reload() {
    ArchiveWriter out;
    state_->save(out);
    promises_->save(out);
    const std::string bytes = out.take();
    start();
    ArchiveReader in(bytes);
    state_->load(in);
    promises_->load(in);
    ASSERT_TRUE(in.at_end());
  }
  void clear() {
    promises_->clear();
    single_.clear();
    covered_.clear();
  }

  void compare(Time clock) {
    ASSERT_EQ(promises_->validate(), "");
    ASSERT_EQ(state_->validate(), "");
    ASSERT_EQ(promises_->any(), !single_.empty() || !covered_.empty());
    for (Code key = 0; key < kKeys; ++key) {
      ASSERT_EQ(promises_->flag(key), expected_flag(key)) << "key " << key;
      const bool then = promised(key) && std::max(single(key), covered(key)) >= clock;
      ASSERT_EQ(promises_->held_until(key) >= clock, options_.lifespan == kEnd ? promised(key) : then);
    }
    ASSERT_EQ(promises_->flag(kSmallest), PunctuationFlag::kNone);
    ASSERT_EQ(promises_->flag(kLargest), PunctuationFlag::kNone);
  }

 private:
  void start() {
    promises_.reset();
    state_ = std::make_unique<WindowState>(nullptr);
    promises_ = std::make_unique<Promises>(*state_, options_);
  }
  static Time of(const std::map<Code, Time>& map, Code key) {
    const auto at = map.find(key);
    return at == map.end() ? kBeginning : at->second;
  }
  Time single(Code key) const { return of(single_, key); }
  Time covered(Code key) const { return of(covered_, key); }
  bool promised(Code key) const { return single_.count(key) > 0 || covered_.count(key) > 0; }
  bool has_rows(Code key) const {
    return std::ranges::any_of(rows_, [&](const auto& row) { return row.second == key; });
  }
  PunctuationFlag expected_flag(Code key) const {
    if (!promised(key)) return PunctuationFlag::kNone;
    return has_rows(key) ? PunctuationFlag::kPunctuated : PunctuationFlag::kPropagated;
  }

  const PromiseOptions options_;
  std::unique_ptr<WindowState> state_;
  std::unique_ptr<Promises> promises_;
  std::vector<std::pair<Time, Code>> rows_;
  std::map<Code, Time> single_;
  std::map<Code, Time> covered_;
};

void run_script(std::mt19937_64& random, PromiseOptions options) {
  CheckedPromises promises(options);
  Time clock = 0;
  const auto key = [&] { return static_cast<Code>(random() % kKeys); };
  const auto expires = [&] {
    return options.lifespan == kEnd ? kEnd : clock + options.lifespan + static_cast<Time>(random() % 10) - 5;
  };
  for (int step = 0; step < 150; ++step) {
    SCOPED_TRACE(step);
    const size_t action = random() % 100;
    if (action < 25) {
      promises.store(key(), ++clock);
    } else if (action < 55) {
      promises.remember(key(), expires());
    } else if (action < 63) {
      promises.forget(key());
    } else if (action < 70) {
      const Code low = key();
      promises.cover(low, std::min<Code>(kKeys - 1, low + static_cast<Code>(random() % 6)), expires());
    } else if (action < 74) {
      const Code low = key();
      promises.uncover(low, low + static_cast<Code>(random() % 6));
    } else if (action < 86) {
      promises.invalidate_before(clock - static_cast<Time>(random() % 12));
    } else if (action < 94) {
      promises.expire(clock += static_cast<Time>(random() % 6));
    } else if (action < 99) {
      promises.reload();
    } else {
      promises.clear();
    }
    promises.compare(clock + static_cast<Time>(random() % 10));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Promises, AreThoseOfAMapFromKeyToExpiry) {
  const uint64_t seed = fresh_seed();
  for (uint64_t round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    std::mt19937_64 random(mix(seed + round));
    const Duration lifespan = round % 2 == 0 ? kEnd : static_cast<Duration>(random() % 30);
    run_script(random, {.lifespan = lifespan, .codes_are_values = round % 4 < 2});
    if (HasFailure()) return;
  }
}

TEST(Promises, AMillionAscendingKeysAreOneRange) {
  WindowState state(nullptr);
  Promises promises(state, {});
  size_t largest = 0;
  for (Code key = 0; key < 1000000; ++key) {
    ASSERT_EQ(promises.remember(key, kEnd), PunctuationFlag::kPropagated);
    if (key % 500 == 0) largest = std::max(largest, promises.memory_bytes() + state.memory_bytes());
  }
  EXPECT_LT(largest, size_t{128} << 10);
  EXPECT_EQ(promises.validate(), "");
  for (const Code key : {Code{0}, Code{1}, Code{4711}, Code{999999}}) {
    EXPECT_EQ(promises.flag(key), PunctuationFlag::kPropagated);
  }
  EXPECT_EQ(promises.flag(-1), PunctuationFlag::kNone);
  EXPECT_EQ(promises.flag(1000000), PunctuationFlag::kNone);
}

TEST(Promises, KeysThatTouchInAnyOrderBecomeRangesUpToBothEndsOfTheIntegers) {
  std::mt19937_64 random(fresh_seed());
  std::vector<Code> keys;
  for (Code step = 0; step < 20000; ++step) {
    keys.push_back(kSmallest + step);
    keys.push_back(kLargest - step);
  }
  std::shuffle(keys.begin(), keys.end(), random);
  WindowState state(nullptr);
  Promises promises(state, {});
  for (const Code key : keys) promises.remember(key, kEnd);
  EXPECT_EQ(promises.validate(), "");
  state.sweep_all();
  EXPECT_LT(promises.memory_bytes() + state.memory_bytes(), size_t{1} << 20);
  for (const Code key : keys) ASSERT_EQ(promises.flag(key), PunctuationFlag::kPropagated);
  EXPECT_EQ(promises.flag(kSmallest + 20000), PunctuationFlag::kNone);
  EXPECT_EQ(promises.flag(kLargest - 20000), PunctuationFlag::kNone);
}

TEST(Promises, AKeyThatWasForgottenDoesNotComeBackWithARange) {
  WindowState state(nullptr);
  Promises promises(state, {});
  for (Code key = 0; key < 1000; ++key) promises.remember(key, kEnd);
  promises.forget(500);
  for (Code key = 1000; key < 3000; ++key) promises.remember(key, kEnd);
  EXPECT_EQ(promises.flag(500), PunctuationFlag::kNone);
  EXPECT_EQ(promises.flag(499), PunctuationFlag::kPropagated);
  promises.forget(1500);  // out of the midst of a range
  EXPECT_EQ(promises.flag(1500), PunctuationFlag::kNone);
  EXPECT_EQ(promises.flag(1501), PunctuationFlag::kPropagated);
  EXPECT_EQ(promises.validate(), "");
}

TEST(Promises, AStreamThatEndedHasPromisedEverything) {
  WindowState state(nullptr);
  Promises promises(state, {.lifespan = 5});
  EXPECT_FALSE(promises.any());
  state.insert(1, 3, {1, 0});
  promises.remember(3, 6);
  promises.cover_everything();
  EXPECT_TRUE(promises.any());
  EXPECT_EQ(promises.flag(3), PunctuationFlag::kPunctuated);
  for (const Code key : {kSmallest, Code{0}, kLargest}) {
    EXPECT_EQ(promises.flag(key), PunctuationFlag::kPropagated);
    EXPECT_TRUE(promises.held_until(key) == kEnd);
  }
  EXPECT_EQ(promises.covered_parts(-4, 9), (std::vector<std::pair<Code, Code>>{{-4, 9}}));
}

TEST(Promises, WithALifespanMemoryIsThatOfThePromisesStillHeld) {
  WindowState state(nullptr);
  Promises promises(state, {.lifespan = 100});
  size_t largest = 0;
  for (Time time = 0; time < 200000; ++time) {
    promises.expire(time);
    promises.remember(time * 7, promises.expiry_of(time));
    largest = std::max(largest, promises.held());
  }
  EXPECT_EQ(largest, 101u);
  EXPECT_LT(promises.memory_bytes() + state.memory_bytes(), size_t{64} << 10);
  EXPECT_EQ(promises.validate(), "");
}

TEST(Promises, ADamagedSnapshotIsRefused) {
  WindowState state(nullptr);
  Promises promises(state, {});
  promises.remember(5, kEnd);
  promises.cover(10, 20, kEnd);
  ArchiveWriter out;
  promises.save(out);
  const std::string bytes = out.take();
  for (size_t length = 0; length < bytes.size(); ++length) {
    WindowState empty(nullptr);
    Promises loaded(empty, {});
    ArchiveReader in(std::string_view(bytes).substr(0, length));
    EXPECT_THROW(loaded.load(in), DamagedArchive) << length;
  }
}

}  // namespace
}  // namespace streamjoin
