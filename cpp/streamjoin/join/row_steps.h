// The steps of one row through BinaryJoin, shared by the direct path (probe the state) and the rehearsed one (matches are known).
// Included by the two sources that instantiate them, nowhere else.

#pragma once

#include <algorithm>

#include "streamjoin/join/binary_join.h"

namespace streamjoin {

inline INode* BinaryJoin::Found::resolve(INodeIndex& index, Code key) const {
  if (node == nullptr) return nullptr;
  if (generation == index.generation() && index.still_holds(node, key)) return node;
  return index.find(key);
}

template <typename ForEachMatch>
inline void BinaryJoin::process(Side side, const Row& row, bool null_key, Found own_found, Found other_found,
                                ForEachMatch&& for_each_match, Results& results) {
  SideState& mine = sides_[side];
  SideState& theirs = sides_[other_side(side)];

  const bool late = row.time < mine.clock;
  if (late) {
    ++mine.counters.late;
    if (options_.late != LatePolicy::kInsert) {
      results.late.push_back({side, row.ref, subtract_saturating(mine.clock, row.time)});
      return;
    }
  } else if (row.time > mine.clock) {
    raise_clock(side, row.time, results);
  }

  if (null_key) {
    if (preserves(options_.type, side)) emit(side, row.ref, kNoRow, results);
    return;
  }

  // A key this stream did not know when the block began may have come with an earlier row of the block.
  INodeIndex& own_index = mine.rows.index();
  INode* own = own_found.node != nullptr ? own_found.resolve(own_index, row.key) : nullptr;
  if (mine.promises.any()) {
    own = own_index.find(row.key);
    if (mine.promises.flag(row.key, own) != PunctuationFlag::kNone) {
      ++mine.counters.violations;
      if (options_.violation != ViolationPolicy::kKeep) {
        results.violations.push_back({side, row.ref, 0});
        return;
      }
    }
  }

  const Implies implies = options_.sides[side].implies;
  if (implies != Implies::kNothing && options_.use_punctuations) {
    if (implies == Implies::kClustered) enter_cluster(side, row, results);
    own = nullptr;  // the promise may have moved I-Nodes of this stream
  }

  INode* other = other_found.resolve(theirs.rows.index(), row.key);
  const PunctuationFlag other_flag = theirs.promises.flag(row.key, other);
  if (other_flag == PunctuationFlag::kPropagated) {
    ++mine.counters.dropped_after_propagation;
    if (preserves(options_.type, side)) emit(side, row.ref, kNoRow, results);
  } else {
    const bool matched = other != nullptr && probe(side, row, *other, for_each_match, results);
    keep_or_let_go(side, row, late, matched, other_flag, own, results);
  }

  if (implies == Implies::kUnique) {
    if (takes_punctuation(side, row.time)) promise(side, row.key, row.time, true, results);
  }
}

template <typename ForEachMatch>
inline bool BinaryJoin::probe(Side side, const Row& row, INode& other, ForEachMatch&& for_each_match, Results& results) {
  SideState& theirs = sides_[other_side(side)];
  const Time first = options_.bounds.first(side, std::max(row.time, sides_[side].clock));
  const Time last = options_.bounds.reach(side, row.time);
  const JoinType type = options_.type;
  bool matched = false;
  if (first_match_decides(type)) {
    const bool emits = type == JoinType::kLeftSemi;
    const PunctuationFlag flag = other.flag();
    for_each_match(other, first, last, [&](TNode& node) {
      if (emits && (side == kRight || !matched)) {
        emit(kLeft, side == kRight ? node.row() : row.ref, kNoRow, results);
      }
      matched = true;
      return side == kRight ? Visit::kTakeOut : Visit::kStop;
    });
    if (flag == PunctuationFlag::kPunctuated) {
      close_if_empty(other_side(side), row.key, results);
      return matched;
    }
  } else {
    const bool remember_match = preserves(type, other_side(side));
    for_each_match(other, first, last, [&](TNode& node) {
      matched = true;
      if (remember_match) node.mark(TNode::kMatched);
      emit(side, row.ref, node.row(), results);
      return Visit::kKeep;
    });
  }
  if (!other.has_rows()) theirs.rows.remove_if_idle(&other);
  return matched;
}

inline void BinaryJoin::keep_or_let_go(Side side, const Row& row, bool late, bool matched, PunctuationFlag other_flag, INode* own,
                                       Results& results) {
  const SideState& theirs = sides_[other_side(side)];
  const bool decided = matched && side == kLeft && first_match_decides(options_.type);
  if (other_flag == PunctuationFlag::kPunctuated) {
    ++sides_[side].counters.discarded_on_the_fly;
  } else if (!decided && can_match_later(side, row.time, theirs.clock)) {
    store(side, row, late, matched, own);
    return;
  }
  if (!matched && preserves(options_.type, side)) emit(side, row.ref, kNoRow, results);
}

inline bool BinaryJoin::can_match_later(Side side, Time time, Time other_clock) const {
  if (options_.bounds.empty() || other_clock == kEnd) return false;
  return !options_.use_windows || other_clock <= options_.bounds.reach(side, time);
}

}  // namespace streamjoin
