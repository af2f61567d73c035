// MultiPunctuations::Rehearsal: which rows of a batch break a promise, found while nothing has changed yet.

#include <algorithm>

#include "streamjoin/join/class_pattern.h"
#include "streamjoin/join/multi_punctuations.h"

namespace streamjoin {

MultiPunctuations::Rehearsal::Rehearsal(const MultiPunctuations& punctuations, size_t stream)
    : punctuations_(punctuations), stream_(stream) {
  const std::optional<KeyPattern>& cluster = punctuations.clusters_[stream];
  if (!cluster) return;
  const std::vector<size_t>& classes = punctuations.parts_.classes[stream];
  const ClassPattern compiled(*cluster, classes, punctuations.parts_.dictionaries);
  cluster_.emplace();
  for (const size_t position : punctuations.options_.implied[stream].positions) {
    const auto condition =
        std::ranges::find(compiled.conditions(), classes[position], &ClassCondition::number);
    // A key that the dictionary has let go is that of no row to come: any other code will do for it.
    cluster_->push_back(condition->low <= condition->high ? condition->low : kNoCode);
  }
}

std::vector<Code> MultiPunctuations::Rehearsal::implied_key(std::span<const Code> keys) const {
  std::vector<Code> key;
  for (const size_t position : punctuations_.options_.implied[stream_].positions)
    key.push_back(keys[position]);
  return key;
}

bool MultiPunctuations::Rehearsal::violates(std::span<const Code> keys, Time clock) {
  const StreamPromises& promises = punctuations_.promises_[stream_];
  if (promises.any() && promises.covers(keys, ~StreamPromises::Positions{0}) &&
      promises.covered_until(keys, ~StreamPromises::Positions{0}) >= clock)
    return true;
  if (implied_.empty()) return false;
  const auto found = implied_.find(implied_key(keys));
  return found != implied_.end() && found->second >= clock;
}

void MultiPunctuations::Rehearsal::pass(std::span<const Code> keys, Time time) {
  const Implies kind = punctuations_.options_.implied[stream_].kind;
  if (kind == Implies::kNothing) return;
  std::vector<Code> key = implied_key(keys);
  const Time until = end_of(time, punctuations_.promises_[stream_].lifespan());
  const auto promise = [&](std::vector<Code> promised) {
    Time& known = implied_.try_emplace(std::move(promised), kBeginning).first->second;
    known = std::max(known, until);
  };
  if (kind == Implies::kUnique) {
    promise(std::move(key));
  } else if (cluster_ != key) {
    if (cluster_) promise(std::move(*cluster_));
    cluster_ = std::move(key);
  }
}

}  // namespace streamjoin
