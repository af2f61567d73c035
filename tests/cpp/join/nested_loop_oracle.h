// NestedLoopOracle: docs/semantics.md done the slow way, the judge of BinaryJoin.
//
// Every row that ever came is in one vector, and each step looks at all of them. There is no index, no list,
// no lazy deletion and no flag; times are compared in integers that cannot overflow. Keys are those of a
// small universe, so that a range is a loop.

#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/wide_integer.h"
#include "streamjoin/join/binary_join.h"

namespace streamjoin {

struct OracleRow {
  Side side;
  size_t id;
  Time time;
  Code key;
  bool null_key;
};

/// A result: the ids of its rows, or kMissing.
using OraclePair = std::pair<size_t, size_t>;
inline constexpr size_t kMissing = ~size_t{0};

class NestedLoopOracle {
 public:
  using Condition = std::function<bool(size_t left, size_t right)>;

  NestedLoopOracle(BinaryJoinOptions options, std::optional<Duration> lower, std::optional<Duration> upper,
                   std::vector<Code> universe, Condition condition)
      : options_(options),
        lower_(lower),
        upper_(upper),
        universe_(std::move(universe)),
        condition_(std::move(condition)) {}

  std::vector<OraclePair> results;  // of the last calls; the caller clears it
  std::vector<size_t> late;
  std::vector<size_t> violations;

  /// False: an error policy refuses the row. The oracle is then of no further use.
  bool push(const OracleRow& row) {
    const Side side = row.side;
    const Side other = other_side(side);
    if (row.time < clock_[side]) {
      if (options_.late == LatePolicy::kError) return false;
      if (options_.late == LatePolicy::kDrop) {
        late.push_back(row.id);
        return true;
      }
    } else {
      raise_clock(side, row.time);
    }
    if (row.null_key) {
      if (preserves(options_.type, side)) emit_alone(side, row.id);
      return true;
    }
    if (promised(side, row.key)) {
      if (options_.violation == ViolationPolicy::kError) return false;
      if (options_.violation == ViolationPolicy::kDrop) {
        violations.push_back(row.id);
        return true;
      }
    }
    if (ever_promised_[side].contains(row.key) || ended_[side]) broken_.insert(row.key);
    const Implies implies = options_.sides[side].implies;
    if (implies == Implies::kClustered) {
      if (previous_[side] && *previous_[side] != row.key)
        punctuate(side, *previous_[side], *previous_[side], row.time);
      previous_[side] = row.key;
    }

    const bool semi = options_.type == JoinType::kLeftSemi;
    const bool first_decides = semi || options_.type == JoinType::kLeftAnti;
    Stored mine{row, false};
    for (Stored& theirs : stored_) {
      if (theirs.row.side != other || theirs.row.key != row.key) continue;
      const OracleRow& left = side == kLeft ? row : theirs.row;
      const OracleRow& right = side == kLeft ? theirs.row : row;
      if (!fits(left.time, right.time) || !condition_(left.id, right.id)) continue;
      // A late row joins what the other stream would still hold if it kept nothing for longer than it must.
      if (past_reach(theirs.row, clock_[side])) continue;
      Stored& left_row = side == kLeft ? mine : theirs;
      if (!first_decides) results.emplace_back(left.id, right.id);
      if (semi && !left_row.matched) results.emplace_back(left.id, kMissing);
      mine.matched = theirs.matched = true;
    }
    const bool nothing_fits = lower_ && upper_ && *lower_ > *upper_;
    const bool too_late = clock_[other] == kEnd || (options_.use_windows && past_reach(row, clock_[other]));
    if (promised(other, row.key) || too_late || nothing_fits) {
      leave(mine);
    } else {
      stored_.push_back(mine);
    }
    if (first_decides) {
      std::erase_if(stored_, [](const Stored& one) { return one.row.side == kLeft && one.matched; });
    }
    if (implies == Implies::kUnique) punctuate(side, row.key, row.key, row.time);
    return true;
  }

  void punctuate(Side side, Code low, Code high, Time time) {
    const Side other = other_side(side);
    const Wide expires =
        options_.sides[side].lifespan == kEnd ? Wide{kEnd} : Wide{time} + options_.sides[side].lifespan;
    if (clock_[side] > expires) return;
    take_out([&](const OracleRow& row) { return row.side == other && low <= row.key && row.key <= high; });
    for (const Code key : universe_) {
      if (key < low || key > high) continue;
      ever_promised_[side].insert(key);
      if (promised(other, key)) {
        promises_[other].erase(key);
        promises_[side].erase(key);
      } else {
        const auto [at, is_new] = promises_[side].try_emplace(key, expires);
        if (!is_new) at->second = std::max(at->second, expires);
      }
    }
  }

  void end(Side side) {
    if (ended_[side]) return;
    take_out([&](const OracleRow& row) { return row.side != side; });
    promises_[other_side(side)].clear();
    promises_[side].clear();
    previous_[side].reset();
    clock_[side] = kEnd;
    ended_[side] = true;
  }

  void advance(Side side, Time clock) {
    if (clock > clock_[side]) raise_clock(side, clock);
  }

  void finish() {
    take_out([](const OracleRow&) { return true; });
    clock_ = {kEnd, kEnd};
    ended_ = {true, true};
  }

  Time clock(Side side) const { return clock_[side]; }
  size_t stored(Side side) const {
    return static_cast<size_t>(
        std::ranges::count_if(stored_, [&](const Stored& one) { return one.row.side == side; }));
  }
  bool promised(Side side, Code key) const {
    const auto at = promises_[side].find(key);
    return ended_[side] || (at != promises_[side].end() && clock_[side] <= at->second);
  }
  /// A row of the key was processed after its stream had promised that none would come: promises about it are
  /// worth nothing.
  bool broken(Code key) const { return broken_.contains(key); }

 private:
  struct Stored {
    OracleRow row;
    bool matched;
  };

  bool fits(Time left, Time right) const {
    const Wide difference = Wide{right} - left;
    return (!lower_ || difference >= *lower_) && (!upper_ || difference <= *upper_);
  }
  /// No row of the other stream from `clock` on can match `row`.
  bool past_reach(const OracleRow& row, Time clock) const {
    if (clock == kBeginning) return false;
    if (clock == kEnd) return true;
    if (row.side == kLeft) return upper_ && clock > Wide{row.time} + *upper_;
    return lower_ && clock > Wide{row.time} - *lower_;
  }
  void raise_clock(Side side, Time clock) {
    clock_[side] = clock;
    std::erase_if(promises_[side], [&](const auto& promise) { return promise.second < clock; });
    if (!options_.use_windows && clock != kEnd) return;
    take_out([&](const OracleRow& row) { return row.side != side && past_reach(row, clock); });
  }
  template <typename F>
  void take_out(F&& gone) {
    for (const Stored& one : stored_) {
      if (gone(one.row)) leave(one);
    }
    std::erase_if(stored_, [&](const Stored& one) { return gone(one.row); });
  }
  void leave(const Stored& one) {
    if (!one.matched && preserves(options_.type, one.row.side)) emit_alone(one.row.side, one.row.id);
  }
  void emit_alone(Side side, size_t id) {
    results.push_back(side == kLeft ? OraclePair(id, kMissing) : OraclePair(kMissing, id));
  }

  BinaryJoinOptions options_;
  std::optional<Duration> lower_, upper_;
  std::vector<Code> universe_;
  Condition condition_;
  std::vector<Stored> stored_;  // in the order of arrival
  std::array<std::map<Code, Wide>, 2> promises_;
  std::array<std::set<Code>, 2> ever_promised_;
  std::set<Code> broken_;
  std::array<std::optional<Code>, 2> previous_;
  std::array<Time, 2> clock_{kBeginning, kBeginning};
  std::array<bool, 2> ended_{};
};

}  // namespace streamjoin
