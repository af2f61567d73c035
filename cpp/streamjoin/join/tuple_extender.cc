// The levels: filled, filtered, put out. How candidates are found and judged is in tuple_candidates.cc
// and tuple_candidates_by_key.cc.

#include "streamjoin/join/tuple_extender.h"

#include <algorithm>

namespace streamjoin {

void TupleLevel::keep(std::span<const uint8_t> holds, size_t from) {
  size_t kept = from;
  for (size_t at = from; at < size(); ++at) {
    if (holds[at - from] != 0) tuples[kept++] = tuples[at];
  }
  tuples.resize(kept);
}

class TupleExtender::Block : public TupleView {
 public:
  Block(TupleExtender& extender, size_t level) : extender_(extender), level_(level) {}

  size_t size() const override { return extender_.levels_[level_].size(); }
  std::span<const RowRef> rows() override {
    if (rows_.empty()) extender_.append_rows(level_, rows_);
    return rows_;
  }
  NumericValue value(size_t tuple, size_t stream, size_t slot) const override {
    size_t at = tuple;
    size_t level = level_;
    for (; extender_.stream_of_[level] != stream; --level) at = extender_.levels_[level][at].parent;
    return extender_.value_of({stream, slot}, extender_.levels_[level][at].row);
  }

 private:
  TupleExtender& extender_;
  size_t level_;
  std::vector<RowRef> rows_;
};

TupleExtender::TupleExtender(const WindowMatrix& matrix, std::span<const Conjunct> conjuncts)
    : matrix_(matrix),
      streams_(matrix.streams()),
      widest_(matrix.widest()),
      cursors_(streams_ * streams_),
      levels_(streams_),
      stream_of_(streams_),
      exact_(streams_),
      bound_rows_(streams_),
      bound_times_(streams_),
      periods_(matrix.alternatives()),
      lists_(streams_),
      result_(streams_) {
  for (const Conjunct& conjunct : conjuncts)
    natives_.push_back(dynamic_cast<const NativePredicate*>(conjunct.predicate.get()));
}

void TupleExtender::extend(const ExtensionContext& context, size_t origin, const StreamBatch& batch,
                           std::span<const uint32_t> rows, std::span<const Time> limits, ProbingOrder& order,
                           std::vector<RowRef>& results) {
  context_ = &context;
  origin_ = origin;
  batch_ = &batch;
  limits_ = limits;
  order_ = &order;
  plan_ = &order.plan(origin);
  results_ = &results;
  stream_of_[0] = origin;
  for (size_t step = 0; step < plan_->steps.size(); ++step) {
    stream_of_[step + 1] = plan_->steps[step].stream;
    exact_[step] = filter_is_exact(plan_->steps[step].stream, step);
  }
  TupleLevel& first = levels_[0];
  const auto begin = [&] {
    first.clear();
    in_reach_.clear();
  };
  begin();
  const auto flush = [&] {
    filter(plan_->first_conjuncts, 0);
    extend_level(0);
    begin();
  };
  const Time last = has_indexes() ? last_in_reach() : kEnd;
  const bool sweeps = merges();
  for (const uint32_t row : rows) {
    if (batch.times[row] > last || (sweeps && !is_in_reach(row))) continue;
    first.add(static_cast<uint32_t>(first.size()), row, batch.times[row], matrix_.all());
    if (first.size() == kBlock) flush();
  }
  flush();
}

void TupleExtender::extend_level(size_t level_number) {
  TupleLevel& level = levels_[level_number];
  if (level.size() == 0) return;
  if (level_number == plan_->steps.size()) {
    append_rows(level_number, *results_);
    return;
  }
  const ProbingStep& step = plan_->steps[level_number];
  TupleLevel& next = levels_[level_number + 1];
  next.clear();
  uint64_t matches = 0;
  const auto flush = [&] {
    filter(step.conjuncts, level_number + 1);
    matches += next.size();
    extend_level(level_number + 1);
    next.clear();
  };
  const bool by_index = step.by == ProbingStep::By::kIndex;
  if (by_index) find_lists(step, level_number);
  const bool key_alone =
      by_index && step.checks.empty() && step.conjuncts.empty() && matrix_.alternatives() == 1;
  for (size_t tuple = 0; tuple < level.size();) {
    if (key_alone) {
      tuple = find_by_key_alone(step, level_number, tuple);
    } else if (has_indexes()) {
      find_by_key(step, level_number, static_cast<uint32_t>(tuple++));
    } else {
      find_in_list(step, level_number, static_cast<uint32_t>(tuple++));
    }
    if (next.size() >= kBlock) flush();
  }
  flush();
  order_->observe(step, level.size(), matches);
}

// Native conjuncts have been asked while candidates were found; those of new rows alone have not.
void TupleExtender::filter(std::span<const size_t> conjuncts, size_t level_number) {
  TupleLevel& level = levels_[level_number];
  for (const size_t conjunct : conjuncts) {
    if (level.size() == 0) return;
    if (level_number > 0 && natives_[conjunct] != nullptr) continue;
    holds_.assign(level.size(), 1);
    Block block(*this, level_number);
    context_->conjuncts[conjunct].predicate->evaluate(block, holds_);
    level.keep(holds_, 0);
  }
}

// Neighbours mostly share the tuple of the level before, so its references are looked up once.
void TupleExtender::append_rows(size_t level_number, std::vector<RowRef>& rows) {
  const TupleLevel& last = levels_[level_number];
  const size_t before = rows.size();
  rows.resize(before + last.size() * streams_);
  RowRef* to = rows.data() + before;
  std::fill(result_.begin(), result_.end(), kNoRow);
  const size_t stream = stream_of_[level_number];
  uint32_t parent = kNoNode;
  for (const TupleLevel::Tuple& tuple : last.tuples) {
    if (level_number > 0 && tuple.parent != parent) {
      parent = tuple.parent;
      uint32_t up = parent;
      for (size_t level = level_number; level-- > 0; up = levels_[level][up].parent) {
        result_[stream_of_[level]] = reference(stream_of_[level], levels_[level][up].row);
      }
    }
    result_[stream] = reference(stream, tuple.row);
    for (const RowRef& row : result_) *to++ = row;
  }
}

void TupleExtender::enter(size_t level_number, size_t tuple) {
  uint32_t at = static_cast<uint32_t>(tuple);
  for (size_t number = level_number;; --number) {
    const TupleLevel::Tuple& bound = levels_[number][at];
    const size_t stream = stream_of_[number];
    bound_rows_[stream] = bound.row;
    bound_times_[stream] = bound.time;
    at = bound.parent;
    if (number == 0) break;
  }
  swept_ = at;
}

Code TupleExtender::key_at(size_t level_number, size_t tuple, KeyPlace place) const {
  uint32_t at = static_cast<uint32_t>(tuple);
  size_t number = level_number;
  for (; stream_of_[number] != place.stream; --number) at = levels_[number][at].parent;
  const uint32_t row = levels_[number][at].row;
  if (place.stream == origin_) return batch_->keys[place.position][row];
  return context_->states[place.stream]->key(place.position, row);
}

}  // namespace streamjoin
