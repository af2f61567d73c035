#include "streamjoin/join/tuple_pipeline.h"

#include <algorithm>

namespace streamjoin {

void TuplePipeline::Tuples::add(const uint32_t* first_rows, const Time* first_times, uint32_t row, Time time,
                                WindowMatrix::Mask mask) {
  rows.insert(rows.end(), first_rows, first_rows + width - 1);
  rows.push_back(row);
  times.insert(times.end(), first_times, first_times + width - 1);
  times.push_back(time);
  masks.push_back(mask);
}

void TuplePipeline::Tuples::append(const Tuples& others, size_t tuple) {
  rows.insert(rows.end(), others.rows_of(tuple), others.rows_of(tuple) + width);
  times.insert(times.end(), others.times_of(tuple), others.times_of(tuple) + width);
  masks.push_back(others.masks[tuple]);
}

template <typename Keep>
void TuplePipeline::Tuples::keep_if(size_t from, Keep keep) {
  size_t kept = from;
  for (size_t tuple = from; tuple < size(); ++tuple) {
    if (!keep(tuple)) continue;
    std::copy_n(rows_of(tuple), width, rows.data() + kept * width);
    std::copy_n(times_of(tuple), width, times.data() + kept * width);
    masks[kept++] = masks[tuple];
  }
  rows.resize(kept * width);
  times.resize(kept * width);
  masks.resize(kept);
}

void TuplePipeline::Tuples::clear() {
  rows.clear();
  times.clear();
  masks.clear();
}

class TuplePipeline::Block : public TupleView {
 public:
  Block(const TuplePipeline& pipeline, const Tuples& tuples, size_t from)
      : pipeline_(pipeline), tuples_(tuples), from_(from) {}

  size_t size() const override { return tuples_.size() - from_; }
  std::span<const RowRef> rows() override {
    if (!rows_.empty()) return rows_;
    rows_.assign(size() * pipeline_.states_.size(), kNoRow);
    for (size_t tuple = 0; tuple < size(); ++tuple) {
      for (size_t stream = 0; stream < tuples_.width; ++stream) {
        rows_[tuple * pipeline_.states_.size() + stream] =
            pipeline_.reference(stream, tuples_.rows_of(from_ + tuple)[stream]);
      }
    }
    return rows_;
  }
  NumericValue value(size_t tuple, size_t stream, size_t slot) const override {
    return pipeline_.value_of(stream, slot, tuples_.rows_of(from_ + tuple)[stream]);
  }

 private:
  const TuplePipeline& pipeline_;
  const Tuples& tuples_;
  size_t from_;
  std::vector<RowRef> rows_;
};

TuplePipeline::TuplePipeline(const WindowMatrix& matrix, ProbingPlan plan,
                             std::span<const Conjunct> conjuncts, std::vector<const StreamState*> states)
    : matrix_(matrix),
      plan_(std::move(plan)),
      conjuncts_(conjuncts.begin(), conjuncts.end()),
      states_(std::move(states)) {
  for (size_t step = 0; step < states_.size(); ++step) left_.push_back({.width = step});
  pending_ = left_;
}

void TuplePipeline::begin() {
  for (Tuples& tuples : pending_) tuples.clear();
}

void TuplePipeline::extend(size_t origin, const StreamBatch& batch, std::span<const uint32_t> rows,
                           std::span<const Time> limits, std::vector<RowRef>& results) {
  origin_ = origin;
  batch_ = &batch;
  limits_ = limits;
  Tuples tuples = origin == 0 ? start(rows) : from_the_right(rows);
  for (size_t step = origin + 1; step < states_.size(); ++step) {
    Tuples next = from_the_left(step, tuples);
    for (size_t tuple = 0; tuple < tuples.size(); ++tuple) pending_[step].append(tuples, tuple);
    tuples = std::move(next);
  }
  for (size_t tuple = 0; tuple < tuples.size(); ++tuple) {
    for (size_t stream = 0; stream < states_.size(); ++stream)
      results.push_back(reference(stream, tuples.rows_of(tuple)[stream]));
  }
}

void TuplePipeline::absorb(size_t origin, std::span<const uint32_t> nodes) {
  for (size_t step = origin + 1; step < states_.size(); ++step) {
    Tuples& pending = pending_[step];
    for (size_t tuple = 0; tuple < pending.size(); ++tuple) {
      uint32_t& row = pending.rows[tuple * step + origin];
      row = nodes[row];
      if (row != kNoNode && is_alive(pending.rows_of(tuple), step)) left_[step].append(pending, tuple);
    }
    pending.clear();
  }
}

void TuplePipeline::catch_up() {
  const std::vector<Time> no_limits(states_.size(), kBeginning);
  while (!behind_.empty()) {
    const Behind row = behind_.front();
    origin_ = row.stream;
    batch_ = nullptr;
    limits_ = no_limits;
    // It meets the rows that came before it: those that wait behind it meet it in their turn.
    std::vector<Tuples> made;
    made.push_back(row.stream == 0 ? start({&row.node, 1}) : from_the_right({&row.node, 1}));
    for (size_t step = row.stream + 1; step + 1 < states_.size(); ++step)
      made.push_back(from_the_left(step, made.back()));
    for (const Tuples& tuples : made) {
      if (tuples.width == states_.size()) continue;
      for (size_t tuple = 0; tuple < tuples.size(); ++tuple) {
        if (is_alive(tuples.rows_of(tuple), tuples.width)) left_[tuples.width].append(tuples, tuple);
      }
    }
    behind_.erase(behind_.begin());
  }
}

TuplePipeline::Tuples TuplePipeline::start(std::span<const uint32_t> rows) {
  Tuples tuples{.width = 1};
  for (const uint32_t row : rows) tuples.add(nullptr, nullptr, row, time_of(row), matrix_.all());
  filter(0, tuples, 0);
  return tuples;
}

// Rows of the origin meet the tuples on their left.
TuplePipeline::Tuples TuplePipeline::from_the_right(std::span<const uint32_t> rows) {
  const size_t step = origin_;
  const Tuples& left = left_[step];
  const std::vector<KeyCheck>& checks = plan_.steps[step - 1].checks;
  const auto equal_keys = [&](const uint32_t* bound, uint32_t row) {
    return std::ranges::all_of(checks, [&](const KeyCheck& check) {
      const Code key = key_of(check.equals.stream, check.equals.position, bound[check.equals.stream]);
      return key == key_of(step, check.position, row);
    });
  };
  const auto too_old = [&](const Time* times) {
    for (size_t stream = 0; stream < step; ++stream) {
      if (times[stream] < limits_[stream]) return true;
    }
    return false;
  };
  Tuples made{.width = step + 1};
  size_t filtered = 0;
  for (const uint32_t row : rows) {
    const Time time = time_of(row);
    for (size_t tuple = 0; tuple < left.size(); ++tuple) {
      const WindowMatrix::Mask mask = fitting(left.masks[tuple], left.times_of(tuple), step, time);
      if (mask == 0 || too_old(left.times_of(tuple)) || !equal_keys(left.rows_of(tuple), row)) continue;
      if (!is_alive(left.rows_of(tuple), step)) continue;
      made.add(left.rows_of(tuple), left.times_of(tuple), row, time, mask);
    }
    if (made.size() - filtered < kBlock) continue;
    filter(step, made, filtered);
    filtered = made.size();
  }
  filter(step, made, filtered);
  return made;
}

// Tuples of the streams before `step` meet the rows on their right.
TuplePipeline::Tuples TuplePipeline::from_the_left(size_t step, const Tuples& tuples) {
  const StreamState& state = *states_[step];
  const std::vector<KeyCheck>& checks = plan_.steps[step - 1].checks;
  const StreamState::Places places = state.all_places();
  std::vector<std::pair<Code, const Code*>> equal;  // a key, and the column that must have it
  Tuples made{.width = step + 1};
  size_t filtered = 0;
  for (size_t tuple = 0; tuple < tuples.size(); ++tuple) {
    equal.clear();
    for (const KeyCheck& check : checks) {
      const size_t stream = check.equals.stream;
      equal.emplace_back(key_of(stream, check.equals.position, tuples.rows_of(tuple)[stream]),
                         state.columns().keys(check.position, 0));
    }
    for (size_t place = places.begin; place < places.end; ++place) {
      const auto [time, node] = state.listed(place);
      const WindowMatrix::Mask mask = fitting(tuples.masks[tuple], tuples.times_of(tuple), step, time);
      if (mask == 0 || time < limits_[step]) continue;
      if (!std::ranges::all_of(equal, [&](const auto& key) { return key.second[place] == key.first; }))
        continue;
      if (!state.is_live(node) || waits(step, node)) continue;
      made.add(tuples.rows_of(tuple), tuples.times_of(tuple), node, time, mask);
    }
    if (made.size() - filtered < kBlock) continue;
    filter(step, made, filtered);
    filtered = made.size();
  }
  filter(step, made, filtered);
  return made;
}

std::span<const size_t> TuplePipeline::conjuncts_of(size_t step) const {
  return step == 0 ? plan_.first_conjuncts : plan_.steps[step - 1].conjuncts;
}

void TuplePipeline::filter(size_t step, Tuples& tuples, size_t from) {
  for (const size_t conjunct : conjuncts_of(step)) {
    if (tuples.size() == from) return;
    holds_.assign(tuples.size() - from, 1);
    Block block(*this, tuples, from);
    conjuncts_[conjunct].predicate->evaluate(block, holds_);
    tuples.keep_if(from, [&](size_t tuple) { return holds_[tuple - from] != 0; });
  }
}

// The alternatives that are left when a row of `stream`, the next, joins rows of the streams before it.
WindowMatrix::Mask TuplePipeline::fitting(WindowMatrix::Mask mask, const Time* times, size_t stream,
                                          Time time) const {
  for (size_t k = 0; k < matrix_.alternatives(); ++k) {
    const WindowMatrix::Mask alternative = WindowMatrix::Mask{1} << k;
    if ((mask & alternative) == 0) continue;
    Period period;
    for (size_t other = 0; other < stream; ++other) matrix_.narrow(k, stream, other, times[other], period);
    if (!period.contains(time)) mask &= ~alternative;
  }
  return mask;
}

bool TuplePipeline::is_alive(const uint32_t* rows, size_t width) const {
  for (size_t stream = 0; stream < width; ++stream) {
    if (!states_[stream]->is_live(rows[stream])) return false;
  }
  return true;
}

bool TuplePipeline::waits(size_t stream, uint32_t node) const {
  return std::ranges::any_of(behind_,
                             [&](const Behind& row) { return row.stream == stream && row.node == node; });
}

void TuplePipeline::prune() {
  for (size_t step = 1; step < states_.size(); ++step) {
    Tuples& left = left_[step];
    left.keep_if(0, [&](size_t tuple) { return is_alive(left.rows_of(tuple), step); });
  }
  std::erase_if(behind_, [&](const Behind& row) { return !states_[row.stream]->is_live(row.node); });
}

Time TuplePipeline::time_of(uint32_t row) const {
  return batch_ != nullptr ? batch_->times[row] : states_[origin_]->time(row);
}

Code TuplePipeline::key_of(size_t stream, size_t position, uint32_t row) const {
  if (batch_ != nullptr && stream == origin_) return batch_->keys[position][row];
  return states_[stream]->key(position, row);
}

NumericValue TuplePipeline::value_of(size_t stream, size_t slot, uint32_t row) const {
  if (batch_ != nullptr && stream == origin_) return batch_->values[slot].at(row);
  return states_[stream]->value(slot, row);
}

RowRef TuplePipeline::reference(size_t stream, uint32_t row) const {
  if (batch_ != nullptr && stream == origin_) return batch_->ref(row);
  return states_[stream]->row(row);
}

size_t TuplePipeline::tuples() const {
  size_t tuples = 0;
  for (size_t step = 2; step < left_.size(); ++step) tuples += left_[step].size();
  return tuples;
}

}  // namespace streamjoin
