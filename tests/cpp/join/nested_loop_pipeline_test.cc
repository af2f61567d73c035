#include "streamjoin/join/nested_loop_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "join/multi_join_oracle.h"

namespace streamjoin::testing {
namespace {

bool same_key(std::span<const PipelineRow> tuple, const PipelineRow& row) {
  return tuple.back().key == row.key;
}

TEST(NestedLoopPipeline, GivesWhatTheNestedLoopOverAllHistoryGivesRowByRow) {
  for (uint32_t seed = 0; seed < 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto streams = static_cast<size_t>(between(random, 2, 5));
    MultiJoinOptions options;
    options.alternatives = {random_matrix(random, streams)};
    options.classes.assign(streams, {0});
    MultiOracle oracle(options, {});
    NestedLoopPipeline pipeline(WindowMatrix(options.alternatives), same_key);
    const int domain = between(random, 1, 3);
    std::vector<Time> now(streams, 0);
    for (uint32_t id = 0; id < 60; ++id) {
      const auto stream = static_cast<size_t>(between(random, 0, static_cast<int>(streams) - 1));
      now[stream] += between(random, 0, 3);
      const Code key = between(random, 1, domain);
      std::vector<PipelineRow> results;
      pipeline.push(stream, {now[stream], key, {0, id}}, results);
      std::vector<std::vector<uint32_t>> found;
      for (size_t at = 0; at < results.size(); at += streams) {
        auto& result = found.emplace_back();
        for (size_t s = 0; s < streams; ++s) result.push_back(results[at + s].row.row);
      }
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, oracle.push(stream, {now[stream], {key}, NumericValue::null(), false, id}));
    }
  }
}

TEST(NestedLoopPipeline, BuffersFollowTheWindow) {
  const std::vector<std::vector<std::optional<Duration>>> window(3,
                                                                 std::vector<std::optional<Duration>>(3, 50));
  NestedLoopPipeline pipeline(WindowMatrix({window}), same_key);
  std::vector<PipelineRow> results;
  for (uint32_t i = 0; i < 3000; ++i) {
    pipeline.push(i % 3, {static_cast<Time>(i), static_cast<Code>(i / 3 % 20), {0, i}}, results);
    ASSERT_LE(pipeline.buffered_rows(), 600u);
  }
  EXPECT_FALSE(results.empty());
}

}  // namespace
}  // namespace streamjoin::testing
