// The steps of one row through BinaryJoin, shared by the direct path (probe the state) and the rehearsed one
// (matches are known). Included by the sources of BinaryJoin, nowhere else.

#pragma once

#include <algorithm>

#include "streamjoin/join/binary_join.h"

namespace streamjoin {

template <typename ForEachMatch>
inline void BinaryJoin::process(Side side, const Row& row, bool null_key, FoundKey found,
                                ForEachMatch&& for_each_match, Results& results) {
  SideState& mine = sides_[side];
  SideState& theirs = sides_[other_side(side)];

  const bool late = row.time < mine.clock;
  if (late) [[unlikely]] {
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
  if (mine.promises.any() && mine.promises.flag(row.key) != PunctuationFlag::kNone) {
    ++mine.counters.violations;
    if (options_.violation != ViolationPolicy::kKeep) {
      results.violations.push_back({side, row.ref, 0});
      return;
    }
  }
  const Implies implies = options_.use_punctuations ? options_.sides[side].implies : Implies::kNothing;
  if (implies == Implies::kClustered) enter_cluster(side, row, results);

  // The other stream gains no keys while this one is pushed, but a key may have gone or moved since it was
  // found.
  ValueListIndex& other_index = theirs.rows.lists();
  ValueList* other = found.list;
  if (other != nullptr && found.moves != other_index.moves()) other = other_index.find(row.key);
  const PunctuationFlag other_flag = theirs.promises.flag(row.key, other);
  if (other_flag == PunctuationFlag::kPropagated) {
    ++mine.counters.dropped_after_propagation;
    if (preserves(options_.type, side)) emit(side, row.ref, kNoRow, results);
  } else {
    const bool matched = other != nullptr && probe(side, row, *other, for_each_match, results);
    keep_or_let_go(side, row, late, matched, other_flag, results);
  }

  if (implies == Implies::kUnique && takes_punctuation(side, row.time))
    promise(side, row.key, row.time, true, results);
}

template <typename ForEachMatch>
inline bool BinaryJoin::probe(Side side, const Row& row, ValueList& other, ForEachMatch&& for_each_match,
                              Results& results) {
  SideState& theirs = sides_[other_side(side)];
  const Time first = options_.bounds.first(side, std::max(row.time, sides_[side].clock));
  const Time last = options_.bounds.reach(side, row.time);
  const JoinType type = options_.type;
  bool matched = false;
  if (first_match_decides(type)) {
    const bool emits = type == JoinType::kLeftSemi;
    const bool promised = other.promised();
    for_each_match(other, first, last, [&](TNode& node) {
      if (emits && (side == kRight || !matched)) {
        emit(kLeft, side == kRight ? node.row() : row.ref, kNoRow, results);
      }
      matched = true;
      return side == kRight ? Visit::kTakeOut : Visit::kStop;
    });
    if (promised) {
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
  if (!other.has_rows()) theirs.rows.remove_if_idle(&other, row.key);
  return matched;
}

inline void BinaryJoin::keep_or_let_go(Side side, const Row& row, bool late, bool matched,
                                       PunctuationFlag other_flag, Results& results) {
  SideState& mine = sides_[side];
  const bool decided = matched && side == kLeft && first_match_decides(options_.type);
  if (other_flag == PunctuationFlag::kPunctuated) {
    ++mine.counters.discarded_on_the_fly;
  } else if (!decided && can_match_later(side, row.time, sides_[other_side(side)].clock)) {
    store(side, row, late, matched);
    return;
  }
  if (!matched && preserves(options_.type, side)) emit(side, row.ref, kNoRow, results);
}

inline void BinaryJoin::store(Side side, const Row& row, bool late, bool matched) {
  WindowState& rows = sides_[side].rows;
  const uint32_t index =
      late ? rows.insert_late(row.time, row.key, row.ref) : rows.insert(row.time, row.key, row.ref);
  if (matched) rows.node(index).mark(TNode::kMatched);
  Promises& promises = sides_[side].promises;
  if (!promises.any()) return;
  // Only a violation that is kept gets here with a flag.
  ValueList& list = *rows.lists().find(row.key);
  if (promises.flag(row.key, &list) != PunctuationFlag::kNone) promises.reopen(list, row.key);
}

inline void BinaryJoin::raise_clock(Side side, Time clock, Results& results) {
  const Side other = other_side(side);
  sides_[side].clock = clock;
  if (options_.sides[side].lifespan != kEnd) sides_[side].promises.expire(clock);
  if (!options_.use_windows && clock != kEnd) return;
  sides_[other].rows.invalidate_before(options_.bounds.forget_before(side, clock), [&](TNode& node) {
    ++sides_[other].counters.invalidated;
    after_row_left(other, node, results);
  });
}

inline void BinaryJoin::after_row_left(Side side, const TNode& node, Results& results) {
  emit_if_unmatched(side, node, results);
  if (node.is(TNode::kLastPromised)) close_if_empty(side, node.key, results);
}

inline void BinaryJoin::emit(Side side, RowRef row, RowRef partner, Results& results) {
  results.rows.push_back(side == kLeft ? ResultRow{row, partner} : ResultRow{partner, row});
  ++rows_out_;
}

inline void BinaryJoin::emit_if_unmatched(Side side, const TNode& node, Results& results) {
  if (preserves(options_.type, side) && !node.is(TNode::kMatched)) emit(side, node.row(), kNoRow, results);
}

inline bool BinaryJoin::can_match_later(Side side, Time time, Time other_clock) const {
  if (options_.bounds.empty() || other_clock == kEnd) return false;
  return !options_.use_windows || other_clock <= options_.bounds.reach(side, time);
}

}  // namespace streamjoin
