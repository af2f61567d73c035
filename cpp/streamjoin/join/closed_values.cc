// MultiPunctuations, the second half: what promises say about the results, and when they are forgotten.
//
// A value is closed in the output once a stream has promised it and stores no row of it: that stream's part
// is missing from every result to come. It need not be promised by all: rows of it that are stored may meet
// rows to come of streams that do not have its class.

#include <algorithm>
#include <bit>
#include <limits>

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

// The part of a pattern that speaks of classes which the other stream has, too.
KeyPattern MultiPunctuations::translated(size_t from, const KeyPattern& pattern, size_t to) const {
  KeyPattern theirs{std::vector<AttributePattern>(parts_.classes[to].size())};
  for (size_t position = 0; position < pattern.attributes.size(); ++position) {
    const auto at = std::ranges::find(parts_.classes[to], parts_.classes[from][position]);
    if (at != parts_.classes[to].end())
      theirs.attributes[static_cast<size_t>(at - parts_.classes[to].begin())] = pattern.attributes[position];
  }
  return theirs;
}

// All are found before any is forgotten: promises that answer each other go together.
void MultiPunctuations::forget_answered() {
  std::vector<std::pair<size_t, KeyPattern>> forgotten;
  for (size_t stream = 0; stream < promises_.size(); ++stream) {
    promises_[stream].for_each_pattern([&](const KeyPattern& pattern) {
      if (answered(stream, pattern)) forgotten.emplace_back(stream, pattern);
    });
  }
  for (size_t number = 0; number < parts_.dictionaries.size(); ++number) {
    if (parts_.dictionaries[number] == nullptr) forget_answered_codes(number);
  }
  for (const auto& [stream, pattern] : forgotten) promises_[stream].forget(pattern);
  held_then_ = 0;
  for (const StreamPromises& promises : promises_) held_then_ += promises.held();
  since_forgetting_ = 0;
}

// Codes that every stream of an integer class has promised, and of which none stores a row.
void MultiPunctuations::forget_answered_codes(size_t number) {
  std::vector<std::pair<RangeSet*, const StreamState*>> sets;
  std::vector<std::pair<Code, Code>> common{
      {std::numeric_limits<Code>::min(), std::numeric_limits<Code>::max()}};
  std::vector<std::pair<const StreamState*, size_t>> holders;
  for (size_t stream = 0; stream < promises_.size(); ++stream) {
    const std::vector<size_t>& classes = parts_.classes[stream];
    const auto position = static_cast<size_t>(std::ranges::find(classes, number) - classes.begin());
    if (position == classes.size()) continue;
    holders.emplace_back(parts_.states[stream], position);
    if (parts_.clocks[stream] == kEnd) continue;
    RangeSet* codes = promises_[stream].codes_of(position);
    if (codes == nullptr || codes->empty()) return;
    sets.emplace_back(codes, parts_.states[stream]);
    std::vector<std::pair<Code, Code>> narrowed;
    for (const auto& [low, high] : common) {
      const auto parts = codes->intersection(low, high);
      narrowed.insert(narrowed.end(), parts.begin(), parts.end());
    }
    common = std::move(narrowed);
  }
  const auto forget = [&](Code low, Code high) {
    for (const auto& [codes, state] : sets) codes->erase(low, high);
  };
  for (const auto& [low, high] : common) {
    std::vector<Code> stored;
    for (const auto& [state, position] : holders) {
      AttributePattern pattern = pattern_of({low, high});
      const ClassCondition condition{number, &pattern, nullptr, true, low == high, low, high};
      ClassPattern::rows(*state, position, condition, [&, at = position, rows = state](uint32_t node) {
        stored.push_back(rows->key(at, node));
      });
    }
    std::ranges::sort(stored);
    Code from = low;
    bool past_all = false;
    for (const Code code : stored) {
      if (code > from) forget(from, code - 1);
      past_all = code == high;
      if (!past_all) from = std::max(from, code + 1);
    }
    if (!past_all) forget(from, high);
  }
}

bool MultiPunctuations::answered(size_t stream, const KeyPattern& pattern) const {
  const auto answers = [&](size_t other) {
    if (other == stream) return true;
    const KeyPattern theirs = translated(stream, pattern, other);
    if (parts_.clocks[other] != kEnd && !promises_[other].contains(theirs)) return false;
    const ClassPattern compiled(theirs, parts_.classes[other], parts_.dictionaries);
    return compiled.count(*parts_.states[other], parts_.classes[other], 1) == 0;
  };
  for (size_t position = 0; position < pattern.attributes.size(); ++position) {
    if (pattern.attributes[position].kind == AttributePattern::Kind::kAny) continue;
    uint64_t others = chain_.streams_of(parts_.classes[stream][position]);
    bool by_all = true;
    for (; others != 0 && by_all; others &= others - 1)
      by_all = answers(static_cast<size_t>(std::countr_zero(others)));
    if (by_all) return true;
  }
  return false;
}

size_t MultiPunctuations::memory_bytes() const {
  size_t bytes = witnesses_.memory_bytes();
  for (const StreamPromises& promises : promises_) bytes += promises.memory_bytes();
  return bytes;
}

std::string MultiPunctuations::validate() {
  for (const StreamPromises& promises : promises_) {
    if (std::string broken = promises.validate(); !broken.empty()) return broken;
  }
  if (std::string broken = witnesses_.validate(); !broken.empty()) return broken;
  if (options_.purge != PurgeMode::kEager || ended_) return {};
  for (uint32_t stream = 0; stream < parts_.states.size(); ++stream) {
    for (const StreamState::Timed& entry : parts_.states[stream]->all()) {
      if (!parts_.states[stream]->is_live(entry.node)) continue;
      if (chain_.may_go(stream, entry.node)) return "join: a row is stored that punctuations let go";
      bool live = true;
      witnesses_.for_each_member({stream, entry.node}, [&](Member member) {
        live &= parts_.states[member.stream]->is_live(member.node);
      });
      if (!live) return "join: a row waits for one that has left";
    }
  }
  return {};
}

void MultiPunctuations::save(ArchiveWriter& out) const {
  out.value<uint8_t>(ended_);
  for (size_t stream = 0; stream < promises_.size(); ++stream) {
    promises_[stream].save(out);
    out.value<uint8_t>(clusters_[stream].has_value());
    if (clusters_[stream]) clusters_[stream]->save(out);
    std::vector<const Pending*> pending;
    for (const auto& [set, by_codes] : pending_[stream].constants) {
      for (const auto& [codes, each] : by_codes) pending.push_back(&each);
    }
    for (const Pending& each : pending_[stream].others) pending.push_back(&each);
    out.value<uint64_t>(pending.size());
    for (const Pending* each : pending) {
      each->pattern.save(out);
      out.value<uint64_t>(each->open);
      out.value(each->until);
    }
  }
}

void MultiPunctuations::load(ArchiveReader& in) {
  ended_ = in.value<uint8_t>() != 0;
  const auto load_pattern = [&](size_t stream) {
    KeyPattern pattern;
    pattern.load(in);
    if (pattern.attributes.size() != parts_.classes[stream].size() || pattern.is_any())
      throw DamagedArchive("a promise of another number of attributes");
    return pattern;
  };
  for (size_t stream = 0; stream < promises_.size(); ++stream) {
    promises_[stream].load(in);
    if (in.value<uint8_t>() != 0) clusters_[stream] = load_pattern(stream);
    for (uint64_t left = in.value<uint64_t>(); left > 0; --left) {
      Pending pending{load_pattern(stream), 0, 0};
      pending.open = in.value<uint64_t>();
      pending.until = in.value<Time>();
      if (pending.open == 0) throw DamagedArchive("a promise waits for no row");
      wait_to_close(stream, std::move(pending));
    }
  }
  for (const StreamPromises& promises : promises_) held_then_ += promises.held();
  if (options_.purge != PurgeMode::kEager || ended_) return;
  queue_all();
  judge_queued();
}

}  // namespace streamjoin
