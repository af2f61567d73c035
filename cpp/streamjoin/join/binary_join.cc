#include "streamjoin/join/binary_join.h"

#include <algorithm>

#include "streamjoin/join/row_steps.h"

namespace streamjoin {
namespace {

constexpr size_t kBlock = 128;  // rows whose index slots and nodes are fetched together

PromiseOptions promise_options(const BinaryJoinOptions& options, Side side) {
  return {.lifespan = options.sides[side].lifespan, .codes_are_values = options.codes_are_values};
}

}  // namespace

BinaryJoin::BinaryJoin(BinaryJoinOptions options, KeyDictionary* dictionary)
    : options_(options),
      sides_{SideState(dictionary, promise_options(options, kLeft)),
             SideState(dictionary, promise_options(options, kRight))} {}

void BinaryJoin::push(Side side, const RowBatch& batch, Predicate* predicate, Results& results) {
  const bool can_refuse = options_.late == LatePolicy::kError || options_.violation == ViolationPolicy::kError;
  if (predicate != nullptr || can_refuse) {
    push_rehearsed(side, batch, predicate, results);
  } else {
    for (size_t begin = 0; begin < batch.times.size(); begin += kBlock) {
      push_block(side, batch, begin, std::min(begin + kBlock, batch.times.size()), results);
    }
  }
  sides_[side].counters.rows_in += batch.times.size();
  end_output_if_done(sides_[side].clock, results);
}

void BinaryJoin::push_block(Side side, const RowBatch& batch, size_t begin, size_t end, Results& results) {
  SideState& mine = sides_[side];
  SideState& theirs = sides_[other_side(side)];
  std::array<INode*, kBlock> own;
  std::array<INode*, kBlock> other;
  for (size_t i = begin; i < end; ++i) {
    theirs.rows.index().prefetch(batch.keys[i]);
    mine.rows.index().prefetch(batch.keys[i]);
  }
  for (size_t i = begin; i < end; ++i) {
    INode* found = theirs.rows.index().find(batch.keys[i]);
    if (found != nullptr && found->has_rows()) theirs.rows.prefetch(found->head);
    other[i - begin] = found;
    found = mine.rows.index().find(batch.keys[i]);
    if (found != nullptr && found->has_rows()) mine.rows.prefetch(found->tail());
    own[i - begin] = found;
  }
  const uint32_t own_generation = mine.rows.index().generation();
  const uint32_t other_generation = theirs.rows.index().generation();
  for (size_t i = begin; i < end; ++i) {
    const Row row{batch.times[i], batch.keys[i], {batch.number, static_cast<uint32_t>(i)}};
    const bool null_key = batch.null_key != nullptr && batch.null_key[i] != 0;
    const auto bounds_probe = [&](INode& key, Time first, Time last, auto&& on_match) {
      const bool stop_early = theirs.rows.in_time_order();
      theirs.rows.walk(key, [&](uint32_t, TNode& node) {
        if (node.time > last) return stop_early ? Visit::kStop : Visit::kKeep;
        return node.time < first ? Visit::kKeep : on_match(node);
      });
    };
    process(side, row, null_key, {own[i - begin], own_generation}, {other[i - begin], other_generation}, bounds_probe, results);
  }
  mine.rows.sweep();
  theirs.rows.sweep();
}

void BinaryJoin::advance(Side side, Time clock, Results& results) {
  if (clock > sides_[side].clock) raise_clock(side, clock, results);
  settle(clock, results);
}

void BinaryJoin::raise_clock(Side side, Time clock, Results& results) {
  const Side other = other_side(side);
  sides_[side].clock = clock;
  if (options_.sides[side].lifespan != kEnd) sides_[side].promises.expire(clock);
  if (!options_.use_windows && clock != kEnd) return;
  sides_[other].rows.invalidate_before(options_.bounds.forget_before(side, clock), [&](TNode& node) {
    ++sides_[other].counters.invalidated;
    after_row_left(other, node, results);
  });
}

void BinaryJoin::after_row_left(Side side, const TNode& node, Results& results) {
  emit_if_unmatched(side, node, results);
  if (node.is(TNode::kLastPromised)) close_if_empty(side, node.key, results);
}

void BinaryJoin::store(Side side, const Row& row, bool late, bool matched, INode* own) {
  WindowState& rows = sides_[side].rows;
  const uint32_t index =
      late ? rows.insert_late(row.time, row.key, row.ref) : rows.insert(row.time, row.key, row.ref, own);
  if (matched) rows.node(index).mark(TNode::kMatched);
  Promises& promises = sides_[side].promises;
  if (!promises.any()) return;
  // Only a violation that is kept gets here with a flag.
  INode& key = *rows.index().find(row.key);
  if (promises.flag(row.key, &key) != PunctuationFlag::kNone) promises.reopen(key);
}

void BinaryJoin::finish(Time time, Results& results) {
  for (const Side side : {kLeft, kRight}) {
    leave_cluster(side);
    sides_[side].rows.invalidate_before(kEnd, [&](TNode& node) {
      ++sides_[side].counters.purged;
      emit_if_unmatched(side, node, results);
    });
    sides_[side].promises.clear();
    sides_[side].rows.sweep_all();
    sides_[side].clock = kEnd;
    sides_[side].ended = true;
  }
  output_ended_ = false;  // a stream that ended early may have said it before; the last word is said all the same
  end_output_if_done(time, results);
}

void BinaryJoin::settle(Time time, Results& results) {
  for (SideState& side : sides_) side.rows.sweep();
  end_output_if_done(time, results);
}

void BinaryJoin::emit(Side side, RowRef row, RowRef partner, Results& results) {
  results.rows.push_back(side == kLeft ? ResultRow{row, partner} : ResultRow{partner, row});
  ++rows_out_;
}

void BinaryJoin::emit_if_unmatched(Side side, const TNode& node, Results& results) {
  if (preserves(options_.type, side) && !node.is(TNode::kMatched)) emit(side, node.row(), kNoRow, results);
}

size_t BinaryJoin::memory_bytes() const {
  size_t bytes = 0;
  for (const SideState& side : sides_) bytes += side.rows.memory_bytes() + side.promises.memory_bytes();
  return bytes;
}

std::string BinaryJoin::validate() const {
  for (const SideState& side : sides_) {
    if (const std::string broken = side.rows.validate(); !broken.empty()) return broken;
    if (const std::string broken = side.promises.validate(); !broken.empty()) return broken;
  }
  return {};
}

void BinaryJoin::save(ArchiveWriter& out) {
  for (SideState& side : sides_) {
    out.value(side.clock);
    out.value(side.ended);
    out.value(side.has_previous_key);
    out.value(side.previous_key);
    const SideCounters& counters = side.counters;
    for (const uint64_t counter :
         {counters.rows_in, counters.punctuations_in, counters.purged, counters.invalidated, counters.discarded_on_the_fly,
          counters.dropped_after_propagation, counters.violations, counters.late}) {
      out.value(counter);
    }
    side.rows.save(out);
    side.promises.save(out);
  }
  out.value(output_ended_);
  out.value(rows_out_);
  for (const uint64_t count : punctuations_out_) out.value(count);
}

void BinaryJoin::load(ArchiveReader& in) {
  for (SideState& side : sides_) {
    side.clock = in.value<Time>();
    side.ended = in.value<bool>();
    side.has_previous_key = in.value<bool>();
    side.previous_key = in.value<Code>();
    SideCounters& counters = side.counters;
    for (uint64_t* counter :
         {&counters.rows_in, &counters.punctuations_in, &counters.purged, &counters.invalidated,
          &counters.discarded_on_the_fly, &counters.dropped_after_propagation, &counters.violations, &counters.late}) {
      *counter = in.value<uint64_t>();
    }
    side.rows.load(in);
    side.promises.load(in);
    if (side.has_previous_key) side.rows.hold_key(side.previous_key);
  }
  output_ended_ = in.value<bool>();
  rows_out_ = in.value<uint64_t>();
  for (uint64_t& count : punctuations_out_) count = in.value<uint64_t>();
}

}  // namespace streamjoin
