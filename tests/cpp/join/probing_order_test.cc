#include "streamjoin/join/probing_order.h"

#include <gtest/gtest.h>

namespace streamjoin {
namespace {

std::vector<size_t> streams_of(const ProbingOrder& order, size_t origin) {
  std::vector<size_t> streams;
  for (const ProbingStep& step : order.plan(origin).steps) streams.push_back(step.stream);
  return streams;
}

TEST(ProbingOrder, GoesAlongSharedClassesAndTakesUnconnectedStreamsLast) {
  // 0 and 2 share class 0; 2 and 3 share class 1; 1 shares nothing.
  const ProbingOrder order(MultiAlgorithm::kHash, {{0}, {}, {0, 1}, {1}}, {});
  EXPECT_EQ(streams_of(order, 0), (std::vector<size_t>{2, 3, 1}));
  EXPECT_EQ(order.plan(0).steps[2].by, ProbingStep::By::kPeriod);
  EXPECT_EQ(order.plan(0).steps[1].probe.equals.stream, 2u);
}

TEST(ProbingOrder, TakesTheStreamWithTheFewestObservedMatchesFirst) {
  ProbingOrder order(MultiAlgorithm::kHash, {{0}, {0}, {0}}, {});
  EXPECT_EQ(streams_of(order, 0), (std::vector<size_t>{1, 2}));
  const ProbingPlan before = order.plan(0);
  order.observe(before.steps[0], 100, 900);
  order.observe(before.steps[1], 100, 10);
  order.revise(0);
  EXPECT_EQ(streams_of(order, 0), (std::vector<size_t>{2, 1}));
}

TEST(ProbingOrder, AsksAConjunctAsSoonAsItsStreamsAreBound) {
  const std::vector<Conjunct> conjuncts{{{0}, nullptr}, {{0, 2}, nullptr}, {{1}, nullptr}};
  const ProbingOrder order(MultiAlgorithm::kNestedLoop, {{}, {}, {}}, conjuncts);
  EXPECT_EQ(order.plan(0).first_conjuncts, (std::vector<size_t>{0}));
  EXPECT_EQ(order.plan(0).steps[0].conjuncts, (std::vector<size_t>{2}));
  EXPECT_EQ(order.plan(0).steps[1].conjuncts, (std::vector<size_t>{1}));
}

TEST(ProbingOrder, IsTheSameAfterASnapshot) {
  ProbingOrder order(MultiAlgorithm::kHash, {{0}, {0}, {0}}, {});
  const ProbingPlan plan = order.plan(0);
  order.observe(plan.steps[0], 10, 90);
  order.revise(0);
  ArchiveWriter out;
  order.save(out);
  const std::string bytes = out.take();
  ProbingOrder loaded(MultiAlgorithm::kHash, {{0}, {0}, {0}}, {});
  ArchiveReader in(bytes);
  loaded.load(in);
  EXPECT_TRUE(in.at_end());
  for (size_t origin = 0; origin < 3; ++origin)
    EXPECT_EQ(streams_of(loaded, origin), streams_of(order, origin));
}

}  // namespace
}  // namespace streamjoin
