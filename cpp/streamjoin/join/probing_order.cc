#include "streamjoin/join/probing_order.h"

#include <algorithm>

namespace streamjoin {

ProbingOrder::ProbingOrder(MultiAlgorithm algorithm, std::vector<std::vector<size_t>> classes,
                           const std::vector<Conjunct>& conjuncts)
    : algorithm_(algorithm),
      classes_(std::move(classes)),
      expected_(classes_.size()),
      plans_(classes_.size()) {
  for (const Conjunct& conjunct : conjuncts) conjunct_streams_.push_back(conjunct.streams);
  size_t ways = 0;
  for (const auto& of_stream : classes_) {
    observed_.emplace_back(of_stream.size() + 1);
    first_way_.push_back(ways);
    ways += of_stream.size() + 1;
  }
  for (size_t origin = 0; origin < classes_.size(); ++origin) revise(origin);
}

size_t ProbingOrder::way_of(const ProbingStep& step) const {
  return step.by == ProbingStep::By::kIndex ? step.probe.position : classes_[step.stream].size();
}

void ProbingOrder::observe(const ProbingStep& step, uint64_t tuples, uint64_t matches) {
  Observed& seen = observed_[step.stream][way_of(step)];
  seen.tuples += static_cast<double>(tuples);
  seen.matches += static_cast<double>(matches);
}

double ProbingOrder::expected(size_t origin, const ProbingStep& step) const {
  return expected_[origin][first_way_[step.stream] + way_of(step)];
}

ProbingStep ProbingOrder::step_to(size_t origin, size_t stream, const std::vector<bool>& bound) const {
  const auto by = looks_at_all(algorithm_) ? ProbingStep::By::kAll : ProbingStep::By::kPeriod;
  ProbingStep step{.stream = stream, .by = by};
  for (size_t position = 0; position < classes_[stream].size(); ++position) {
    for (size_t other = 0; other < classes_.size(); ++other) {
      if (!bound[other]) continue;
      const auto at = std::find(classes_[other].begin(), classes_[other].end(), classes_[stream][position]);
      if (at == classes_[other].end()) continue;
      step.checks.push_back({position, {other, static_cast<size_t>(at - classes_[other].begin())}});
      break;
    }
  }
  if (algorithm_ != MultiAlgorithm::kHash || step.checks.empty()) return step;
  step.by = ProbingStep::By::kIndex;
  size_t best = 0;
  double fewest = 0;
  for (size_t i = 0; i < step.checks.size(); ++i) {
    step.probe = step.checks[i];
    if (i > 0 && expected(origin, step) >= fewest) continue;
    best = i;
    fewest = expected(origin, step);
  }
  step.probe = step.checks[best];
  step.checks.erase(step.checks.begin() + static_cast<ptrdiff_t>(best));
  return step;
}

void ProbingOrder::revise(size_t origin) {
  for (auto& of_stream : observed_) {
    for (Observed& seen : of_stream) {
      if (seen.tuples <= kRemembered) continue;
      seen.matches *= kRemembered / seen.tuples;
      seen.tuples = kRemembered;
    }
  }
  expected_[origin].clear();
  for (const auto& of_stream : observed_) {
    for (const Observed& seen : of_stream) {
      expected_[origin].push_back(seen.tuples == 0 ? 0 : seen.matches / seen.tuples);
    }
  }
  make_plan(origin);
}

void ProbingOrder::make_plan(size_t origin) {
  const size_t streams = classes_.size();
  std::vector<bool> bound(streams);
  std::vector<bool> placed(conjunct_streams_.size());
  const auto now_bound = [&] {
    std::vector<size_t> conjuncts;
    for (size_t i = 0; i < conjunct_streams_.size(); ++i) {
      if (placed[i]) continue;
      if (!std::ranges::all_of(conjunct_streams_[i], [&](size_t stream) { return bound[stream]; })) continue;
      placed[i] = true;
      conjuncts.push_back(i);
    }
    return conjuncts;
  };
  ProbingPlan plan;
  bound[origin] = true;
  plan.first_conjuncts = now_bound();
  while (plan.steps.size() + 1 < streams) {
    ProbingStep best{.stream = streams, .by = ProbingStep::By::kAll};
    for (size_t stream = 0; stream < streams; ++stream) {
      if (bound[stream]) continue;
      ProbingStep step = step_to(origin, stream, bound);
      const bool first = best.stream == streams;
      const bool by_key = step.by == ProbingStep::By::kIndex;
      const bool best_by_key = best.by == ProbingStep::By::kIndex;
      if (!first && looks_at_all(algorithm_)) break;
      if (first || (by_key != best_by_key ? by_key : expected(origin, step) < expected(origin, best))) {
        best = std::move(step);
      }
    }
    bound[best.stream] = true;
    best.conjuncts = now_bound();
    plan.steps.push_back(std::move(best));
  }
  plans_[origin] = std::move(plan);
}

// A plan is what the observations were when it was made, so these are written for each plan as well.
void ProbingOrder::save(ArchiveWriter& out) const {
  for (const auto& of_stream : observed_) {
    for (const Observed& seen : of_stream) {
      out.value(seen.tuples);
      out.value(seen.matches);
    }
  }
  for (const auto& expected : expected_) out.array(expected);
}

void ProbingOrder::load(ArchiveReader& in) {
  std::vector<std::vector<Observed>> observed = observed_;
  for (auto& of_stream : observed) {
    for (Observed& seen : of_stream) {
      seen.tuples = in.value<double>();
      seen.matches = in.value<double>();
    }
  }
  for (size_t origin = 0; origin < plans_.size(); ++origin) {
    const size_t ways = expected_[origin].size();
    expected_[origin] = in.array<double>();
    if (expected_[origin].size() != ways) throw DamagedArchive("a probing order of other streams");
    make_plan(origin);
  }
  observed_ = std::move(observed);
}

}  // namespace streamjoin
