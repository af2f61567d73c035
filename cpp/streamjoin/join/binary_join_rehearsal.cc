// Batches that may fail: with a residual predicate, which runs the user's code, or under an error policy.
//
// The batch is first rehearsed: which rows are refused, and which candidates the predicate lets pass. Nothing
// changes meanwhile, so whatever is thrown leaves the join as it was. Then the rows are processed with their
// matches known.

#include <algorithm>
#include <unordered_map>

#include "streamjoin/join/row_steps.h"

namespace streamjoin {
namespace {

constexpr size_t kCandidateBlock = size_t{1} << 16;

}  // namespace

// What this batch's own punctuations, those that come with it and those that its rows imply, will have
// changed by the time a later row of it comes: the promises of its stream, and through them the promises and
// rows of the other one.
class BinaryJoin::Rehearsal {
 public:
  Rehearsal(const BinaryJoin& join, Side side) : join_(join), side_(side), clock_(join.sides_[side].clock) {
    const SideState& mine = join.sides_[side];
    has_previous_key_ = mine.has_previous_key;
    previous_key_ = mine.previous_key;
  }

  Time clock() const { return clock_; }
  void raise_clock(Time time) { clock_ = std::max(clock_, time); }

  bool promised(Code key) const { return held_until(key) >= clock_; }
  bool other_promised(Code key) const {
    if (join_.has_ended(other_side(side_))) return true;  // an end is never forgotten
    const auto at = changed_.find(key);
    if (at != changed_.end() && at->second.other_forgotten) return false;
    return join_.sides_[other_side(side_)].promises.flag(key) != PunctuationFlag::kNone;
  }
  bool purged(Code key) const {
    const auto at = changed_.find(key);
    return at != changed_.end() && at->second.purged;
  }

  void before_probe(Code key, Time time) {
    if (implies() != Implies::kClustered) return;
    if (has_previous_key_ && previous_key_ != key) promise(previous_key_, time);
    has_previous_key_ = true;
    previous_key_ = key;
  }
  void after_probe(Code key, Time time) {
    if (implies() == Implies::kUnique) promise(key, time);
  }
  void punctuate(Code key, Time time) {
    if (join_.options_.use_punctuations) promise(key, time);
  }

 private:
  struct Changed {
    Time held_until = kBeginning;
    bool other_forgotten = false;
    bool purged = false;
  };

  Implies implies() const {
    return join_.options_.use_punctuations ? join_.options_.sides[side_].implies : Implies::kNothing;
  }

  void promise(Code key, Time time) {
    const Time expires = join_.sides_[side_].promises.expiry_of(time);
    if (expires < clock_) return;
    const bool by_both = other_promised(key);
    const Time held = held_until(key);
    Changed& changed = changed_[key];
    changed.purged = true;
    changed.held_until = by_both ? kBeginning : std::max(held, expires);
    if (by_both) changed.other_forgotten = join_.options_.codes_are_values;
  }

  Time held_until(Code key) const {
    if (join_.has_ended(side_)) return kEnd;  // an end is never forgotten
    const auto at = changed_.find(key);
    return at == changed_.end() ? join_.sides_[side_].promises.held_until(key) : at->second.held_until;
  }

  const BinaryJoin& join_;
  const Side side_;
  Time clock_;
  bool has_previous_key_;
  Code previous_key_;
  std::unordered_map<Code, Changed> changed_;
};

void BinaryJoin::push_rehearsed(Side side, const RowBatch& batch, Predicate* predicate, Results& results) {
  const std::vector<Match> matches = rehearse(side, batch, predicate);
  SideState& theirs = sides_[other_side(side)];
  auto next = matches.begin();
  auto punctuation = batch.punctuations.begin();
  const auto take_those_before = [&](size_t row) {
    for (; punctuation != batch.punctuations.end() && punctuation->before == row; ++punctuation)
      take_with_rows(side, *punctuation, results);
  };
  for (size_t i = 0; i < batch.times.size(); ++i) {
    take_those_before(i);
    const auto begin = next;
    while (next != matches.end() && next->row == i) ++next;
    const auto known_matches = [&](ValueList& list, Time, Time, auto&& on_match) {
      auto at = begin;
      theirs.rows.walk(list, [&](uint32_t index, TNode& node) {
        // A match may have been taken out by an earlier row of this batch.
        while (at != next && theirs.rows.node(at->node).is(TNode::kDead)) ++at;
        if (at == next) return Visit::kStop;
        if (at->node != index) return Visit::kKeep;
        ++at;
        return on_match(node);
      });
    };
    const Row row{batch.times[i], batch.keys[i], batch.ref(i)};
    const bool null_key = batch.null_key != nullptr && batch.null_key[i] != 0;
    ValueListIndex& other_index = theirs.rows.lists();
    process(side, row, null_key, {other_index.find(row.key), other_index.moves()}, known_matches, results);
  }
  take_those_before(batch.times.size());
  for (SideState& state : sides_) state.rows.sweep();
}

std::vector<BinaryJoin::Match> BinaryJoin::rehearse(Side side, const RowBatch& batch,
                                                    Predicate* predicate) const {
  const SideState& theirs = sides_[other_side(side)];
  Rehearsal rehearsal(*this, side);
  std::vector<Match> matches;
  std::vector<Match> candidates;
  std::vector<ResultRow> asked;
  std::vector<uint8_t> holds;
  const auto ask = [&] {
    holds.assign(candidates.size(), 1);
    if (predicate != nullptr && !candidates.empty()) predicate->evaluate(asked, holds);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (holds[i] != 0) matches.push_back(candidates[i]);
    }
    candidates.clear();
    asked.clear();
  };

  auto punctuation = batch.punctuations.begin();
  for (size_t i = 0; i < batch.times.size(); ++i) {
    for (; punctuation != batch.punctuations.end() && punctuation->before == i; ++punctuation)
      rehearsal.punctuate(punctuation->key, punctuation->time);
    const Time time = batch.times[i];
    const Code key = batch.keys[i];
    if (time < rehearsal.clock()) {
      if (options_.late == LatePolicy::kError)
        throw RefusedBatch{RefusedBatch::Why::kLate, i, rehearsal.clock()};
      if (options_.late == LatePolicy::kDrop) continue;
    }
    rehearsal.raise_clock(time);
    if (batch.null_key != nullptr && batch.null_key[i] != 0) continue;
    if (rehearsal.promised(key)) {
      if (options_.violation == ViolationPolicy::kError)
        throw RefusedBatch{RefusedBatch::Why::kViolation, i, rehearsal.clock()};
      if (options_.violation == ViolationPolicy::kDrop) continue;
    }
    rehearsal.before_probe(key, time);
    const ValueList* other = theirs.rows.lists().find(key);
    if (other != nullptr && !rehearsal.purged(key)) {
      const Time first = options_.bounds.first(side, rehearsal.clock());
      const Time last = options_.bounds.reach(side, time);
      const RowRef own = batch.ref(i);
      theirs.rows.look(*other, [&](uint32_t index, const TNode& node) {
        if (node.time < first || node.time > last) return Visit::kKeep;
        candidates.push_back({static_cast<uint32_t>(i), index});
        asked.push_back(side == kLeft ? ResultRow{own, node.row()} : ResultRow{node.row(), own});
        if (candidates.size() == kCandidateBlock) ask();
        return Visit::kKeep;
      });
    }
    rehearsal.after_probe(key, time);
  }
  ask();
  return matches;
}

}  // namespace streamjoin
