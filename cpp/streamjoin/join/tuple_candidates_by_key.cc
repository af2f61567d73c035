// How TupleExtender finds the rows that may extend a tuple by the indexes of the states (HW-join).

#include <algorithm>

#include "streamjoin/join/tuple_extender.h"

namespace streamjoin {

// A block at a time, so that the misses of one tuple are waited for together with those of the next.
void TupleExtender::find_lists(const ProbingStep& step, size_t level_number) {
  const TupleLevel& level = levels_[level_number];
  const StreamState& state = *context_->states[step.stream];
  const size_t position = step.probe.position;
  keys_.resize(level.size());
  if (level_number == 0) {
    const Code* const keys = batch_->keys[step.probe.equals.position].data();
    for (size_t tuple = 0; tuple < level.size(); ++tuple) keys_[tuple] = keys[level[tuple].row];
  } else {
    for (size_t tuple = 0; tuple < level.size(); ++tuple)
      keys_[tuple] = key_at(level_number, tuple, step.probe.equals);
  }
  std::vector<const INode*>& lists = lists_[level_number];
  lists.resize(level.size());
  const bool cached = state.is_cached();
  for (size_t tuple = 0; tuple < level.size() && !cached; ++tuple) state.prefetch_key(position, keys_[tuple]);
  for (size_t tuple = 0; tuple < level.size(); ++tuple) {
    lists[tuple] = state.find_list(position, keys_[tuple]);
    if (!cached && lists[tuple] != nullptr) state.prefetch_ends(*lists[tuple]);
  }
}

// The common step of hash: one key, one matrix, nothing else to ask. Of the rows bound before, only times are
// read. From a tuple on, until the next level is full; returns the first tuple that is left.
size_t TupleExtender::find_by_key_alone(const ProbingStep& step, size_t level_number, size_t from) {
  const TupleLevel& level = levels_[level_number];
  TupleLevel& next = levels_[level_number + 1];
  const StreamState& state = *context_->states[step.stream];
  const INode* const* const lists = lists_[level_number].data();
  const Time limit = limits_[step.stream];
  const WindowMatrix::Mask mask = matrix_.all();
  for (; from < level.size() && next.size() < kBlock; ++from) {
    if (lists[from] == nullptr) continue;
    Period period{.first = limit, .last = kEnd};
    matrix_.narrow(0, step.stream, stream_of_[level_number], level[from].time, period);
    uint32_t at = level[from].parent;
    for (size_t number = level_number; number-- > 0; at = levels_[number][at].parent)
      matrix_.narrow(0, step.stream, stream_of_[number], levels_[number][at].time, period);
    if (period.empty()) continue;
    const WithinPeriod within(period);
    state.look(step.probe.position, *lists[from], period.first, period.last, [&](uint32_t node, Time time) {
      if (within(time)) next.add(static_cast<uint32_t>(from), node, time, mask);
    });
  }
  return from;
}

void TupleExtender::find_by_key(const ProbingStep& step, size_t level, uint32_t tuple) {
  const bool by_index = step.by == ProbingStep::By::kIndex;
  const INode* const list = by_index ? lists_[level][tuple] : nullptr;
  if (by_index && list == nullptr) return;
  enter(level, tuple);
  const StreamState& state = *context_->states[step.stream];
  const WindowMatrix::Mask mask = levels_[level][tuple].mask;
  const Time limit = limits_[step.stream];
  TupleLevel& next = levels_[level + 1];
  set_exact_periods(step.stream, level);
  Period period = widest_period();
  period.first = std::max(period.first, limit);
  const size_t before = next.size();
  const auto consider = [&](uint32_t node, Time time) {
    const WindowMatrix::Mask fitting = in_time(time, mask);
    if (fitting == 0 || time < limit) return;
    for (const KeyCheck& check : step.checks) {
      if (state.key(check.position, node) != key_of(check.equals)) return;
    }
    next.add(tuple, node, time, fitting);
  };
  if (list != nullptr) {
    state.look(step.probe.position, *list, period.first, period.last, consider);
  } else if (!period.empty()) {
    for (const StreamState::Timed& entry : state.between(period.first, period.last)) {
      if (state.is_live(entry.node)) consider(entry.node, entry.time);
    }
  }
  judge_chosen(step, level, before);
}

}  // namespace streamjoin
