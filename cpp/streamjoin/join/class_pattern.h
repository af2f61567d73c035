// ClassPattern: a promise as the states of all streams see it: conditions on attribute classes, with the
// codes that the values have now.
//
//   (x = 5, y in "a".."f")   ->   class 0: code 5      class 3: compare bytes
//
// A constant that no dictionary knows matches nothing that is stored. Codes may be given to other keys once
// rows go, so a pattern is made for one call and forgotten. Borrows the pattern it is made of.

#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "streamjoin/base/hash.h"
#include "streamjoin/join/chained_purge.h"
#include "streamjoin/join/stream_promises.h"

namespace streamjoin {

struct ClassCondition {
  size_t number;  // of the class
  const AttributePattern* pattern;
  const KeyDictionary* dictionary;  // nullptr: codes are values
  bool by_code;                     // low .. high decides
  bool constant;
  Code low = 0;
  Code high = -1;

  bool matches(Code code) const {
    if (by_code) return low <= code && code <= high;
    return pattern->matches(dictionary->bytes(code));
  }
};

class ClassPattern {
 public:
  /// `pattern` has one attribute for each of `classes`; `dictionaries` are by class.
  ClassPattern(const KeyPattern& pattern, const std::vector<size_t>& classes,
               const std::vector<const KeyDictionary*>& dictionaries) {
    for (size_t position = 0; position < classes.size(); ++position) {
      const AttributePattern& attribute = pattern.attributes[position];
      if (attribute.kind == AttributePattern::Kind::kAny) continue;
      const bool constant = attribute.kind == AttributePattern::Kind::kConstant;
      const KeyDictionary* dictionary = dictionaries[classes[position]];
      ClassCondition condition{classes[position], &attribute, dictionary, dictionary == nullptr || constant,
                               constant};
      if (dictionary == nullptr) {
        const CodeRange range = code_range(attribute);
        condition.low = range.low;
        condition.high = range.high;
      } else if (constant) {
        const Code code = dictionary->find(attribute.low, hash_bytes(attribute.low));
        if (code != kNoCode) condition.low = condition.high = code;
      }
      conditions_.push_back(condition);
    }
    // The search for rows starts at the first condition: a constant, if there is one.
    std::ranges::stable_sort(conditions_,
                             [](const auto& a, const auto& b) { return a.constant > b.constant; });
  }

  const std::vector<ClassCondition>& conditions() const { return conditions_; }
  const ClassCondition& first() const { return conditions_.front(); }

  /// Calls `visit(node)` for the live rows of a stream whose key at `position` meets `condition`.
  template <typename Visit>
  static void rows(const StreamState& state, size_t position, const ClassCondition& condition,
                   Visit&& visit) {
    if (condition.by_code && condition.low > condition.high) return;
    if (condition.by_code && condition.low == condition.high) {
      ChainedPurge::rows_with(state, position, condition.low, visit);
    } else if (!state.indexed()) {
      for (const StreamState::Timed& entry : state.all()) {
        if (state.is_live(entry.node) && condition.matches(state.key(position, entry.node)))
          visit(entry.node);
      }
    } else if (condition.by_code) {
      for (const Code code : state.keys_between(position, condition.low, condition.high))
        state.look(position, code, visit);
    } else {
      state.for_each_key(position, [&](Code code) {
        if (condition.matches(code)) state.look(position, code, visit);
      });
    }
  }

  /// How many live rows of a stream match; all conditions that are not on its `classes` are left out. At most
  /// `enough` are counted.
  size_t count(const StreamState& state, const std::vector<size_t>& classes, size_t enough) const {
    size_t found = 0;
    const auto position_of = [&](size_t number) {
      return static_cast<size_t>(std::ranges::find(classes, number) - classes.begin());
    };
    const auto first = std::ranges::find_if(
        conditions_, [&](const auto& condition) { return position_of(condition.number) < classes.size(); });
    if (first == conditions_.end()) return 0;
    rows(state, position_of(first->number), *first, [&](uint32_t node) {
      if (found >= enough) return;
      for (const ClassCondition& condition : conditions_) {
        const size_t position = position_of(condition.number);
        if (position < classes.size() && !condition.matches(state.key(position, node))) return;
      }
      ++found;
    });
    return found;
  }

 private:
  std::vector<ClassCondition> conditions_;
};

}  // namespace streamjoin
