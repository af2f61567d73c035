// How TupleExtender finds the rows that may extend a tuple in the time list, and judges them where they lie.
// Those of hash are in tuple_candidates_by_key.cc.

#include <algorithm>
#include <cstring>

#include "streamjoin/join/tuple_extender.h"

namespace streamjoin {
namespace {

bool none_holds(const uint8_t* eight) {
  uint64_t all;
  std::memcpy(&all, eight, sizeof all);
  return all == 0;
}

}  // namespace

/// A run of places of the time list, or rows that were chosen one by one: their numbers are gathered then.
class TupleExtender::Run : public RunView {
 public:
  Run(TupleExtender& extender, size_t stream, size_t begin)
      : extender_(extender), stream_(stream), begin_(begin) {}

  size_t stream() const override { return stream_; }
  NumericValue bound(ValueSlot slot) const override {
    return extender_.value_of(slot, extender_.bound_rows_[slot.stream]);
  }
  ValueRun run(size_t slot) override {
    if (begin_ != kChosen) return extender_.context_->states[stream_]->columns().values(slot, begin_);
    if (slot >= extender_.gathered_.size()) extender_.gathered_.resize(slot + 1);
    auto& [bits, kinds] = extender_.gathered_[slot];
    bits.clear();
    kinds.clear();
    ValueRun gathered{.bits = nullptr, .kinds = nullptr, .all_real = true, .all_integer = true};
    for (const uint32_t row : extender_.chosen_rows_) {
      const NumericValue value = extender_.value_of({stream_, slot}, row);
      bits.push_back(value.bits());
      kinds.push_back(value.kind());
      gathered.all_real &= value.kind() == NumericValue::kRealKind;
      gathered.all_integer &= value.is_integer();
    }
    gathered.bits = bits.data();
    gathered.kinds = kinds.data();
    return gathered;
  }

  static constexpr size_t kChosen = ~size_t{0};

 private:
  TupleExtender& extender_;
  size_t stream_;
  size_t begin_;
};

Duration TupleExtender::width(size_t a, size_t b) const {
  return context_->algorithm == MultiAlgorithm::kMergeGca
             ? widest_
             : std::min(matrix_.widest_of(a), matrix_.widest_of(b));
}

// Rows that were forgotten for a row before cannot be what makes the difference, so the answer does not
// depend on how rows were cut into batches.
Time TupleExtender::last_in_reach() const {
  Time last = kEnd;
  for (size_t stream = 0; stream < streams_; ++stream) {
    if (stream == origin_) continue;
    const std::span<const StreamState::Timed> rows = context_->states[stream]->all();
    if (rows.empty()) return kBeginning;
    last = std::min(last, end_of(rows.back().time, matrix_.hull(stream, origin_)));
  }
  return last;
}

bool TupleExtender::is_in_reach(uint32_t row) {
  const Time time = batch_->times[row];
  const size_t before = in_reach_.size();
  in_reach_.resize(before + streams_);
  for (size_t stream = 0; stream < streams_; ++stream) {
    if (stream == origin_) continue;
    const StreamState& state = *context_->states[stream];
    StreamState::Places& places = in_reach_[before + stream];
    places = state.all_places();
    const Duration wide = width(stream, origin_);
    const Time first = wide == kEnd ? kBeginning : subtract_saturating(time, wide);
    const Time last = wide == kEnd ? kEnd : add_saturating(time, wide);
    bool reached = places.begin < places.end;
    if (reached) {
      reached = state.listed(places.end - 1).time >= first && state.listed(places.begin).time <= last;
      if (reached && wide != kEnd) {
        places = state.places_between(first, last, cursors_[origin_ * streams_ + stream]);
        reached = places.begin < places.end;
      }
    }
    if (reached) continue;
    in_reach_.resize(before);
    return false;
  }
  return true;
}

// Where the rows lie that the algorithm looks at: for merge, what the sweep found, shrunk by the rows bound
// since; for the nested loop, every row.
StreamState::Places TupleExtender::places_to_look_at(const StreamState& state, const ProbingStep& step,
                                                     size_t level) const {
  if (!merges()) return state.all_places();
  Period period = level == 0 ? Period{} : filter_period(step.stream, level);
  period.first = std::max(period.first, limits_[step.stream]);
  const StreamState::Places places = in_reach_[swept_ * streams_ + step.stream];
  return period.empty() ? StreamState::Places{} : state.narrowed(places, period.first, period.last);
}

// Whether the filter's period is that of the matrix, so that what lies in it needs no further check.
bool TupleExtender::filter_is_exact(size_t stream, size_t level) const {
  if (!merges() || matrix_.alternatives() > 1) return false;
  for (size_t number = 0; number <= level; ++number) {
    const size_t other = stream_of_[number];
    const Duration wide = width(stream, other);
    if (matrix_.hull(stream, other) != wide || matrix_.hull(other, stream) != wide) return false;
  }
  return true;
}

void TupleExtender::find_in_list(const ProbingStep& step, size_t level, uint32_t tuple) {
  enter(level, tuple);
  const StreamState& state = *context_->states[step.stream];
  const StreamState::Places places = places_to_look_at(state, step, level);
  if (places.begin == places.end) return;
  if (!exact_[level]) {
    set_exact_periods(step.stream, level);
    if (widest_period().empty()) return;
  }
  if (step.checks.empty()) {
    find_by_time(step, level, tuple, places);
  } else {
    find_by_comparing(step, level, tuple, places);
  }
}

// Where nothing but predicates narrows the run down, a byte for each row, in loops over arrays.
void TupleExtender::find_by_time(const ProbingStep& step, size_t level, uint32_t tuple,
                                 StreamState::Places places) {
  const StreamState& state = *context_->states[step.stream];
  const StreamState::Timed* const rows = &state.listed(places.begin);
  const size_t count = places.end - places.begin;
  const bool in_filter = exact_[level];  // then every row looked at is in time
  holds_.resize(count);
  uint8_t* const holds = holds_.data();
  if (!merges()) {
    const WithinPeriod within(widest_period());
    for (size_t i = 0; i < count; ++i) holds[i] = static_cast<uint8_t>(within(rows[i].time));
  } else {
    std::fill_n(holds, count, uint8_t{1});
  }
  if (!state.all_listed_live()) {
    for (size_t i = 0; i < count; ++i) holds[i] &= static_cast<uint8_t>(state.is_live(rows[i].node));
  }
  Run run(*this, step.stream, places.begin);
  judge(step, run);

  const WindowMatrix::Mask mask = levels_[level][tuple].mask;
  const Time limit = limits_[step.stream];
  TupleLevel& next = levels_[level + 1];
  for (size_t i = 0; i < count; ++i) {
    if (i + 8 <= count && none_holds(holds + i)) {
      i += 7;
      continue;
    }
    if (holds[i] == 0) continue;
    const WindowMatrix::Mask fitting = in_filter ? mask : in_time(rows[i].time, mask);
    if (fitting == 0 || rows[i].time < limit) continue;
    next.add(tuple, static_cast<uint32_t>(places.begin + i), rows[i].time, fitting);
  }
}

// Where keys are compared, few rows are left: those go on one by one.
void TupleExtender::find_by_comparing(const ProbingStep& step, size_t level, uint32_t tuple,
                                      StreamState::Places places) {
  const StreamState& state = *context_->states[step.stream];
  const StreamState::Timed* const rows = &state.listed(places.begin);
  const size_t count = places.end - places.begin;
  const bool in_filter = exact_[level];
  const WindowMatrix::Mask mask = levels_[level][tuple].mask;
  const Time limit = limits_[step.stream];
  TupleLevel& next = levels_[level + 1];
  const size_t before = next.size();
  const Code key = key_of(step.checks[0].equals);
  const Code* const keys = state.columns().keys(step.checks[0].position, places.begin);
  const auto consider = [&](size_t i) {
    const Time time = rows[i].time;
    const WindowMatrix::Mask fitting = in_filter ? mask : in_time(time, mask);
    if (fitting == 0 || time < limit || !state.is_live(rows[i].node)) return;
    for (size_t check = 1; check < step.checks.size(); ++check) {
      const Code* const others = state.columns().keys(step.checks[check].position, places.begin);
      if (others[i] != key_of(step.checks[check].equals)) return;
    }
    next.add(tuple, static_cast<uint32_t>(places.begin + i), time, fitting);
  };
  for (size_t i = 0; i < count; ++i) {
    if (keys[i] == key) consider(i);
  }
  judge_chosen(step, level, before);
}

// What was added to the next level since `before`.
void TupleExtender::judge_chosen(const ProbingStep& step, size_t level, size_t before) {
  TupleLevel& next = levels_[level + 1];
  if (step.conjuncts.empty() || next.size() == before) return;
  chosen_rows_.clear();
  for (size_t at = before; at < next.size(); ++at) chosen_rows_.push_back(next[at].row);
  holds_.assign(chosen_rows_.size(), 1);
  Run run(*this, step.stream, Run::kChosen);
  judge(step, run);
  next.keep(holds_, before);
}

void TupleExtender::judge(const ProbingStep& step, Run& run) {
  for (const size_t conjunct : step.conjuncts) {
    if (natives_[conjunct] != nullptr && !holds_.empty()) natives_[conjunct]->judge(run, holds_);
  }
}

// Where the filter of merge lets rows through.
Period TupleExtender::filter_period(size_t stream, size_t level) const {
  Period period;
  for (size_t number = 0; number <= level; ++number) {
    const size_t other = stream_of_[number];
    const Duration wide = width(stream, other);
    if (wide == kEnd) continue;
    period.first = std::max(period.first, subtract_saturating(bound_times_[other], wide));
    period.last = std::min(period.last, add_saturating(bound_times_[other], wide));
  }
  return period;
}

void TupleExtender::set_exact_periods(size_t stream, size_t level) {
  for (size_t k = 0; k < periods_.size(); ++k) {
    periods_[k] = {};
    for (size_t number = 0; number <= level; ++number) {
      matrix_.narrow(k, stream, stream_of_[number], bound_times_[stream_of_[number]], periods_[k]);
    }
  }
}

// Over all alternatives.
Period TupleExtender::widest_period() const {
  Period period = periods_[0];
  for (const Period& each : periods_)
    period = {std::min(period.first, each.first), std::max(period.last, each.last)};
  return period;
}

WindowMatrix::Mask TupleExtender::in_time(Time time, WindowMatrix::Mask mask) const {
  for (size_t k = 0; k < periods_.size(); ++k) {
    if (!periods_[k].contains(time)) mask &= ~(WindowMatrix::Mask{1} << k);
  }
  return mask;
}

Code TupleExtender::key_of(KeyPlace place) const {
  const uint32_t row = bound_rows_[place.stream];
  if (place.stream == origin_) return batch_->keys[place.position][row];
  const StreamState& state = *context_->states[place.stream];
  return has_indexes() ? state.key(place.position, row) : *state.columns().keys(place.position, row);
}

NumericValue TupleExtender::value_of(ValueSlot slot, uint32_t row) const {
  if (slot.stream == origin_) return batch_->values[slot.slot].at(row);
  const StreamState& state = *context_->states[slot.stream];
  return has_indexes() ? state.value(slot.slot, row) : state.columns().values(slot.slot, row).at(0);
}

}  // namespace streamjoin
