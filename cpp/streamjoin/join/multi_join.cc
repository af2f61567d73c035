#include "streamjoin/join/multi_join.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace streamjoin {

MultiJoin::MultiJoin(MultiJoinOptions options, const std::vector<KeyDictionary*>& dictionaries)
    : options_(std::move(options)),
      matrix_(options_.alternatives),
      order_(options_.algorithm, options_.classes, options_.conjuncts),
      extender_(matrix_, options_.conjuncts),
      counters_(matrix_.streams()),
      clocks_(matrix_.streams(), kBeginning),
      ended_(matrix_.streams()),
      forget_before_(matrix_.streams(), kBeginning),
      no_limits_(matrix_.streams(), kBeginning) {
  if (streams() < 2) throw UsageError("a join needs at least two streams");
  if (options_.classes.size() != streams() || options_.value_slots.size() != streams())
    throw UsageError("classes and value slots are needed for each stream");
  if (!options_.unordered.empty() && options_.unordered.size() != streams())
    throw UsageError("unordered is needed for each stream, or for none");
  for (size_t stream = 0; stream < streams(); ++stream) {
    StreamStateOptions state{.dictionaries = {},
                             .value_slots = options_.value_slots[stream],
                             .indexed = options_.algorithm == MultiAlgorithm::kHash,
                             .values_by_node = options_.algorithm == MultiAlgorithm::kNestedLoopPipeline};
    for (const size_t number : options_.classes[stream]) state.dictionaries.push_back(dictionaries[number]);
    states_.push_back(std::make_unique<StreamState>(std::move(state)));
    readable_.push_back(states_.back().get());
  }
  if (options_.punctuations.used) start_punctuations(dictionaries);
  if (options_.algorithm == MultiAlgorithm::kNestedLoopPipeline)
    pipeline_ = std::make_unique<TuplePipeline>(matrix_, order_.plan(0), options_.conjuncts, readable_);
}

void MultiJoin::push(size_t stream, const StreamBatch& batch, MultiResults& results) {
  admit(stream, batch);
  const std::vector<Admitted>& admitted = admission_.admitted;
  // Only a predicate that is called can throw: without one, observations go straight where they belong.
  std::optional<ProbingOrder> rehearsed;
  if (extender_.may_throw()) rehearsed = order_;
  const size_t before = results.rows.size();
  try {
    if (pipeline_ != nullptr) pipeline_->catch_up();
    probe(stream, batch, admitted, rehearsed ? *rehearsed : order_, results.rows);
  } catch (...) {
    results.rows.resize(before);
    throw;
  }
  if (rehearsed) order_ = std::move(*rehearsed);
  count_refused(stream, batch, results);
  if (joins_row_by_row(stream)) {
    results.rows.resize(before);
    join_row_by_row(stream, batch, admitted, results.rows);
  } else if (punctuations_ != nullptr) {
    take_rows(stream, batch, admitted);
  }
  rows_out_ += (results.rows.size() - before) / streams();
  counters_[stream].rows_in += batch.times.size();
  if (!has_ended(stream)) raise_clock(stream, admission_.clock);
  if (punctuations_ == nullptr) store(stream, batch, admitted);
  if (drops_early()) drop_what_was_left_behind();
  take_closed(results);
  sweep();
  end_output_if_done(clocks_[stream], results);
}

std::vector<RowRef> MultiJoin::rehearse(size_t stream, const StreamBatch& batch) {
  admit(stream, batch);
  ProbingOrder order = order_;
  std::vector<RowRef> found;
  probe(stream, batch, admission_.admitted, order, found);
  return found;
}

// Which rows take part; throws under an error policy.
void MultiJoin::admit(size_t stream, const StreamBatch& batch) {
  admission_.admitted.clear();
  admission_.violating.clear();
  admission_.late = 0;
  std::optional<MultiPunctuations::Rehearsal> promises;
  std::vector<Code>& keys = keys_;
  if (punctuations_ != nullptr) {
    promises.emplace(*punctuations_, stream);
    keys.resize(batch.keys.size());
  }
  Time clock = clocks_[stream];
  for (size_t i = 0; i < batch.times.size(); ++i) {
    const bool late = batch.times[i] < clock;
    if (late && options_.late == LatePolicy::kError) throw RefusedBatch{RefusedBatch::Why::kLate, i, clock};
    admission_.late += late;
    if (late && options_.late == LatePolicy::kDrop) continue;
    clock = clock_after(stream, clock, batch.times[i]);
    if (batch.unmatchable != nullptr && batch.unmatchable[i] != 0) continue;
    for (size_t position = 0; promises && position < keys.size(); ++position)
      keys[position] = batch.keys[position][i];
    if (has_ended(stream) || (promises && promises->violates(keys, clock))) {
      if (options_.violation == ViolationPolicy::kError)
        throw RefusedBatch{RefusedBatch::Why::kViolation, i, clock};
      admission_.violating.push_back(static_cast<uint32_t>(i));
      if (options_.violation == ViolationPolicy::kDrop) continue;
    }
    if (promises) promises->pass(keys, batch.times[i]);
    admission_.admitted.push_back({static_cast<uint32_t>(i), late, clock});
  }
  admission_.clock = clock;
}

// In runs of rows: up to a late one, which is told what is forgotten by then, and up to the next revision of
// the order, which counts rows and not batches.
void MultiJoin::probe(size_t stream, const StreamBatch& batch, std::span<const Admitted> admitted,
                      ProbingOrder& order, std::vector<RowRef>& found) {
  if (pipeline_ != nullptr) pipeline_->begin();
  if (output_ended_) return;
  const ExtensionContext context{options_.algorithm, matrix_, readable_, options_.conjuncts};
  std::vector<uint32_t>& run = run_;
  run.clear();
  const auto flush = [&](std::span<const Time> of_run) {
    if (!run.empty() && pipeline_ != nullptr) {
      pipeline_->extend(stream, batch, run, of_run, found);
    } else if (!run.empty()) {
      extender_.extend(context, stream, batch, run, of_run, order, found);
    }
    run.clear();
  };
  const uint64_t before = counters_[stream].rows_in;
  uint64_t revised = before / kRevisedEvery;
  for (const Admitted& row : admitted) {
    if ((before + row.row) / kRevisedEvery != revised) {
      flush(no_limits_);
      revised = (before + row.row) / kRevisedEvery;
      order.revise(stream);
    }
    if (row.late) {
      flush(no_limits_);
      std::vector<Time> clocks = clocks_;
      std::vector<Time> limits(streams());
      clocks[stream] = row.clock;
      for (size_t other = 0; other < streams(); ++other) limits[other] = matrix_.forget_before(other, clocks);
      run.push_back(row.row);
      flush(limits);
    } else {
      run.push_back(row.row);
    }
  }
  flush(no_limits_);
}

void MultiJoin::count_refused(size_t stream, const StreamBatch& batch, MultiResults& results) {
  const Side side = static_cast<Side>(stream);
  Time clock = clocks_[stream];
  counters_[stream].late += admission_.late;
  for (size_t i = 0; i < batch.times.size() && admission_.late > 0; ++i) {
    if (batch.times[i] < clock && options_.late == LatePolicy::kDrop)
      results.late.push_back({side, batch.ref(i), subtract_saturating(clock, batch.times[i])});
    clock = clock_after(stream, clock, batch.times[i]);
  }
  counters_[stream].violations += admission_.violating.size();
  if (options_.violation != ViolationPolicy::kDrop) return;
  for (const uint32_t i : admission_.violating) results.violations.push_back({side, batch.ref(i), 0});
}

void MultiJoin::store(size_t stream, const StreamBatch& batch, std::span<const Admitted> admitted) {
  const Time limit = forget_before_[stream];
  StreamState& state = *states_[stream];
  if (pipeline_ != nullptr) stored_.assign(batch.times.size(), kNoNode);
  keys_.resize(batch.keys.size());
  values_.resize(batch.values.size());
  for (size_t position = 0; position < keys_.size() && state.indexed() && !state.is_cached(); ++position) {
    for (const Admitted& row : admitted) state.prefetch_key(position, batch.keys[position][row.row]);
    for (const Admitted& row : admitted) state.prefetch_list(position, batch.keys[position][row.row]);
  }
  for (const Admitted& row : admitted) {
    if (output_ended_) {
      ++counters_[stream].discarded_on_the_fly;
      continue;
    }
    const Time time = batch.times[row.row];
    if (time < limit) continue;
    for (size_t position = 0; position < keys_.size(); ++position)
      keys_[position] = batch.keys[position][row.row];
    for (size_t slot = 0; slot < values_.size(); ++slot) values_[slot] = batch.values[slot].at(row.row);
    const uint32_t node = state.insert(time, batch.ref(row.row), keys_, values_);
    if (pipeline_ != nullptr) stored_[row.row] = node;
  }
  if (pipeline_ != nullptr) pipeline_->absorb(stream, stored_);
}

bool MultiJoin::insert_behind(size_t stream, const StreamBatch& batch, size_t row, Time clock) {
  ++counters_[stream].rows_in;
  if (is_late(stream, batch.times[row], clock) || has_ended(stream)) {
    ++counters_[stream].late;
    return false;
  }
  if (batch.unmatchable != nullptr && batch.unmatchable[row] != 0) return true;
  const Admitted admitted{static_cast<uint32_t>(row), true, clocks_[stream]};
  const uint64_t before = states_[stream]->inserted();
  if (pipeline_ != nullptr) pipeline_->begin();
  if (punctuations_ == nullptr) {
    store(stream, batch, {&admitted, 1});
  } else if (!breaks_promise(stream, batch, row)) {
    take_rows(stream, batch, {&admitted, 1});
  }
  if (pipeline_ != nullptr && states_[stream]->inserted() > before)
    pipeline_->stored_behind(stream, states_[stream]->last_inserted());
  return true;
}

// A dead row's node is handed out again once it is freed, so no tuple may speak of it then.
void MultiJoin::sweep() {
  const auto is_due = [](const auto& state) { return state->is_due_for_sweep(); };
  if (pipeline_ != nullptr && std::ranges::any_of(states_, is_due)) pipeline_->prune();
  for (const auto& state : states_) state->sweep();
}

void MultiJoin::free_dead_rows() {
  if (pipeline_ != nullptr) pipeline_->prune();
  for (const auto& state : states_) state->sweep_all();
}

std::vector<RowRef> MultiJoin::move_rows_to(size_t stream, uint32_t batch) {
  if (pipeline_ != nullptr) pipeline_->prune();
  return states_[stream]->move_rows_to(batch);
}

void MultiJoin::raise_clock(size_t stream, Time clock) {
  if (clock <= clocks_[stream]) return;
  const Time before = std::exchange(clocks_[stream], clock);
  if (punctuations_ != nullptr) punctuations_->clock_raised(stream, clock == kEnd ? before : clock);
  for (size_t other = 0; other < streams(); ++other) {
    if (other == stream) continue;
    // Mostly another stream is behind: then nothing changes for this one.
    if (matrix_.unreachable_before(other, stream, before) > forget_before_[other]) continue;
    const Time limit = matrix_.forget_before(other, clocks_);
    forget_before_[other] = limit;
    if (punctuations_ != nullptr) punctuations_->before_invalidation(other, limit);
    const size_t gone = states_[other]->invalidate_before(limit);
    (has_ended(stream) ? counters_[other].purged : counters_[other].invalidated) += gone;
  }
}

// Of two streams a row goes with the clock of the other, and no oldest row is past that.
bool MultiJoin::drops_early() const {
  const bool merges =
      options_.algorithm == MultiAlgorithm::kMergeGca || options_.algorithm == MultiAlgorithm::kMergeLca;
  return merges && streams() > 2 && options_.late != LatePolicy::kInsert && !options_.rows_come_behind &&
         options_.unordered.empty() && punctuations_ == nullptr;
}

// What goes may be what another row waited for, so until nothing goes. GCA knows one window alone, the widest
// of all.
void MultiJoin::drop_what_was_left_behind() {
  const bool global = options_.algorithm == MultiAlgorithm::kMergeGca;
  const Duration widest = matrix_.widest();
  for (bool again = true; again;) {
    again = false;
    for (size_t stream = 0; stream < streams(); ++stream) {
      const std::span<const StreamState::Timed> rows = states_[stream]->all();
      if (rows.empty()) continue;
      Time limit = kBeginning;
      for (size_t other = 0; other < streams(); ++other) {
        if (other == stream) continue;
        const std::span<const StreamState::Timed> others = states_[other]->all();
        const Time oldest = others.empty() ? clocks_[other] : others.front().time;
        const Duration reach = global ? widest : matrix_.hull(stream, other);
        limit = std::max(limit, WindowMatrix::unreachable_before(reach, oldest));
      }
      if (rows.front().time >= limit) continue;
      counters_[stream].invalidated += states_[stream]->invalidate_before(limit);
      again = true;
    }
  }
}

void MultiJoin::advance(size_t stream, Time clock, MultiResults& results) {
  const Time before = clocks_[stream];
  if (!has_ended(stream)) raise_clock(stream, clock);
  if (drops_early()) drop_what_was_left_behind();
  take_closed(results);
  sweep();
  end_output_if_done(std::max(before, clock), results);
}

void MultiJoin::end(size_t stream, Time time, MultiResults& results) {
  ended_[stream] = 1;
  raise_clock(stream, kEnd);
  if (drops_early()) drop_what_was_left_behind();
  take_closed(results);
  sweep();
  end_output_if_done(time, results);
}

void MultiJoin::finish(MultiResults& results) {
  Time time = kBeginning;
  for (const Time clock : clocks_) {
    if (clock != kEnd) time = std::max(time, clock);
  }
  std::fill(ended_.begin(), ended_.end(), uint8_t{1});
  std::fill(clocks_.begin(), clocks_.end(), kEnd);
  std::fill(forget_before_.begin(), forget_before_.end(), kEnd);
  end_output_if_done(time, results);
  for (size_t stream = 0; stream < streams(); ++stream)
    counters_[stream].purged += states_[stream]->purge_all();
  sweep();
}

// A stream that has ended and holds no row is missing from every result to come.
void MultiJoin::end_output_if_done(Time time, MultiResults& results) {
  if (output_ended_ || std::ranges::find(ended_, uint8_t{1}) == ended_.end()) return;
  bool all = true;
  bool done = false;
  for (size_t stream = 0; stream < streams(); ++stream) {
    all &= has_ended(stream);
    done |= has_ended(stream) && states_[stream]->live_rows() == 0;
  }
  if (!all && !done) return;
  output_ended_ = true;
  if (punctuations_ != nullptr) punctuations_->end();
  for (size_t stream = 0; stream < streams(); ++stream)
    counters_[stream].purged += states_[stream]->purge_all();
  sweep();
  const PropagationKind kind = all ? PropagationKind::kRegular : PropagationKind::kEarly;
  ++punctuations_out_[static_cast<size_t>(kind)];
  results.punctuations.push_back({kind, true, 0, 0, time, kEnd});
}

std::vector<size_t> MultiJoin::probing_order(size_t stream) const {
  std::vector<size_t> order;
  for (const ProbingStep& step : order_.plan(stream).steps) order.push_back(step.stream);
  return order;
}

}  // namespace streamjoin
