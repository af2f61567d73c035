// Rows that come behind the clocks: out of order even after order was restored as far as it was asked for.

#include "streamjoin/join/row_steps.h"

namespace streamjoin {

bool BinaryJoin::insert_behind(Side side, const RowBatch& batch, size_t at, Time clock, Results& results) {
  SideState& mine = sides_[side];
  SideState& theirs = sides_[other_side(side)];
  const Row row{batch.times[at], batch.keys[at], batch.ref(at)};
  ++mine.counters.rows_in;
  const bool null_key = batch.null_key != nullptr && batch.null_key[at] != 0;
  const bool promised =
      !null_key && mine.promises.any() && mine.promises.flag(row.key) != PunctuationFlag::kNone;
  if (promised || clock > options_.bounds.reach(side, row.time)) {
    ++mine.counters.late;
    return false;
  }
  if (null_key) {
    give_up(side, row.ref, results);
    return true;
  }
  const PunctuationFlag other_flag = theirs.promises.flag(row.key, theirs.rows.lists().find(row.key));
  if (other_flag == PunctuationFlag::kPropagated) {
    ++mine.counters.dropped_after_propagation;
    give_up(side, row.ref, results);
  } else {
    keep_or_let_go(side, row, true, false, other_flag, results);
  }
  // That its key changes says nothing in a clustered stream: the row is not where the others are.
  const Implies implies = options_.use_punctuations ? options_.sides[side].implies : Implies::kNothing;
  if (implies == Implies::kUnique && takes_punctuation(side, row.time))
    promise(side, row.key, row.time, true, results);
  for (SideState& state : sides_) state.rows.sweep();
  return true;
}

void BinaryJoin::give_up(Side side, RowRef row, Results& results) {
  if (preserves(options_.type, side)) emit(side, row, kNoRow, results);
}

}  // namespace streamjoin
