// The punctuation half of BinaryJoin: purge, remember, propagate.

#include <algorithm>

#include "streamjoin/join/row_steps.h"

namespace streamjoin {
namespace {

constexpr Code kSmallestCode = std::numeric_limits<Code>::min();
constexpr Code kLargestCode = std::numeric_limits<Code>::max();

}  // namespace

void BinaryJoin::punctuate(Side side, Code key, Time time, Results& results) {
  if (takes_punctuation(side, time)) {
    prefetch(key);
    promise(side, key, time, true, results);
  }
  settle(time, results);
}

// The dead rows it leaves are for the sweep behind the block.
void BinaryJoin::take_with_rows(Side side, const KeyPunctuation& punctuation, Results& results) {
  const bool any_ended = sides_[kLeft].ended || sides_[kRight].ended;
  if (any_ended) end_output_if_done(sides_[side].clock, results);
  if (takes_punctuation(side, punctuation.time))
    promise(side, punctuation.key, punctuation.time, true, results);
  if (any_ended) end_output_if_done(punctuation.time, results);
}

void BinaryJoin::prefetch(Code key) const {
  const uint64_t hash = hash_code(key);
  for (const SideState& side : sides_) {
    side.rows.lists().prefetch(hash);
    side.promises.prefetch(hash);
  }
}

void BinaryJoin::punctuate_range(Side side, Code low, Code high, Time time, Results& results) {
  if (low <= high && takes_punctuation(side, time)) promise_range(side, low, high, time, true, results);
  settle(time, results);
}

void BinaryJoin::punctuate_by_pattern(Side side, Code key, Time time, Results& results) {
  SideState& mine = sides_[side];
  const Side other = other_side(side);
  const Time expires = mine.promises.expiry_of(time);
  ValueList* theirs = sides_[other].rows.lists().find(key);
  const PunctuationFlag other_flag = sides_[other].promises.flag(key, theirs);
  purge(other, key, theirs, results);
  if (other_flag != PunctuationFlag::kNone) {
    promise_by_both(side, key, other_flag, time, results);
  } else if (ValueList* list = mine.rows.lists().find(key); list != nullptr) {
    if (mine.rows.has_live_rows(*list)) {
      mine.promises.remember(key, list, expires);
    } else {
      mine.rows.remove_if_idle(list, key);  // the look for live rows let go of the dead ones
    }
  }
  mine.promises.cover(key, key, expires);
}

void BinaryJoin::end(Side side, Time time, Results& results) {
  if (!options_.use_punctuations || sides_[side].ended) return;
  const Side other = other_side(side);
  // In time order, not key by key: the order of unmatched rows must not depend on how codes were handed out.
  sides_[other].rows.invalidate_before(kEnd, [&](TNode& node) {
    ++sides_[other].counters.purged;
    emit_if_unmatched(other, node, results);
  });
  promise_range(side, kSmallestCode, kLargestCode, kEnd, false, results);
  sides_[side].promises.cover_everything();
  leave_cluster(side);
  sides_[side].clock = kEnd;
  sides_[side].ended = true;
  settle(time, results);
}

// A promise that has outlived its lifespan when it comes says nothing about the rows of today.
bool BinaryJoin::takes_punctuation(Side side, Time time) const {
  return options_.use_punctuations && sides_[side].clock <= sides_[side].promises.expiry_of(time);
}

void BinaryJoin::enter_cluster(Side side, const Row& row, Results& results) {
  SideState& mine = sides_[side];
  if (mine.has_previous_key && mine.previous_key == row.key) return;
  if (mine.has_previous_key && takes_punctuation(side, row.time)) {
    promise(side, mine.previous_key, row.time, true, results);
  }
  leave_cluster(side);
  mine.has_previous_key = true;
  mine.previous_key = row.key;
  mine.rows.hold_key(row.key);
}

void BinaryJoin::leave_cluster(Side side) {
  SideState& mine = sides_[side];
  if (mine.has_previous_key) mine.rows.let_key_go(mine.previous_key);
  mine.has_previous_key = false;
}

void BinaryJoin::purge(Side side, Code key, ValueList* list, Results& results) {
  if (list == nullptr) return;
  SideState& theirs = sides_[side];
  theirs.counters.purged +=
      theirs.rows.purge(*list, [&](TNode& row) { emit_if_unmatched(side, row, results); });
  theirs.rows.remove_if_idle(list, key);
}

void BinaryJoin::promise(Side side, Code key, Time time, bool announce, Results& results) {
  SideState& mine = sides_[side];
  const Side other = other_side(side);
  if (sides_[other].promises.is_closed(key)) {  // no live row to purge: the rows need not be asked
    promise_by_both(side, key, PunctuationFlag::kPropagated, time, results);
    return;
  }
  ValueList* theirs = sides_[other].rows.lists().find(key);
  const PunctuationFlag other_flag = sides_[other].promises.flag(key, theirs);
  purge(other, key, theirs, results);
  if (other_flag != PunctuationFlag::kNone) {
    promise_by_both(side, key, other_flag, time, results);
    return;
  }
  ValueList* list = mine.rows.lists().find(key);
  const bool is_new = mine.promises.flag(key, list) == PunctuationFlag::kNone;
  if (!is_new && options_.sides[side].lifespan == kEnd) return;
  const PunctuationFlag flag = mine.promises.remember(key, list, mine.promises.expiry_of(time));
  if (is_new && announce && flag == PunctuationFlag::kPropagated &&
      closing_ends_results(options_.type, side)) {
    propagate(PropagationKind::kImmediate, key, key, time, results);
  }
}

// Both streams have promised the key, so neither promise has a row left to act on: both are forgotten.
void BinaryJoin::promise_by_both(Side side, Code key, PunctuationFlag other_flag, Time time,
                                 Results& results) {
  const Side other = other_side(side);
  const bool announced =
      other_flag == PunctuationFlag::kPropagated && closing_ends_results(options_.type, other);
  if (!announced) propagate(PropagationKind::kRegular, key, key, time, results);
  sides_[other].promises.forget(key);
  SideState& mine = sides_[side];
  if (mine.promises.is_closed(key) || mine.promises.is_open(key)) mine.promises.forget(key);
}

void BinaryJoin::promise_range(Side side, Code low, Code high, Time time, bool announce, Results& results) {
  SideState& mine = sides_[side];
  const Side other = other_side(side);
  SideState& theirs = sides_[other];
  const Time expires = mine.promises.expiry_of(time);
  RangeSet remembered;  // what this stream alone promises from now on
  remembered.insert(low, high);

  for (const Code key : theirs.promises.keys_between(low, high)) {
    ValueList* list = theirs.rows.lists().find(key);
    const PunctuationFlag flag = theirs.promises.flag(key, list);
    purge(other, key, list, results);
    if (flag == PunctuationFlag::kNone) continue;
    promise_by_both(side, key, flag, time, results);
    remembered.erase(key, key);
  }
  for (const auto& [first, last] : theirs.promises.covered_parts(low, high)) {
    if (options_.codes_are_values && !closing_ends_results(options_.type, other)) {
      propagate(PropagationKind::kRegular, first, last, time, results);
    }
    remembered.erase(first, last);
    if (options_.codes_are_values) theirs.promises.uncover(first, last);
  }

  RangeSet news = remembered;  // what was not propagated before and has no row that could still match
  for (const auto& [first, last] : mine.promises.covered_parts(low, high)) news.erase(first, last);
  for (const Code key : mine.promises.keys_between(low, high)) {
    ValueList* list = mine.rows.lists().find(key);
    if (list != nullptr && mine.rows.has_live_rows(*list)) {
      news.erase(key, key);
      if (remembered.contains(key)) mine.promises.remember(key, list, expires);
    } else if (mine.promises.is_closed(key)) {
      news.erase(key, key);
      if (options_.sides[side].lifespan == kEnd || !remembered.contains(key)) {
        mine.promises.forget(key);  // the range remembers it
      } else {
        mine.promises.remember(key, expires);  // the key's own promise may be the one that lasts longer
      }
    } else {
      mine.rows.remove_if_idle(list, key);
    }
  }
  if (time != kEnd)
    remembered.for_each([&](Code first, Code last, Time) { mine.promises.cover(first, last, expires); });
  if (!announce || !closing_ends_results(options_.type, side)) return;
  news.for_each([&](Code first, Code last, Time) {
    propagate(PropagationKind::kImmediate, first, last, time, results);
  });
}

void BinaryJoin::close_if_empty(Side side, Code key, Results& results) {
  SideState& mine = sides_[side];
  ValueList* list = mine.rows.lists().find(key);
  if (list == nullptr || !list->promised()) return;
  if (mine.rows.has_live_rows(*list)) {
    mine.rows.mark_last_promised(*list);
    return;
  }
  if (closing_ends_results(options_.type, side)) {
    propagate(PropagationKind::kEarly, key, key, sides_[other_side(side)].clock, results);
  }
  mine.promises.close(*list, key);
}

// Once a stream has ended and stores no row, a join that needs its rows has no further result at all.
void BinaryJoin::end_output_if_done(Time time, Results& results) {
  if (output_ended_) return;
  const bool both = sides_[kLeft].ended && sides_[kRight].ended;
  bool done = both;
  for (const Side side : {kLeft, kRight}) {
    done |=
        sides_[side].ended && sides_[side].rows.live_rows() == 0 && closing_ends_results(options_.type, side);
  }
  if (!done) return;
  output_ended_ = true;
  const PropagationKind kind = both ? PropagationKind::kRegular : PropagationKind::kEarly;
  ++punctuations_out_[static_cast<size_t>(kind)];
  results.punctuations.push_back({kind, true, 0, 0, time, kEnd});
}

void BinaryJoin::propagate(PropagationKind kind, Code low, Code high, Time time, Results& results) {
  ++punctuations_out_[static_cast<size_t>(kind)];
  results.punctuations.push_back({kind, false, low, high, time, promised_until(time)});
}

Time BinaryJoin::promised_until(Time time) const {
  return std::min(end_of(time, options_.sides[kLeft].lifespan),
                  end_of(time, options_.sides[kRight].lifespan));
}

}  // namespace streamjoin
