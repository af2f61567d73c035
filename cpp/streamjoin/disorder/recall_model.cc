#include "streamjoin/disorder/recall_model.h"

#include <algorithm>
#include <utility>

namespace streamjoin {

RecallModel::RecallModel(RecallModelInput input) : input_(std::move(input)) {
  const Duration g = input_.granularity;
  const Duration b = input_.basic_window;
  shape_.regular = b % g == 0 || g % b == 0;
  shape_.stride = b >= g ? static_cast<uint64_t>(b / g) : 1;
  shape_.repeat = b >= g ? 1 : static_cast<uint64_t>(g / b);

  for (const auto& stream : input_.streams) {
    Sums sums;
    uint64_t rows = 0;
    sums.at_most.reserve(stream.delays.size() + 1);
    for (const uint64_t count : stream.delays) sums.at_most.push_back(rows += count);
    if (sums.at_most.empty()) sums.at_most.push_back(0);
    // One stride beyond the histogram, where H is constant, so that every remainder has a last entry.
    const size_t size = sums.at_most.size() + (shape_.regular ? shape_.stride : 0);
    if (shape_.regular) {
      sums.strided = sums.at_most;
      sums.strided.resize(size, sums.at_most.back());
      for (size_t x = shape_.stride; x < size; ++x) sums.strided[x] += sums.strided[x - shape_.stride];
    }
    sums.offset = static_cast<uint64_t>(std::max<Duration>(stream.skew, 0) / g);
    sums_.push_back(std::move(sums));
  }

  const size_t streams = input_.streams.size();
  for (size_t i = 0; i < streams; ++i) {
    double product = 1;
    for (size_t j = 0; j < streams; ++j) {
      if (j != i) product *= static_cast<double>(input_.windows[j][i]);
    }
    true_size_ += product;
  }

  double cross = 0;
  double joined = 0;
  std::vector<double> ratios;
  ratios.reserve(input_.cross_results.size() + 1);
  for (size_t d = 0; d < input_.cross_results.size(); ++d) {
    cross += input_.cross_results[d];
    joined += input_.join_results[d];
    ratios.push_back(cross > 0 ? joined / cross : 0);
  }
  if (ratios.empty()) ratios.push_back(0);
  for (double& yield : ratios) yield = cross > 0 && joined > 0 && yield > 0 ? yield * (cross / joined) : 1;
  ratios_.push_back(std::move(ratios));
  while (ratios_.back().size() > 1) {
    const std::vector<double>& below = ratios_.back();
    std::vector<double> level;
    level.reserve((below.size() + 1) / 2);
    for (size_t at = 0; at < below.size(); at += 2)
      level.push_back(std::max(below[at], at + 1 < below.size() ? below[at + 1] : below.back()));
    ratios_.push_back(std::move(level));
  }
}

double RecallModel::ratio(uint64_t steps) const {
  return ratios_[0][std::min<uint64_t>(steps, ratios_[0].size() - 1)];
}

double RecallModel::largest_ratio(size_t level, uint64_t block) const {
  if (level < ratios_.size() && block < ratios_[level].size()) return ratios_[level][block];
  return block == 0 ? ratios_.back()[0] : ratios_[0].back();
}

uint64_t RecallModel::rows_at_most(size_t stream, uint64_t delay) const {
  const auto& at_most = sums_[stream].at_most;
  return at_most[std::min<uint64_t>(delay, at_most.size() - 1)];
}

WideSum RecallModel::strided_sum(size_t stream, uint64_t last) const {
  const Sums& sums = sums_[stream];
  const uint64_t size = sums.strided.size();
  if (last < size) return sums.strided[last];
  const uint64_t beyond = (last - size) / shape_.stride + 1;
  return static_cast<WideSum>(beyond) * sums.at_most.back() + sums.strided[last - beyond * shape_.stride];
}

/// H(first) + H(first + stride) + .., `count` of them.
WideSum RecallModel::strided_range(size_t stream, uint64_t first, uint64_t count) const {
  if (count == 0) return 0;
  const WideSum before = first >= shape_.stride ? strided_sum(stream, first - shape_.stride) : 0;
  return strided_sum(stream, first + (count - 1) * shape_.stride) - before;
}

double RecallModel::share_of_window(size_t stream, Duration window, uint64_t shift) const {
  if (window == 0) return 0;
  const auto b = static_cast<uint64_t>(input_.basic_window);
  const auto g = static_cast<uint64_t>(input_.granularity);
  const uint64_t full = (static_cast<uint64_t>(window) - 1) / b;  // basic windows before the last one
  WideSum sum = 0;
  if (!shape_.regular) {
    for (uint64_t l = 0; l < full; ++l) sum += rows_at_most(stream, shift + l * b / g);
  } else if (shape_.repeat == 1) {
    sum = strided_range(stream, shift, full);
  } else {
    const uint64_t whole = full / shape_.repeat;
    sum = strided_range(stream, shift, whole) * shape_.repeat;
    sum += static_cast<WideSum>(full % shape_.repeat) * rows_at_most(stream, shift + whole);
  }
  sum *= b;
  const uint64_t rest = static_cast<uint64_t>(window) - full * b;
  sum += static_cast<WideSum>(rest) * rows_at_most(stream, shift + full * b / g);
  return static_cast<double>(sum);
}

double RecallModel::recall(uint64_t steps) const {
  return recall_at(ratio(steps), steps);
}

/// Grows with either, rounded as it is: so does every operation in it.
double RecallModel::recall_at(double ratio, uint64_t steps) const {
  const size_t streams = input_.streams.size();
  double produced = 0;
  for (size_t i = 0; i < streams; ++i) {
    if (input_.streams[i].rows == 0) continue;
    double product = static_cast<double>(rows_at_most(i, steps + sums_[i].offset)) /
                     static_cast<double>(input_.streams[i].rows);
    for (size_t j = 0; j < streams; ++j) {
      if (j == i) continue;
      // Nothing is known about the delays of a stream without rows: as good as in order.
      product *= input_.streams[j].rows == 0
                     ? static_cast<double>(input_.windows[j][i])
                     : share_of_window(j, input_.windows[j][i], steps + sums_[j].offset) /
                           static_cast<double>(input_.streams[j].rows);
    }
    produced += product;
  }
  if (true_size_ == 0) {  // windows of no length: only rows of the same time meet, so only order counts
    double in_order = 1;
    for (size_t i = 0; i < streams; ++i) {
      if (input_.streams[i].rows > 0)
        in_order *= static_cast<double>(rows_at_most(i, steps + sums_[i].offset)) /
                    static_cast<double>(input_.streams[i].rows);
    }
    return ratio * in_order;
  }
  for (size_t i = 0; i < streams; ++i) {
    if (input_.streams[i].rows > 0) continue;
    double product = 1;
    for (size_t j = 0; j < streams; ++j) {
      if (j != i) product *= static_cast<double>(input_.windows[j][i]);
    }
    produced += product;
  }
  return ratio * produced / true_size_;
}

/// The first slack in the block that is enough, or kNone.
uint64_t RecallModel::first_enough(double requirement, size_t level, uint64_t block, uint64_t& asked) const {
  const uint64_t first = block << level;
  if (first > input_.largest_delay) return kNone;
  const uint64_t last = std::min(input_.largest_delay, first + (uint64_t{1} << level) - 1);
  ++asked;
  if (recall_at(largest_ratio(level, block), last) < requirement) return kNone;
  if (level == 0) return first;
  const uint64_t found = first_enough(requirement, level - 1, 2 * block, asked);
  return found != kNone ? found : first_enough(requirement, level - 1, 2 * block + 1, asked);
}

SlackChoice RecallModel::smallest(double requirement) const {
  SlackChoice choice;
  size_t level = 0;
  while ((input_.largest_delay >> level) > 0) ++level;
  const uint64_t found = first_enough(requirement, level, 0, choice.steps);
  const uint64_t steps = found != kNone ? found : input_.largest_delay;
  choice.slack = static_cast<Duration>(steps) * input_.granularity;
  choice.recall = std::min(1.0, recall(steps));
  ++choice.steps;
  return choice;
}

}  // namespace streamjoin
