#include "streamjoin/punctuation/pattern_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "punctuation/random_patterns.h"

namespace streamjoin {
namespace {

/// A list of patterns, looked through from front to back.
struct Twin {
  struct One {
    KeyPattern pattern;
    Time time, expires;
    int number;
  };
  std::vector<One> all;  // by number, which rises
  int next_number = 0;

  bool contains(const KeyPattern& pattern, Time at_least) const {
    return std::ranges::any_of(
        all, [&](const One& one) { return one.expires >= at_least && one.pattern.contains(pattern); });
  }
  void remember(KeyPattern pattern, Time time, Time expires) {
    if (pattern.is_empty() || contains(pattern, expires)) return;
    std::erase_if(all,
                  [&](const One& one) { return one.expires <= expires && pattern.contains(one.pattern); });
    pattern.normalise();
    all.push_back({pattern, time, expires, next_number++});
  }
  template <typename F>
  std::vector<KeyPattern> remove(F&& gone) {
    std::vector<KeyPattern> removed;
    for (const One& one : all) {
      if (gone(one)) removed.push_back(one.pattern);
    }
    std::erase_if(all, gone);
    return removed;
  }
};

void expect_same(const PatternStore& store, const Twin& twin) {
  ASSERT_EQ(store.validate(), "");
  ASSERT_EQ(store.size(), twin.all.size());
  ASSERT_EQ(store.empty(), twin.all.empty());
  size_t at = 0;
  store.for_each([&](const KeyPattern& pattern, Time time, Time expires) {
    ASSERT_EQ(pattern, twin.all[at].pattern);
    ASSERT_EQ(time, twin.all[at].time);
    ASSERT_EQ(expires, twin.all[at].expires);
    ++at;
  });
}

void run_script(RandomPatterns& random, size_t width, Time lifespan) {
  PatternStore store;
  Twin twin;
  Time clock = 0;
  for (int step = 0; step < 300; ++step) {
    const KeyPattern pattern = encode(random.pattern(width));
    const size_t action = random.below(20);
    if (action < 12) {
      const Time expires =
          lifespan == 0 || random.below(4) == 0 ? kEnd : clock + static_cast<Time>(random.below(lifespan));
      if (pattern.is_any() && random.below(5) > 0) continue;  // it would swallow all others too often
      store.remember(pattern, clock, expires);
      twin.remember(pattern, clock, expires);
    } else if (action < 14) {
      ASSERT_EQ(store.forget_inside(pattern), twin.remove([&](const Twin::One& one) {
        return !pattern.is_empty() && pattern.contains(one.pattern);
      }));
    } else if (action < 16) {
      ++clock;
      std::ranges::stable_sort(twin.all, {}, &Twin::One::expires);
      const auto expected = twin.remove([&](const Twin::One& one) { return one.expires < clock; });
      ASSERT_EQ(store.expire(clock), expected);
      std::ranges::sort(twin.all, {}, &Twin::One::number);
    } else if (action < 17) {
      ArchiveWriter writer;
      store.save(writer);
      const std::string saved = writer.take();
      ArchiveReader reader(saved);
      store = PatternStore();
      store.load(reader);
      ASSERT_TRUE(reader.at_end());
    }
    ASSERT_EQ(store.contains(pattern), twin.contains(pattern, kBeginning));
    for (int i = 0; i < 10; ++i) {
      const EncodedKey key(random.key(width));
      const bool covered =
          std::ranges::any_of(twin.all, [&](const auto& one) { return one.pattern.matches(key.views()); });
      ASSERT_EQ(store.covers(key.views()), covered);
    }
    if (step % 5 == 0) {
      ASSERT_EQ(store.validate(), "");
    }
    ASSERT_EQ(store.size(), twin.all.size());
  }
}

TEST(PatternStore, BehavesLikeAListOfPatterns) {
  RandomPatterns random;
  for (int round = 0; round < 90; ++round) {
    run_script(random, 1 + round % 3, round % 2 * 12);
    if (HasFatalFailure()) return;
  }
}

TEST(PatternStore, KeepsTheOrderInWhichPatternsCame) {
  RandomPatterns random;
  PatternStore store;
  Twin twin;
  for (Time time = 0; time < 200; ++time) {
    const KeyPattern pattern = encode(random.pattern(3));
    if (pattern.is_any()) continue;
    store.remember(pattern, time, kEnd);
    twin.remember(pattern, time, kEnd);
    expect_same(store, twin);
    if (HasFatalFailure()) return;
  }
}

KeyPattern first_is(int value, size_t width = 2) {
  PlainPattern plain(width, {AttributePattern::Kind::kAny, {}, {}});
  plain[0] = {AttributePattern::Kind::kConstant, value, {}};
  return encode(plain);
}

TEST(PatternStore, TheSamePatternWithALaterExpiryRenews) {
  PatternStore store;
  store.remember(first_is(5), 1, 10);
  store.remember(first_is(5), 2, 20);
  store.remember(first_is(5), 3, 15);
  EXPECT_EQ(store.size(), 1u);
  EXPECT_TRUE(store.expire(20).empty());
  EXPECT_EQ(store.expire(21), std::vector<KeyPattern>{first_is(5)});
  EXPECT_TRUE(store.empty());
}

TEST(PatternStore, AnAllWildcardSwallowsTheRest) {
  PatternStore store;
  for (int value = 0; value < 5; ++value) store.remember(first_is(value), 0, kEnd);
  KeyPattern any;
  any.attributes.resize(2);
  store.remember(any, 1, kEnd);
  EXPECT_EQ(store.size(), 1u);
  EXPECT_TRUE(store.covers(EncodedKey({PlainValue(), 77}).views()));
  EXPECT_EQ(store.forget_inside(any).size(), 1u);
  EXPECT_EQ(store.validate(), "");
}

TEST(PatternStore, MemoryIsGivenBack) {
  PatternStore store;
  const size_t none = store.memory_bytes();
  for (int value = 0; value < 10000; ++value) store.remember(first_is(value), 0, value);
  EXPECT_GT(store.memory_bytes(), none + 10000 * 40);
  EXPECT_EQ(store.expire(9990).size(), 9990u);
  EXPECT_LT(store.memory_bytes(), none + 10000);
  EXPECT_EQ(store.validate(), "");
}

TEST(PatternStore, DamagedArchivesAreRefusedAndChangeNothing) {
  PatternStore store;
  store.remember(first_is(1), 0, 9);
  store.remember(first_is(2), 0, kEnd);
  ArchiveWriter writer;
  store.save(writer);
  const std::string saved = writer.take();
  for (size_t length = 0; length < saved.size(); ++length) {
    ArchiveReader cut(std::string_view(saved).substr(0, length));
    EXPECT_THROW(store.load(cut), DamagedArchive);
  }
  ArchiveWriter twice, mixed;
  twice.value<uint64_t>(2);
  mixed.value<uint64_t>(2);
  for (int i = 0; i < 2; ++i) {
    for (ArchiveWriter* out : {&twice, &mixed}) {
      first_is(1, out == &mixed && i == 1 ? 3 : 2).save(*out);
      out->value<Time>(0);
      out->value<Time>(kEnd);
    }
  }
  for (ArchiveWriter* out : {&twice, &mixed}) {
    const std::string bad = out->take();
    ArchiveReader reader(bad);
    EXPECT_THROW(store.load(reader), DamagedArchive);
  }
  EXPECT_EQ(store.size(), 2u);
  EXPECT_EQ(store.validate(), "");
}

}  // namespace
}  // namespace streamjoin
