// MultiPunctuations, when promises are forgotten: once the streams with equal columns have answered them by
// promising the same values, and store no row of these, nobody waits for them any more.

#include <algorithm>
#include <bit>
#include <limits>

#include "streamjoin/join/class_pattern.h"
#include "streamjoin/join/multi_punctuations.h"

namespace streamjoin {

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

}  // namespace streamjoin
