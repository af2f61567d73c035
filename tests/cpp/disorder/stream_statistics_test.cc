#include "streamjoin/disorder/stream_statistics.h"

#include <gtest/gtest.h>

#include <random>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

std::string saved(const StreamStatistics& statistics) {
  ArchiveWriter out;
  statistics.save(out);
  return out.take();
}

TEST(StreamStatistics, CoarseDelayIsTheSmallestMultipleThatHoldsTheDelay) {
  EXPECT_EQ(coarse_delay(0, 10), 0u);
  EXPECT_EQ(coarse_delay(1, 10), 1u);
  EXPECT_EQ(coarse_delay(10, 10), 1u);
  EXPECT_EQ(coarse_delay(11, 10), 2u);
}

// Delays 0, 3, 0, 1; the stream is 4, 4, 0 and 2 ahead of the slowest.
TEST(StreamStatistics, HandWorkedExample) {
  StreamStatistics statistics;
  statistics.add(0, 4);
  statistics.add(3, 4);
  statistics.add_in_order(std::vector<Time>{10}, 12);
  statistics.add(1, 2);
  EXPECT_EQ(statistics.delays(), (std::vector<uint64_t>{2, 1, 0, 1}));
  EXPECT_EQ(statistics.rows(), 4u);
  EXPECT_EQ(statistics.largest_delay(), 3u);
  EXPECT_DOUBLE_EQ(statistics.mean_skew(), 2.5);
  statistics.end_interval(8);
  EXPECT_DOUBLE_EQ(statistics.rate(), 0.5);
}

// Long stretches without delay, so that windows are trimmed, and stretches with, so that they are cut.
TEST(StreamStatistics, RunsOfRowsInOrderAreAsGoodAsSingleRows) {
  const uint64_t seed = fresh_seed();
  for (uint64_t round = 0; round < 20; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed + round));
    std::mt19937_64 random(seed + round);
    StreamStatistics single, runs;
    Time now = 0;
    for (size_t part = 0; part < 12; ++part) {
      std::vector<Time> times(random() % (part % 4 == 3 ? 40'000 : 300));
      for (Time& time : times) time = now += static_cast<Time>(random() % 3);
      const Time slowest = now - static_cast<Time>(random() % 500);
      for (const Time time : times) single.add(0, std::max<Duration>(0, time - slowest));
      for (std::span<const Time> rest = times; !rest.empty();) {
        const size_t size = std::min<size_t>(rest.size(), 1 + random() % 5'000);
        runs.add_in_order(rest.first(size), slowest);
        rest = rest.subspan(size);
      }
      for (size_t late = random() % 200; late > 0; --late) {
        const auto delay = static_cast<uint32_t>(random() % (random() % 2 ? 3 : 70));
        single.add(delay, 5);
        runs.add(delay, 5);
      }
      ASSERT_EQ(runs.validate(), "");
      ASSERT_EQ(saved(single), saved(runs));
    }
    const std::string bytes = saved(runs);
    StreamStatistics loaded;
    ArchiveReader in(bytes);
    loaded.load(in);
    ASSERT_EQ(loaded.validate(), "");
    ASSERT_EQ(saved(loaded), bytes);
  }
}

}  // namespace
}  // namespace streamjoin
