#include "streamjoin/engine/disorder_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

/// Pairs of equal key, whatever their times, found by looking at everything. Throws now and then if told to.
class PlainJoin : public OrderedJoin {
 public:
  struct Row {
    Code key;
    RowRef ref;
  };
  void join(size_t stream, const StreamBatch& rows) override {
    if (throws_every > 0 && ++calls_ % throws_every == 0) throw std::runtime_error("not now");
    largest_block = std::max(largest_block, rows.times.size());
    for (size_t i = 0; i < rows.times.size(); ++i) {
      for (const Row& other : rows_[1 - stream]) {
        if (other.key != rows.keys[0][i]) continue;
        found.push_back(stream == 0 ? rows.ref(i) : other.ref);
        found.push_back(stream == 0 ? other.ref : rows.ref(i));
      }
      rows_[stream].push_back({rows.keys[0][i], rows.ref(i)});
    }
  }
  bool insert_behind(size_t stream, const StreamBatch& row, Time) override {
    rows_[stream].push_back({row.keys[0][0], row.ref(0)});
    behind.insert({stream, row.ref(0).row});
    return true;
  }
  bool is_late(size_t, Time, Time) const override { return false; }
  void refuse(size_t, RowRef, Duration) override {}
  void give_up(size_t, RowRef) override {}
  void punctuate(size_t, uint32_t) override {}
  void raise_clocks(Time clock) override { clocks.push_back(clock); }
  void let_go(size_t, size_t, std::span<const Code> codes) override { let_go_codes += codes.size(); }
  std::span<RowRef> results() override { return found; }

  size_t throws_every = 0;
  size_t largest_block = 0;
  size_t let_go_codes = 0;
  std::vector<RowRef> found;
  std::vector<Time> clocks;
  std::set<std::pair<size_t, uint32_t>> behind;

 private:
  std::vector<Row> rows_[2];
  size_t calls_ = 0;
};

struct Rows {
  std::vector<Time> times;
  std::vector<Code> keys;
};

Rows random_rows(std::mt19937_64& random, size_t count, Code keys, Time largest_delay) {
  Rows rows;
  Time now = 0;
  for (size_t i = 0; i < count; ++i) {
    now += static_cast<Time>(random() % 4);
    rows.times.push_back(now - (random() % 4 ? 0 : static_cast<Time>(random() % (largest_delay + 1))));
    rows.keys.push_back(static_cast<Code>(random() % keys));
  }
  return rows;
}

/// Pushes both streams in batches, and begins again where the join has thrown.
void feed(DisorderInput& input, const Rows (&streams)[2], std::mt19937_64& random, size_t longest) {
  size_t at[2] = {0, 0};
  uint32_t numbers[2] = {0, 0};
  const auto until_done = [&](const auto& call) {
    while (true) {
      try {
        call();
        return;
      } catch (const std::runtime_error&) {
      }
    }
  };
  while (at[0] < streams[0].times.size() || at[1] < streams[1].times.size()) {
    const size_t stream = at[0] >= streams[0].times.size()   ? 1
                          : at[1] >= streams[1].times.size() ? 0
                                                             : random() % 2;
    const Rows& rows = streams[stream];
    const size_t size = std::min(rows.times.size() - at[stream], 1 + random() % longest);
    until_done([&] { input.resume(); });
    const StreamBatch batch{numbers[stream]++,
                            std::span(rows.times).subspan(at[stream], size),
                            {std::span(rows.keys).subspan(at[stream], size)},
                            nullptr,
                            {}};
    at[stream] += size;
    try {
      input.push(stream, batch);
    } catch (const std::runtime_error&) {
      EXPECT_TRUE(input.took_batch());
      until_done([&] { input.resume(); });
    }
    EXPECT_EQ(input.validate(), "");
  }
  until_done([&] { input.resume(); });
  try {
    input.finish();
  } catch (const std::runtime_error&) {
    until_done([&] { input.resume(); });
  }
  EXPECT_EQ(input.validate(), "");
  EXPECT_EQ(input.waiting_rows(0) + input.waiting_rows(1), 0u);
}

DisorderInputOptions options_of(Duration slack) {
  DisorderInputOptions options;
  options.stage = {.streams = 2, .slack = slack};
  options.classes = {1, 1};
  options.value_slots = {0, 0};
  return options;
}

TEST(DisorderInput, EveryPairComesOnceInTimeOrderForAnySplitAndThoughTheJoinThrows) {
  const uint64_t seed = fresh_seed();
  for (uint64_t round = 0; round < 100; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed + round));
    std::mt19937_64 random(seed + round);
    const Rows streams[2] = {random_rows(random, 150, 5, 30), random_rows(random, 150, 5, 30)};
    PlainJoin join;
    join.throws_every = random() % 2 ? 2 + random() % 4 : 0;
    DisorderInput input(options_of(30), join);
    feed(input, streams, random, 1);
    size_t expected = 0;
    for (const Code left : streams[0].keys)
      expected += std::count(streams[1].keys.begin(), streams[1].keys.end(), left);
    ASSERT_EQ(join.found.size() / 2, expected);
    std::set<std::pair<uint32_t, uint32_t>> pairs;
    Time last = kBeginning;
    for (size_t i = 0; i < join.found.size(); i += 2) {
      const uint32_t left = join.found[i].batch, right = join.found[i + 1].batch;
      EXPECT_EQ(streams[0].keys[left], streams[1].keys[right]);
      EXPECT_TRUE(pairs.insert({left, right}).second);
      const Time time = std::max(streams[0].times[left], streams[1].times[right]);
      EXPECT_GE(time, last);
      last = time;
    }
    EXPECT_TRUE(join.behind.empty());
    EXPECT_EQ(join.let_go_codes, 300u);
    EXPECT_TRUE(std::is_sorted(join.clocks.begin(), join.clocks.end()));
  }
}

TEST(DisorderInput, LongGroupsJoinInBlocksWithTheSameResult) {
  std::mt19937_64 random(3);
  Rows streams[2] = {random_rows(random, 6000, 3000, 0), random_rows(random, 6000, 3000, 0)};
  std::vector<std::vector<RowRef>> found;
  for (const size_t longest : {size_t{50}, size_t{6000}}) {
    PlainJoin join;
    DisorderInput input(options_of(0), join);
    for (size_t begin = 0; begin < 6000; begin += longest) {
      const size_t size = std::min<size_t>(longest, 6000 - begin);
      for (size_t stream = 0; stream < 2; ++stream) {
        const StreamBatch batch{static_cast<uint32_t>(begin / longest),
                                std::span(streams[stream].times).subspan(begin, size),
                                {std::span(streams[stream].keys).subspan(begin, size)},
                                nullptr,
                                {}};
        input.push(stream, batch);
      }
    }
    input.finish();
    EXPECT_LE(join.largest_block, 4096u);
    for (RowRef& ref : join.found) ref = {0, static_cast<uint32_t>(ref.batch * longest + ref.row)};
    found.push_back(join.found);
  }
  ASSERT_FALSE(found[0].empty());
  const auto sorted = [](const std::vector<RowRef>& refs) {
    std::multiset<std::pair<uint32_t, uint32_t>> pairs;
    for (size_t i = 0; i < refs.size(); i += 2) pairs.insert({refs[i].row, refs[i + 1].row});
    return pairs;
  };
  EXPECT_EQ(sorted(found[0]), sorted(found[1]));
}

}  // namespace
}  // namespace streamjoin
