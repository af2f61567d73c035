#include "streamjoin/join/tuple_extender.h"

#include <algorithm>

namespace streamjoin {

class TupleExtender::View : public TupleView {
 public:
  View(const TupleExtender& extender, const TupleBlock& block) : extender_(extender), block_(block) {}

  size_t size() const override { return block_.size(); }
  std::span<const RowRef> rows() override {
    if (rows_.empty()) {
      rows_.assign(block_.nodes.size(), kNoRow);
      for (size_t at = 0; at < rows_.size(); ++at) {
        if (block_.nodes[at] != kNoNode) rows_[at] = row(at % extender_.streams_, block_.nodes[at]);
      }
    }
    return rows_;
  }
  NumericValue value(size_t tuple, size_t stream, size_t slot) const override {
    const uint32_t node = block_.nodes[tuple * extender_.streams_ + stream];
    return stream == extender_.origin_ ? extender_.batch_->values[slot].at(node)
                                       : extender_.context_->states[stream]->value(slot, node);
  }

 private:
  RowRef row(size_t stream, uint32_t node) const {
    return stream == extender_.origin_ ? extender_.batch_->ref(node)
                                       : extender_.context_->states[stream]->row(node);
  }

  const TupleExtender& extender_;
  const TupleBlock& block_;
  std::vector<RowRef> rows_;
};

TupleExtender::TupleExtender(const WindowMatrix& matrix)
    : matrix_(matrix), streams_(matrix.streams()), widest_of_(streams_, kBeginning), widest_(kBeginning) {
  for (size_t i = 0; i < streams_; ++i) {
    for (size_t j = 0; j < streams_; ++j) {
      if (i == j) continue;
      widest_of_[i] = std::max({widest_of_[i], matrix.hull(i, j), matrix.hull(j, i)});
      uniform_ &= matrix.hull(i, j) == matrix.hull(0, 1);
    }
    widest_ = std::max(widest_, widest_of_[i]);
  }
  uniform_ &= matrix.alternatives() == 1;
  periods_.resize(matrix.alternatives());
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
  blocks_.resize(streams_);
  bound_list_.assign(1, origin);
  TupleBlock& first = blocks_[0];
  first.clear();
  const bool merge =
      context.algorithm == MultiAlgorithm::kMergeGca || context.algorithm == MultiAlgorithm::kMergeLca;
  const auto flush = [&] {
    filter(plan_->first_conjuncts, first);
    extend_block(0, first);
    first.clear();
  };
  for (const uint32_t row : rows) {
    if (merge && !every_stream_has_a_row(batch.times[row])) continue;
    first.nodes.resize(first.nodes.size() + streams_, kNoNode);
    first.times.resize(first.times.size() + streams_);
    first.nodes[first.nodes.size() - streams_ + origin] = row;
    first.times[first.times.size() - streams_ + origin] = batch.times[row];
    first.masks.push_back(matrix_.all());
    if (first.size() == kBlock) flush();
  }
  flush();
}

void TupleExtender::extend_block(size_t step_number, TupleBlock& block) {
  if (block.size() == 0) return;
  if (step_number == plan_->steps.size()) {
    emit(block);
    return;
  }
  const ProbingStep& step = plan_->steps[step_number];
  TupleBlock& next = blocks_[step_number + 1];
  next.clear();
  uint64_t matches = 0;
  const auto flush = [&] {
    filter(step.conjuncts, next);
    matches += next.size();
    bound_list_.push_back(step.stream);
    extend_block(step_number + 1, next);
    bound_list_.pop_back();
    next.clear();
  };
  const StreamState& state = *context_->states[step.stream];
  const bool exact = uniform_ && step.by == ProbingStep::By::kPeriod;
  if (step.by == ProbingStep::By::kIndex) {
    for (size_t tuple = 0; tuple < block.size(); ++tuple) {
      state.prefetch_key(step.probe.position, key_of(block, tuple, step.probe.equals));
    }
  }
  for (size_t tuple = 0; tuple < block.size(); ++tuple) {
    if (!exact) periods(step.stream, block, tuple);
    const Time limit = limits_[step.stream];
    candidates(step, block, tuple, [&](uint32_t node, Time time) {
      if (time < limit) return;
      WindowMatrix::Mask mask = block.masks[tuple];
      if (!exact) {
        for (size_t k = 0; k < periods_.size(); ++k) {
          if (!periods_[k].contains(time)) mask &= ~(WindowMatrix::Mask{1} << k);
        }
        if (mask == 0) return;
      }
      for (const KeyCheck& check : step.checks) {
        if (state.key(check.position, node) != key_of(block, tuple, check.equals)) return;
      }
      const size_t at = next.nodes.size();
      const auto from = static_cast<ptrdiff_t>(tuple * streams_);
      const auto to = from + static_cast<ptrdiff_t>(streams_);
      next.nodes.insert(next.nodes.end(), block.nodes.begin() + from, block.nodes.begin() + to);
      next.times.insert(next.times.end(), block.times.begin() + from, block.times.begin() + to);
      next.nodes[at + step.stream] = node;
      next.times[at + step.stream] = time;
      next.masks.push_back(mask);
    });
    if (next.size() >= kBlock) flush();
  }
  flush();
  order_->observe(step, block.size(), matches);
}

// Candidates of one tuple are gathered whole, so that a walk over a state is never interrupted: a block may
// grow by as many as one tuple has.
template <typename Candidate>
void TupleExtender::candidates(const ProbingStep& step, const TupleBlock& block, size_t tuple,
                               Candidate&& candidate) {
  const StreamState& state = *context_->states[step.stream];
  if (step.by == ProbingStep::By::kIndex) {
    state.look(step.probe.position, key_of(block, tuple, step.probe.equals),
               [&](uint32_t node) { candidate(node, state.time(node)); });
    return;
  }
  std::span<const StreamState::Timed> range;
  if (step.by == ProbingStep::By::kAll) {
    range = state.all();
  } else {
    const Period period = loose_period(step.stream, block, tuple);
    if (period.empty()) return;
    range = state.between(period.first, period.last);
  }
  for (const StreamState::Timed& entry : range) {
    if (state.is_live(entry.node)) candidate(entry.node, entry.time);
  }
}

Code TupleExtender::key_of(const TupleBlock& block, size_t tuple, KeyPlace place) const {
  const uint32_t node = block.nodes[tuple * streams_ + place.stream];
  return place.stream == origin_ ? batch_->keys[place.position][node]
                                 : context_->states[place.stream]->key(place.position, node);
}

Duration TupleExtender::width(size_t a, size_t b) const {
  return context_->algorithm == MultiAlgorithm::kMergeGca ? widest_ : std::min(widest_of_[a], widest_of_[b]);
}

// Where the filter of the algorithm lets rows through; for hash, which finds rows by time only where no key
// leads to them, it is the same as for LCA.
Period TupleExtender::loose_period(size_t stream, const TupleBlock& block, size_t tuple) const {
  Period period;
  for (const size_t other : bound_list_) {
    const Duration wide = width(stream, other);
    if (wide == kEnd) continue;
    const Time time = block.times[tuple * streams_ + other];
    period.first = std::max(period.first, subtract_saturating(time, wide));
    period.last = std::min(period.last, add_saturating(time, wide));
  }
  return period;
}

void TupleExtender::periods(size_t stream, const TupleBlock& block, size_t tuple) {
  for (size_t k = 0; k < periods_.size(); ++k) {
    periods_[k] = {};
    for (const size_t other : bound_list_) {
      matrix_.narrow(k, stream, other, block.times[tuple * streams_ + other], periods_[k]);
    }
  }
}

bool TupleExtender::every_stream_has_a_row(Time time) const {
  for (size_t stream = 0; stream < streams_; ++stream) {
    if (stream == origin_) continue;
    const Duration wide = width(stream, origin_);
    if (wide == kEnd) {
      if (context_->states[stream]->live_rows() == 0) return false;
    } else if (context_->states[stream]
                   ->between(subtract_saturating(time, wide), add_saturating(time, wide))
                   .empty()) {
      return false;
    }
  }
  return true;
}

void TupleExtender::filter(std::span<const size_t> conjuncts, TupleBlock& block) {
  for (const size_t conjunct : conjuncts) {
    if (block.size() == 0) return;
    holds_.assign(block.size(), 1);
    View view(*this, block);
    context_->conjuncts[conjunct].predicate->evaluate(view, holds_);
    size_t kept = 0;
    for (size_t tuple = 0; tuple < block.size(); ++tuple) {
      if (holds_[tuple] == 0) continue;
      if (kept != tuple) {
        std::copy_n(&block.nodes[tuple * streams_], streams_, &block.nodes[kept * streams_]);
        std::copy_n(&block.times[tuple * streams_], streams_, &block.times[kept * streams_]);
        block.masks[kept] = block.masks[tuple];
      }
      ++kept;
    }
    block.nodes.resize(kept * streams_);
    block.times.resize(kept * streams_);
    block.masks.resize(kept);
  }
}

void TupleExtender::emit(const TupleBlock& block) {
  View view(*this, block);
  const std::span<const RowRef> rows = view.rows();
  results_->insert(results_->end(), rows.begin(), rows.end());
}

}  // namespace streamjoin
