// MultiJoin with promises on values: where a call hands over to MultiPunctuations.

#include "streamjoin/join/multi_join.h"

namespace streamjoin {

void MultiJoin::start_punctuations(const std::vector<KeyDictionary*>& dictionaries) {
  JoinParts parts{matrix_, options_.classes, readable_, {}, clocks_, counters_, {}};
  for (const auto& state : states_) parts.states.push_back(state.get());
  parts.dictionaries.assign(dictionaries.begin(), dictionaries.end());
  punctuations_ = std::make_unique<MultiPunctuations>(options_.punctuations, std::move(parts));
}

void MultiJoin::punctuate(size_t stream, const KeyPattern& pattern, Time time, MultiResults& results) {
  if (punctuations_ == nullptr || output_ended_) return;
  punctuations_->punctuate(stream, pattern, time);
  take_closed(results);
  sweep();
}

// Counts a row that breaks a promise; it goes on all the same if violations are kept.
bool MultiJoin::breaks_promise(size_t stream, const StreamBatch& batch, size_t row) {
  std::vector<Code> keys;
  for (const std::span<const Code> column : batch.keys) keys.push_back(column[row]);
  if (!MultiPunctuations::Rehearsal(*punctuations_, stream).violates(keys, clocks_[stream])) return false;
  ++counters_[stream].violations;
  return options_.violation != ViolationPolicy::kKeep;
}

// A row that is kept although it breaks a promise meets what the rows before it have left, and these may have
// promised something themselves. All others cannot match what promises of the call purge.
bool MultiJoin::joins_row_by_row(size_t stream) const {
  return punctuations_ != nullptr && options_.violation == ViolationPolicy::kKeep &&
         punctuations_->implies_promises(stream);
}

void MultiJoin::join_row_by_row(size_t stream, const StreamBatch& batch, std::span<const Admitted> admitted,
                                std::vector<RowRef>& found) {
  for (size_t i = 0; i < admitted.size(); ++i) {
    const std::span<const Admitted> one = admitted.subspan(i, 1);
    probe(stream, batch, one, order_, found);
    take_rows(stream, batch, one);
  }
}

// Each row raises the clock, is stored, and makes its promises before the next one: what is forgotten must
// not depend on how rows were cut into batches.
void MultiJoin::take_rows(size_t stream, const StreamBatch& batch, std::span<const Admitted> admitted) {
  std::vector<Code> keys(batch.keys.size());
  std::vector<NumericValue> values(batch.values.size());
  if (pipeline_ != nullptr) stored_.assign(batch.times.size(), kNoNode);
  for (const Admitted& row : admitted) {
    if (!has_ended(stream)) raise_clock(stream, row.clock);
    for (size_t position = 0; position < keys.size(); ++position)
      keys[position] = batch.keys[position][row.row];
    for (size_t slot = 0; slot < values.size(); ++slot) values[slot] = batch.values[slot].at(row.row);
    const Time time = batch.times[row.row];
    const uint64_t before = states_[stream]->inserted();
    const bool can_match_later = time >= forget_before_[stream];
    punctuations_->take_row(stream, {time, batch.ref(row.row), keys, values, can_match_later});
    if (pipeline_ != nullptr && states_[stream]->inserted() > before)
      stored_[row.row] = states_[stream]->last_inserted();
  }
  if (pipeline_ != nullptr) pipeline_->absorb(stream, stored_);
}

void MultiJoin::take_closed(MultiResults& results) {
  if (punctuations_ == nullptr) return;
  for (ClosedPattern& closed : punctuations_->take_closed()) {
    ++punctuations_out_[static_cast<size_t>(closed.kind)];
    results.closed.push_back(std::move(closed));
  }
}

size_t MultiJoin::promises_held(size_t stream) const {
  return (has_ended(stream) ? 1 : 0) + (punctuations_ == nullptr ? 0 : punctuations_->promises_held(stream));
}

}  // namespace streamjoin
