#include "streamjoin/disorder/recall_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

/// The formulas as they are written, one sum after the other.
double recall_by_definition(const RecallModelInput& in, uint64_t steps) {
  const size_t m = in.streams.size();
  const auto share = [&](size_t i, uint64_t delay) {
    uint64_t rows = 0;
    for (size_t d = 0; d < in.streams[i].delays.size() && d <= delay; ++d) rows += in.streams[i].delays[d];
    return rows;
  };
  const Duration slack = static_cast<Duration>(steps) * in.granularity;
  double produced = 0;
  double due = 0;
  for (size_t i = 0; i < m; ++i) {
    double product = static_cast<double>(share(i, (slack + in.streams[i].skew) / in.granularity)) /
                     static_cast<double>(in.streams[i].rows);
    double all = 1;
    for (size_t j = 0; j < m; ++j) {
      if (j == i) continue;
      const uint64_t s = (slack + in.streams[j].skew) / in.granularity;
      const Duration w = in.windows[j][i];
      const Duration n = (w + in.basic_window - 1) / in.basic_window;
      uint64_t arrived = 0;
      for (Duration l = 1; l < n; ++l)
        arrived += in.basic_window * share(j, s + (l - 1) * in.basic_window / in.granularity);
      arrived += (w - (n - 1) * in.basic_window) * share(j, s + (n - 1) * in.basic_window / in.granularity);
      product *= static_cast<double>(arrived) / static_cast<double>(in.streams[j].rows);
      all *= static_cast<double>(w);
    }
    produced += product;
    due += all;
  }
  double ratio = 1;
  if (!in.cross_results.empty()) {
    double cross = 0, joined = 0, all_cross = 0, all_joined = 0;
    for (size_t d = 0; d < in.cross_results.size(); ++d) {
      if (d <= steps) cross += in.cross_results[d], joined += in.join_results[d];
      all_cross += in.cross_results[d], all_joined += in.join_results[d];
    }
    if (cross > 0 && joined > 0 && all_cross > 0 && all_joined > 0)
      ratio = joined / cross * (all_cross / all_joined);
  }
  return ratio * produced / due;
}

RecallModelInput random_input(std::mt19937_64& random) {
  const auto pick = [&](uint64_t low, uint64_t high) { return low + random() % (high - low + 1); };
  RecallModelInput in;
  const size_t m = pick(2, 4);
  constexpr Duration kGranularities[] = {1, 2, 3, 10};
  in.granularity = kGranularities[pick(0, 3)];
  in.basic_window = static_cast<Duration>(pick(1, 4) * (pick(0, 1) ? in.granularity : 1));
  for (size_t i = 0; i < m; ++i) {
    RecallModelInput::Stream stream;
    stream.delays.resize(pick(1, 40));
    for (uint64_t& count : stream.delays) stream.rows += count = pick(0, 3) ? 0 : pick(0, 20);
    stream.delays[0] += 1;
    stream.rows += 1 + pick(0, 2);
    stream.skew = static_cast<Duration>(pick(0, 30));
    in.largest_delay = std::max<uint64_t>(in.largest_delay, stream.delays.size());
    in.streams.push_back(std::move(stream));
  }
  in.windows.assign(m, std::vector<Duration>(m));
  for (auto& row : in.windows)
    for (Duration& window : row) window = static_cast<Duration>(pick(1, 90));
  if (pick(0, 1)) {
    for (size_t d = pick(1, 30); d > 0; --d) {
      in.cross_results.push_back(static_cast<double>(pick(0, 50)));
      in.join_results.push_back(static_cast<double>(pick(0, 5)));
    }
  }
  return in;
}

TEST(RecallModel, SearchWithPrefixSumsFindsTheSlackOfTheLinearOne) {
  const uint64_t seed = fresh_seed();
  for (uint64_t run = 0; run < 2000; ++run) {
    SCOPED_TRACE("seed " + std::to_string(seed + run));
    std::mt19937_64 random(seed + run);
    const RecallModelInput in = random_input(random);
    const RecallModel model(in);
    const double requirement = static_cast<double>(random() % 1001) / 1000;
    uint64_t steps = 0;
    while (steps < in.largest_delay && recall_by_definition(in, steps) < requirement) ++steps;
    ASSERT_NEAR(model.recall(steps), recall_by_definition(in, steps), 1e-12);
    ASSERT_EQ(model.smallest(requirement).slack, static_cast<Duration>(steps) * in.granularity);
  }
}

// To the last bit: the requirement is often just what some slack reaches.
TEST(RecallModel, SearchByBlocksFindsTheSlackOfTheSearchThroughAll) {
  const uint64_t seed = fresh_seed();
  for (uint64_t run = 0; run < 2000; ++run) {
    SCOPED_TRACE("seed " + std::to_string(seed + run));
    std::mt19937_64 random(seed + run);
    RecallModelInput in = random_input(random);
    if (random() % 10 == 0) in.windows.assign(in.windows.size(), std::vector<Duration>(in.windows.size()));
    if (random() % 3 == 0) in.largest_delay = random() % 100;
    const RecallModel model(in);
    for (int i = 0; i < 10; ++i) {
      double requirement = model.recall(random() % (in.largest_delay + 1));
      if (i % 3 == 1) requirement = std::nextafter(requirement, 2.0);
      if (i % 3 == 2) requirement = std::nextafter(requirement, 0.0);
      uint64_t steps = 0;
      while (steps < in.largest_delay && model.recall(steps) < requirement) ++steps;
      const SlackChoice choice = model.smallest(requirement);
      ASSERT_EQ(choice.slack, static_cast<Duration>(steps) * in.granularity);
      ASSERT_EQ(choice.recall, std::min(1.0, model.recall(steps)));
    }
  }
}

// Delays to 26 s at 10 ms and few rows lost: the answer lies far out, and most slacks need not be looked at.
TEST(RecallModel, SearchByBlocksLooksAtFewSlacks) {
  std::mt19937_64 random(1);
  RecallModelInput in;
  in.largest_delay = 2600;
  in.granularity = in.basic_window = 10;
  for (size_t i = 0; i < 4; ++i) {
    RecallModelInput::Stream stream{std::vector<uint64_t>(2601), 0, 0};
    for (uint64_t& count : stream.delays) stream.rows += count = random() % 3;
    in.streams.push_back(std::move(stream));
  }
  in.windows.assign(4, std::vector<Duration>(4, 5000));
  for (size_t d = 0; d <= 2600; ++d) {
    in.cross_results.push_back(static_cast<double>(100 + random() % 100));
    in.join_results.push_back(static_cast<double>(random() % 10));
  }
  const RecallModel model(in);
  for (const double requirement : {0.5, 0.9, 0.99, 0.999, 0.9999, 1.1})
    EXPECT_LT(model.smallest(requirement).steps, 300u) << requirement;
}

// Two streams, g = b = 10, windows of 20: two basic windows. Of stream 0 half the rows are in order, half
// have coarse delay 1; stream 1 is in order. At K = 0: C_0 = 10 * 1/2 + 10 * 1 = 15, C_1 = 20; recall = (1/2
// * 20 + 1 * 15) / 40 = 25 / 40.
TEST(RecallModel, HandWorkedExample) {
  RecallModelInput in;
  in.streams = {{{5, 5}, 10, 0}, {{10}, 10, 0}};
  in.windows = {{0, 20}, {20, 0}};
  in.granularity = in.basic_window = 10;
  in.largest_delay = 1;
  EXPECT_DOUBLE_EQ(RecallModel(in).recall(0), 0.625);
  EXPECT_DOUBLE_EQ(RecallModel(in).recall(1), 1);
  EXPECT_EQ(RecallModel(in).smallest(0.6).slack, 0);
  EXPECT_EQ(RecallModel(in).smallest(0.9).slack, 10);
  // Rows of delay 1 yield three times as much: without them 1/10 of the cross join, with all 2/10.
  in.cross_results = {10, 10};
  in.join_results = {1, 3};
  EXPECT_DOUBLE_EQ(RecallModel(in).recall(0), 0.625 / 2);
  // What the synchronizer adds to stream 0 is as good as slack.
  in.streams[0].skew = 10;
  in.cross_results.clear();
  in.join_results.clear();
  EXPECT_DOUBLE_EQ(RecallModel(in).recall(0), 1);
}

}  // namespace
}  // namespace streamjoin
