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
    std::span<const KeyPunctuation> waiting = batch.punctuations;
    const size_t rows = batch.times.size();
    for (size_t begin = 0; begin < rows || !waiting.empty();) {
      size_t end = std::min(begin + kBlock, rows);
      size_t taken = 0;
      while (taken < waiting.size() && waiting[taken].before <= end && taken < kBlock) ++taken;
      if (taken == kBlock) end = waiting[taken - 1].before;
      const Block block{batch, begin, end, waiting.first(taken)};
      plain ? push_plain_block(side, block, results) : push_block(side, block, results);
      begin = end;
      waiting = waiting.subspan(taken);
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

/// What was found ahead of its use for the rows of a block.
struct BinaryJoin::FetchedBlock {
  std::array<uint64_t, kBlock> hashes;
  std::array<ValueList*, kBlock> own;
  std::array<ValueList*, kBlock> others;
  uint64_t own_moves;
  uint64_t other_moves;
};

// The shortest way of a row: probe and store. That rows of the other stream have left the window shows in
// their times, so they are invalidated for the block as a whole, afterwards; nobody can tell the difference,
// unless the last row of a promised key leaves and closes it: while there are such keys, the clock is raised
// row by row. A row that breaks a promise takes the long way.
void BinaryJoin::push_plain_block(Side side, const Block& block, Results& results) {
  WindowState& mine = sides_[side].rows;
  WindowState& theirs = sides_[other_side(side)].rows;
  FetchedBlock fetched;
  auto& [hashes, own, others, own_moves, other_moves] = fetched;
  const Code* keys = block.batch.keys.data() + block.begin;
  const size_t rows = block.end - block.begin;
  for (size_t i = 0; i < rows; ++i) {
    hashes[i] = hash_code(keys[i]);
    theirs.lists().prefetch(hashes[i]);
    mine.lists().prefetch(hashes[i]);
  }
  for (const KeyPunctuation& punctuation : block.punctuations) {
    // What the other stream has closed is answered without a look at rows.
    const uint64_t hash = hash_code(punctuation.key);
    if (!sides_[other_side(side)].promises.may_be_closed(hash)) prefetch(punctuation.key);
  }
  for (size_t i = 0; i < rows; ++i) {
    others[i] = theirs.lists().find_likely_slot(hashes[i]);
    if (!others[i]->vacant()) theirs.prefetch(others[i]->tail());
    own[i] = mine.lists().find_likely_slot(hashes[i]);
    if (!own[i]->vacant()) mine.prefetch(own[i]->tail());
  }
  for (size_t i = 0; i < rows; ++i) {  // a walk begins at the oldest row, which the newest knows
    if (!others[i]->vacant()) theirs.prefetch(theirs.node(others[i]->tail()).next_in_value);
  }
  own_moves = mine.lists().moves();
  other_moves = theirs.lists().moves();
  auto next = block.punctuations.begin();
  for (size_t at = block.begin;;) {
    const size_t stop = next == block.punctuations.end() ? block.end : next->before;
    if (at < stop) push_plain_rows(side, block, fetched, at, stop, results);
    at = stop;
    if (next == block.punctuations.end()) break;
    take_with_plain_rows(side, *next++, at == block.begin ? kBeginning : block.batch.times[at - 1], results);
  }
  if (rows > 0 && block.batch.times[block.end - 1] > sides_[side].clock)
    raise_clock(side, block.batch.times[block.end - 1], results);
  mine.sweep(block.size());
  theirs.sweep(block.size());
}

// A key of which nothing is stored concerns promises alone: the clock need not be raised for it.
void BinaryJoin::take_with_plain_rows(Side side, const KeyPunctuation& punctuation, Time clock,
                                      Results& results) {
  SideState& mine = sides_[side];
  SideState& theirs = sides_[other_side(side)];
  const auto& [before, key, time] = punctuation;
  const uint64_t hash = hash_code(key);
  const bool short_way = options_.use_punctuations && !mine.promises.covers_any() &&
                         !theirs.promises.covers_any() && options_.sides[other_side(side)].lifespan == kEnd;
  if (short_way && theirs.promises.may_be_closed(hash) && theirs.promises.forget_closed(key)) {
    // Promised by both, and propagated when it was closed: neither stores a row of it, so none is asked.
    if (mine.promises.is_closed(key) || mine.promises.is_open(key)) mine.promises.forget(key);
    return;
  }
  if (short_way && theirs.rows.lists().find_slot(key, hash)->vacant() &&
      mine.rows.lists().find_slot(key, hash)->vacant()) {
    if (!mine.promises.is_closed(key)) {
      mine.promises.close_unstored(key);
      propagate(PropagationKind::kImmediate, key, key, time, results);
    }
    return;
  }
  if (clock > mine.clock) raise_clock(side, clock, results);
  take_with_rows(side, punctuation, results);
}

[[gnu::always_inline]] inline void BinaryJoin::push_plain_rows(Side side, const Block& block,
                                                               const FetchedBlock& fetched, size_t begin,
                                                               size_t end, Results& results) {
  WindowState& mine = sides_[side].rows;
  WindowState& theirs = sides_[other_side(side)].rows;
  const Promises& my_promises = sides_[side].promises;
  const Promises& their_promises = sides_[other_side(side)].promises;
  bool ask_all = my_promises.covers_any() || their_promises.covers_any();
  const bool may_close = their_promises.any_open();
  const bool any_open = may_close || my_promises.any_open();
  const Time other_clock = sides_[other_side(side)].clock;
  for (size_t at = begin; at < end; ++at) {
    const size_t i = at - block.begin;
    const Time time = block.batch.times[at];
    const Code key = block.batch.keys[at];
    const uint64_t hash = fetched.hashes[i];
    if (may_close && time > sides_[side].clock) {
      raise_clock(side, time, results);
      ask_all |= their_promises.covers_any();  // keys that were closed may have become a range
    }
    const RowRef row = block.batch.ref(at);
    ValueList* own = fetched.own_moves == mine.lists().moves()
                         ? mine.lists().confirm(fetched.own[i], key, hash)
                         : mine.lists().find_slot(key, hash);
    ValueList* other = fetched.other_moves == theirs.lists().moves()
                           ? theirs.lists().confirm(fetched.others[i], key, hash)
                           : theirs.lists().find_slot(key, hash);
    if (other->vacant()) other = nullptr;
    const bool may_be_promised =
        ask_all | my_promises.may_be_closed(hash) | their_promises.may_be_closed(hash);
    const bool is_open = any_open && (own->promised() || (other != nullptr && other->promised()));
    if (may_be_promised || is_open) [[unlikely]] {
      if (my_promises.flag(key, own->vacant() ? nullptr : own) != PunctuationFlag::kNone) {
        process(side, {time, key, row}, false, {other, theirs.lists().moves()}, probe_state(theirs), results);
        continue;
      }
      const PunctuationFlag flag = their_promises.flag(key, other);
      if (flag == PunctuationFlag::kPropagated) {
        ++sides_[side].counters.dropped_after_propagation;
        continue;
      }
      if (flag == PunctuationFlag::kPunctuated) own = nullptr;  // joined and not stored
    }
    const Time first = options_.bounds.first(side, time);
    const Time last = options_.bounds.reach(side, time);
    if (other != nullptr) {
      const uint32_t newest = other->tail();
      uint32_t next = newest;
      do {
        next = theirs.node(next).next_in_value;
        const TNode& node = theirs.node(next);
        if (node.time > last) break;
        if (node.time >= first) emit(side, row, node.row(), results);
      } while (next != newest);
    }
    if (own == nullptr) {
      ++sides_[side].counters.discarded_on_the_fly;
    } else if (can_match_later(side, time, other_clock)) {
      mine.insert(time, key, hash, row, own);
    }
  }
}

void BinaryJoin::push_block(Side side, const Block& block, Results& results) {
  WindowState& mine = sides_[side].rows;
  WindowState& theirs = sides_[other_side(side)].rows;
  const auto& [batch, begin, end, punctuations] = block;
  std::array<ValueList*, kBlock> others;
  for (size_t i = begin; i < end; ++i) {
    const uint64_t hash = hash_code(batch.keys[i]);
    theirs.lists().prefetch(hash);
    mine.lists().prefetch(hash);
  }
  for (const KeyPunctuation& punctuation : punctuations) prefetch(punctuation.key);
  for (size_t i = begin; i < end; ++i) {
    const ValueList* likely = theirs.lists().find_likely_slot(hash_code(batch.keys[i]));
    if (!likely->vacant()) theirs.prefetch(likely->tail());
  }
  for (size_t i = begin; i < end; ++i) others[i - begin] = theirs.lists().find(batch.keys[i]);
  const uint64_t moves = theirs.lists().moves();
  auto next = punctuations.begin();
  for (size_t i = begin;; ++i) {
    for (; next != punctuations.end() && next->before == i; ++next) take_with_rows(side, *next, results);
    if (i == end) break;
    const Row row{batch.times[i], batch.keys[i], batch.ref(i)};
    const bool null_key = batch.null_key != nullptr && batch.null_key[i] != 0;
    process(side, row, null_key, {others[i - begin], moves}, probe_state(theirs), results);
  }
  mine.sweep(block.size());
  theirs.sweep(block.size());
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
