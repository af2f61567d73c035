// MultiPunctuations, the second half: what promises say about the results.
//
// A value is closed in the output once a stream has promised it and stores no row of it: that stream's part
// is missing from every result to come. It need not be promised by all: rows of it that are stored may meet
// rows to come of streams that do not have its class.

#include <algorithm>

#include "streamjoin/base/hash.h"
#include "streamjoin/base/key_bytes.h"
#include "streamjoin/join/class_pattern.h"
#include "streamjoin/join/multi_punctuations.h"

namespace streamjoin {

size_t MultiPunctuations::HashCodes::operator()(const std::vector<Code>& codes) const {
  uint64_t hash = 0;
  for (const Code code : codes) hash = hash_code(static_cast<Code>(hash ^ hash_code(code)));
  return hash;
}

void MultiPunctuations::close_or_wait(size_t stream, const KeyPattern& pattern, const ClassPattern& compiled,
                                      Time time) {
  const StreamState& state = *parts_.states[stream];
  const size_t open = compiled.count(state, parts_.classes[stream], state.live_rows());
  const Time until = end_of(time, promises_[stream].lifespan());
  if (open == 0) {
    close(PropagationKind::kImmediate, stream, pattern, time, until);
  } else {
    wait_to_close(stream, {pattern, open, until});
  }
}

void MultiPunctuations::wait_to_close(size_t stream, Pending pending) {
  PendingOfStream& of_stream = pending_[stream];
  const ClassPattern compiled(pending.pattern, parts_.classes[stream], parts_.dictionaries);
  if (!std::ranges::all_of(compiled.conditions(), &ClassCondition::constant)) {
    of_stream.others.push_back(std::move(pending));
    return;
  }
  StreamPromises::Positions set = 0;
  std::vector<Code> codes;
  const std::vector<size_t>& classes = parts_.classes[stream];
  for (size_t position = 0; position < classes.size(); ++position) {
    const auto condition =
        std::ranges::find(compiled.conditions(), classes[position], &ClassCondition::number);
    if (condition == compiled.conditions().end()) continue;
    set |= StreamPromises::Positions{1} << position;
    codes.push_back(condition->low);
  }
  of_stream.constants[set].insert_or_assign(std::move(codes), std::move(pending));
}

// Calls `f(pending)` for those that the keys of a row match; it says whether to take it out.
template <typename F>
void MultiPunctuations::for_each_pending(size_t stream, std::span<const Code> keys, F&& f) {
  PendingOfStream& of_stream = pending_[stream];
  std::vector<Code> codes;
  for (auto by_set = of_stream.constants.begin(); by_set != of_stream.constants.end();) {
    codes.clear();
    for (size_t position = 0; position < keys.size(); ++position) {
      if ((by_set->first >> position & 1) != 0) codes.push_back(keys[position]);
    }
    const auto found = by_set->second.find(codes);
    if (found != by_set->second.end() && f(found->second)) by_set->second.erase(found);
    by_set = by_set->second.empty() ? of_stream.constants.erase(by_set) : std::next(by_set);
  }
  if (of_stream.others.empty()) return;
  const std::vector<size_t>& classes = parts_.classes[stream];
  std::vector<std::string> scratch(keys.size());
  std::vector<std::string_view> attributes;
  for (size_t position = 0; position < keys.size(); ++position) {
    attributes.push_back(bytes_of(keys[position], parts_.dictionaries[classes[position]], scratch[position]));
  }
  std::erase_if(of_stream.others,
                [&](Pending& pending) { return pending.pattern.matches(attributes) && f(pending); });
}

// Only a violation that is kept can have values that wait to be closed.
void MultiPunctuations::note_stored(size_t stream, std::span<const Code> keys) {
  for_each_pending(stream, keys, [](Pending& pending) {
    ++pending.open;
    return false;
  });
}

void MultiPunctuations::note_left(size_t stream, uint32_t node) {
  const PendingOfStream& of_stream = pending_[stream];
  if (of_stream.constants.empty() && of_stream.others.empty()) return;
  const StreamState& state = *parts_.states[stream];
  std::vector<Code> keys(state.classes());
  for (size_t position = 0; position < keys.size(); ++position) keys[position] = state.key(position, node);
  for_each_pending(stream, keys, [&](Pending& pending) {
    if (--pending.open > 0) return false;
    if (pending.until >= parts_.clocks[stream])
      close(PropagationKind::kEarly, stream, pending.pattern, now_, pending.until);
    return true;
  });
}

void MultiPunctuations::close(PropagationKind kind, size_t stream, const KeyPattern& pattern, Time time,
                              Time until) {
  // A null among the constants cannot be said in columns, where null is `*`.
  const bool sayable = std::ranges::none_of(pattern.attributes, [](const AttributePattern& attribute) {
    return attribute.kind == AttributePattern::Kind::kConstant && is_null(attribute.low);
  });
  if (!sayable || closed_elsewhere(stream, pattern)) return;
  ClosedPattern closed{kind, {}, time, until};
  for (size_t position = 0; position < pattern.attributes.size(); ++position) {
    if (pattern.attributes[position].kind != AttributePattern::Kind::kAny)
      closed.classes.emplace_back(parts_.classes[stream][position], pattern.attributes[position]);
  }
  closed_.push_back(std::move(closed));
}

// Whether another stream has closed it before: once is enough, unless promises come to an end.
bool MultiPunctuations::closed_elsewhere(size_t stream, const KeyPattern& pattern) const {
  for (size_t other = 0; other < promises_.size(); ++other) {
    if (other == stream || other == punctuating_ || !promises_[other].any()) continue;
    if (promises_[other].lifespan() != kEnd) continue;
    const KeyPattern theirs = translated(stream, pattern, other);
    if (theirs.is_any() || !promises_[other].contains(theirs)) continue;
    const ClassPattern compiled(theirs, parts_.classes[other], parts_.dictionaries);
    if (may_wait_to_close(other, compiled)) continue;
    if (compiled.count(*parts_.states[other], parts_.classes[other], 1) == 0) return true;
  }
  return false;
}

// Whether a promise of the stream that covers the pattern may wait for rows which the pattern leaves out:
// what is closed together with more has not been said yet.
bool MultiPunctuations::may_wait_to_close(size_t stream, const ClassPattern& pattern) const {
  const PendingOfStream& of_stream = pending_[stream];
  if (!of_stream.others.empty()) return true;
  if (of_stream.constants.empty()) return false;
  if (!std::ranges::all_of(pattern.conditions(), &ClassCondition::constant)) return true;
  const std::vector<size_t>& classes = parts_.classes[stream];
  return std::ranges::any_of(of_stream.constants, [&](const auto& by_set) {
    std::vector<Code> codes;
    for (size_t position = 0; position < classes.size(); ++position) {
      if ((by_set.first >> position & 1) == 0) continue;
      const auto condition =
          std::ranges::find(pattern.conditions(), classes[position], &ClassCondition::number);
      if (condition == pattern.conditions().end() || condition->low > condition->high) return false;
      codes.push_back(condition->low);
    }
    return by_set.second.contains(codes);
  });
}

}  // namespace streamjoin
