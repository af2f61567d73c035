// ProbingOrder: in which order a new row of a stream is extended by rows of the others.
//
//   origin 0:  [2 by class 1 of the origin] -> [1 by class 0 of stream 2] -> [3 by time]
//
// Greedy: next comes the stream that is expected to give the fewest matches for a tuple, as observed so far.
// What was never tried is expected to give none, so each way is tried once. A stream that shares no class
// with those bound before comes last and is found by time. Observations fade, so the order follows the data;
// it depends on the rows that were probed alone, never on how they were cut into batches.

#pragma once

#include <cstdint>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/join/tuple_predicate.h"

namespace streamjoin {

enum class MultiAlgorithm : uint8_t { kHash, kMergeGca, kMergeLca, kNestedLoop, kNestedLoopPipeline };

/// Nested loops look at every row, and take the streams as they are declared.
inline bool looks_at_all(MultiAlgorithm algorithm) {
  return algorithm == MultiAlgorithm::kNestedLoop || algorithm == MultiAlgorithm::kNestedLoopPipeline;
}

/// A key of a stream: `position` counts the classes of the stream.
struct KeyPlace {
  size_t stream;
  size_t position;
};
struct KeyCheck {
  size_t position;  // of the stream that is added
  KeyPlace equals;
};

/// How a tuple is extended by one stream.
struct ProbingStep {
  enum class By : uint8_t { kIndex, kPeriod, kAll };
  size_t stream;
  By by;
  KeyCheck probe{};                // kIndex: where the key comes from
  std::vector<KeyCheck> checks{};  // further keys that must be equal
  std::vector<size_t> conjuncts{};
};
struct ProbingPlan {
  std::vector<size_t> first_conjuncts;  // those that speak of the new row alone
  std::vector<ProbingStep> steps;
};

class ProbingOrder {
 public:
  /// `classes[s]` are the attribute classes of stream s, without repetition.
  ProbingOrder(MultiAlgorithm algorithm, std::vector<std::vector<size_t>> classes,
               const std::vector<Conjunct>& conjuncts);

  const ProbingPlan& plan(size_t origin) const { return plans_[origin]; }
  /// `matches` tuples came of `tuples` that were extended by a step.
  void observe(const ProbingStep& step, uint64_t tuples, uint64_t matches);
  /// Makes the plan of a stream anew from what was observed.
  void revise(size_t origin);

  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  struct Observed {
    double tuples = 0;
    double matches = 0;
  };
  static constexpr double kRemembered = 1 << 16;  // tuples after which older ones begin to fade

  size_t way_of(const ProbingStep& step) const;
  double expected(size_t origin, const ProbingStep& step) const;
  ProbingStep step_to(size_t origin, size_t stream, const std::vector<bool>& bound) const;
  void make_plan(size_t origin);

  MultiAlgorithm algorithm_;
  std::vector<std::vector<size_t>> classes_;
  std::vector<std::vector<size_t>> conjunct_streams_;
  std::vector<std::vector<Observed>> observed_;  // by stream, then by position; the last is by time
  std::vector<size_t> first_way_;                // of each stream, where all ways stand in one row
  std::vector<std::vector<double>> expected_;    // by origin: matches of each way when its plan was made
  std::vector<ProbingPlan> plans_;
};

}  // namespace streamjoin
