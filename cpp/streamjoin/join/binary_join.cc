#include "streamjoin/join/binary_join.h"

#include <algorithm>

#include "streamjoin/join/row_steps.h"

namespace streamjoin {
namespace {

constexpr size_t kBlock = 128;  // rows whose index slots and nodes are fetched together

/// Visits the rows of a key that lie in the window.
auto probe_state(WindowState& state) {
  return [&state](ValueList& list, Time first, Time last, auto&& on_match) {
    const bool stop_early = state.in_time_order();
    state.walk(list, [&](uint32_t, TNode& node) {
      if (node.time > last) return stop_early ? Visit::kStop : Visit::kKeep;
      return node.time < first ? Visit::kKeep : on_match(node);
    });
  };
}

PromiseOptions promise_options(const BinaryJoinOptions& options, Side side) {
  return {.lifespan = options.sides[side].lifespan, .codes_are_values = options.codes_are_values};
}

}  // namespace

BinaryJoin::BinaryJoin(BinaryJoinOptions options, KeyDictionary* dictionary)
    : options_(options),
      sides_{SideState(dictionary, promise_options(options, kLeft)),
             SideState(dictionary, promise_options(options, kRight))} {}

void BinaryJoin::push(Side side, const RowBatch& batch, Predicate* predicate, Results& results) {
  const bool can_refuse =
      options_.late == LatePolicy::kError || options_.violation == ViolationPolicy::kError;
  if (predicate != nullptr || can_refuse) {
    push_rehearsed(side, batch, predicate, results);
  } else {
    const bool plain = is_plain(side, batch);
    for (size_t begin = 0; begin < batch.times.size(); begin += kBlock) {
      const size_t end = std::min(begin + kBlock, batch.times.size());
      plain ? push_plain_block(side, batch, begin, end, results)
            : push_block(side, batch, begin, end, results);
    }
  }
  sides_[side].counters.rows_in += batch.times.size();
  end_output_if_done(sides_[side].clock, results);
}

// An inner join of rows in time order that make no promises of their own.
bool BinaryJoin::is_plain(Side side, const RowBatch& batch) const {
  return options_.type == JoinType::kInner && batch.null_key == nullptr &&
         options_.sides[side].implies == Implies::kNothing && options_.sides[side].lifespan == kEnd &&
         sides_[kLeft].rows.in_time_order() && sides_[kRight].rows.in_time_order() &&
         std::is_sorted(batch.times.begin(), batch.times.end()) &&
         (batch.times.empty() || batch.times.front() >= sides_[side].clock);
}

// The shortest way of a row: probe and store. That rows of the other stream have left the window shows in
// their times, so they are invalidated for the block as a whole, afterwards; nobody can tell the difference,
// unless the last row of a promised key leaves and closes it: while there are such keys, the clock is raised
// row by row. A row that breaks a promise takes the long way.
void BinaryJoin::push_plain_block(Side side, const RowBatch& batch, size_t begin, size_t end,
                                  Results& results) {
  WindowState& mine = sides_[side].rows;
  WindowState& theirs = sides_[other_side(side)].rows;
  std::array<uint64_t, kBlock> hashes;
  std::array<ValueList*, kBlock> own_slots;
  std::array<ValueList*, kBlock> others;
  const Code* keys = batch.keys.data() + begin;
  const Time* times = batch.times.data() + begin;
  const size_t rows = end - begin;
  const Promises& my_promises = sides_[side].promises;
  const Promises& their_promises = sides_[other_side(side)].promises;
  const bool ask_all = my_promises.covers_any() || their_promises.covers_any();
  const bool may_close = their_promises.any_open();
  const bool any_open = may_close || my_promises.any_open();
  std::array<bool, kBlock> may_be_promised;
  for (size_t i = 0; i < rows; ++i) {
    hashes[i] = hash_code(keys[i]);
    theirs.lists().prefetch(hashes[i]);
    mine.lists().prefetch(hashes[i]);
    may_be_promised[i] =
        ask_all | my_promises.may_be_closed(hashes[i]) | their_promises.may_be_closed(hashes[i]);
  }
  for (size_t i = 0; i < rows; ++i) {
    others[i] = theirs.lists().find_likely_slot(hashes[i]);
    if (!others[i]->vacant()) theirs.prefetch(others[i]->tail());
    own_slots[i] = mine.lists().find_likely_slot(hashes[i]);
    if (!own_slots[i]->vacant()) mine.prefetch(own_slots[i]->tail());
  }
  for (size_t i = 0; i < rows; ++i) {  // a walk begins at the oldest row, which the newest knows
    if (!others[i]->vacant()) theirs.prefetch(theirs.node(others[i]->tail()).next_in_value);
  }
  const uint64_t own_moves = mine.lists().moves();
  const uint64_t other_moves = theirs.lists().moves();
  const Time other_clock = sides_[other_side(side)].clock;
  for (size_t i = 0; i < rows; ++i) {
    if (may_close && times[i] > sides_[side].clock) raise_clock(side, times[i], results);
    const RowRef row = batch.ref(begin + i);
    ValueList* own = own_moves == mine.lists().moves()
                         ? mine.lists().confirm(own_slots[i], keys[i], hashes[i])
                         : mine.lists().find_slot(keys[i], hashes[i]);
    ValueList* other = other_moves == theirs.lists().moves()
                           ? theirs.lists().confirm(others[i], keys[i], hashes[i])
                           : theirs.lists().find_slot(keys[i], hashes[i]);
    if (other->vacant()) other = nullptr;
    const bool is_open = any_open && (own->promised() || (other != nullptr && other->promised()) ||
                                      their_promises.may_be_closed(hashes[i]));
    if (may_be_promised[i] || is_open) [[unlikely]] {
      if (my_promises.flag(keys[i], own->vacant() ? nullptr : own) != PunctuationFlag::kNone) {
        process(side, {times[i], keys[i], row}, false, {other, theirs.lists().moves()}, probe_state(theirs),
                results);
        continue;
      }
      const PunctuationFlag flag = their_promises.flag(keys[i], other);
      if (flag == PunctuationFlag::kPropagated) {
        ++sides_[side].counters.dropped_after_propagation;
        continue;
      }
      if (flag == PunctuationFlag::kPunctuated) own = nullptr;  // joined and not stored
    }
    const Time first = options_.bounds.first(side, times[i]);
    const Time last = options_.bounds.reach(side, times[i]);
    if (other != nullptr) {
      const uint32_t newest = other->tail();
      uint32_t at = newest;
      do {
        at = theirs.node(at).next_in_value;
        const TNode& node = theirs.node(at);
        if (node.time > last) break;
        if (node.time >= first) emit(side, row, node.row(), results);
      } while (at != newest);
    }
    if (own == nullptr) {
      ++sides_[side].counters.discarded_on_the_fly;
    } else if (can_match_later(side, times[i], other_clock)) {
      mine.insert(times[i], keys[i], hashes[i], row, own);
    }
  }
  if (times[rows - 1] > sides_[side].clock) raise_clock(side, times[rows - 1], results);
  mine.sweep(rows);
  theirs.sweep(rows);
}

void BinaryJoin::push_block(Side side, const RowBatch& batch, size_t begin, size_t end, Results& results) {
  WindowState& mine = sides_[side].rows;
  WindowState& theirs = sides_[other_side(side)].rows;
  std::array<ValueList*, kBlock> others;
  for (size_t i = begin; i < end; ++i) {
    const uint64_t hash = hash_code(batch.keys[i]);
    theirs.lists().prefetch(hash);
    mine.lists().prefetch(hash);
  }
  for (size_t i = begin; i < end; ++i) {
    const ValueList* likely = theirs.lists().find_likely_slot(hash_code(batch.keys[i]));
    if (!likely->vacant()) theirs.prefetch(likely->tail());
  }
  for (size_t i = begin; i < end; ++i) others[i - begin] = theirs.lists().find(batch.keys[i]);
  const uint64_t moves = theirs.lists().moves();
  for (size_t i = begin; i < end; ++i) {
    const Row row{batch.times[i], batch.keys[i], batch.ref(i)};
    const bool null_key = batch.null_key != nullptr && batch.null_key[i] != 0;
    process(side, row, null_key, {others[i - begin], moves}, probe_state(theirs), results);
  }
  mine.sweep(end - begin);
  theirs.sweep(end - begin);
}

void BinaryJoin::advance(Side side, Time clock, Results& results) {
  if (clock > sides_[side].clock) raise_clock(side, clock, results);
  settle(clock, results);
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
  output_ended_ =
      false;  // a stream that ended early may have said it before; the last word is said all the same
  end_output_if_done(time, results);
}

void BinaryJoin::settle(Time time, Results& results) {
  for (SideState& side : sides_) side.rows.sweep();
  if (sides_[kLeft].ended || sides_[kRight].ended) end_output_if_done(time, results);
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
    for (const uint64_t counter : {counters.rows_in, counters.punctuations_in, counters.purged,
                                   counters.invalidated, counters.discarded_on_the_fly,
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

// Rows in order on lists that insert() alone has made need no proof: to walk every list would cost more than
// to load it. Whatever else a snapshot says of rows and promises is looked at as a whole.
void BinaryJoin::load(ArchiveReader& in) {
  bool in_doubt = false;
  for (SideState& side : sides_) {
    side.clock = in.value<Time>();
    side.ended = in.value<bool>();
    side.has_previous_key = in.value<bool>();
    side.previous_key = in.value<Code>();
    SideCounters& counters = side.counters;
    for (uint64_t* counter : {&counters.rows_in, &counters.punctuations_in, &counters.purged,
                              &counters.invalidated, &counters.discarded_on_the_fly,
                              &counters.dropped_after_propagation, &counters.violations, &counters.late}) {
      *counter = in.value<uint64_t>();
    }
    side.rows.load(in);
    bool ahead = side.rows.newest() > side.clock;
    side.rows.for_each_row([&](TNode& row) {
      ahead |= row.is(TNode::kLate) && row.time > side.clock;
      in_doubt |= row.is(TNode::kLate | TNode::kLastPromised);
    });
    if (ahead) throw DamagedArchive("a row is ahead of its stream's clock");
    side.promises.load(in);
    in_doubt |= side.promises.any();
    if (side.has_previous_key) {
      if (!side.rows.may_hold(side.previous_key))
        throw DamagedArchive("a cluster of a key that is not there");
      side.rows.hold_key(side.previous_key);
    }
  }
  output_ended_ = in.value<bool>();
  rows_out_ = in.value<uint64_t>();
  for (uint64_t& count : punctuations_out_) count = in.value<uint64_t>();
  if (!in_doubt) return;
  if (const std::string broken = validate(); !broken.empty()) throw DamagedArchive(broken);
}

}  // namespace streamjoin
