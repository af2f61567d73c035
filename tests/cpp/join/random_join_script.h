// Random scripts for BinaryJoin: options, and batches, punctuations, heartbeats and ends of streams in any
// order.

#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "join/nested_loop_oracle.h"

namespace streamjoin {

struct ScriptStep {
  enum class Kind { kPush, kPunctuate, kPunctuateRange, kEndStream, kAdvance, kCompact, kReload } kind;
  Side side = kLeft;
  std::vector<OracleRow> rows = {};
  std::vector<KeyPunctuation> punctuations = {};  // between the rows
  Code low = 0, high = 0;
  Time time = 0;
};

struct JoinScript {
  BinaryJoinOptions options;
  std::optional<Duration> lower, upper;
  std::vector<Code> universe;
  std::vector<OracleRow> rows;  // all of them, by id
  std::vector<ScriptStep> steps;
  uint64_t condition = 0;  // 0: no residual predicate; else a pair holds unless its hash is a multiple of it

  bool holds(size_t left, size_t right) const {
    return condition == 0 || mix(left * 1000003 + right * 17) % condition != 0;
  }
};

struct ScriptKind {
  bool error_policies = false;
  bool lifespans = false;
  bool snapshots = true;
};

class RandomJoinScript {
 public:
  RandomJoinScript(uint64_t seed, ScriptKind kind) : random_(seed), kind_(kind) {}

  JoinScript make() {
    choose_options();
    const size_t steps = 10 + below(60);
    for (size_t i = 0; i < steps; ++i) script_.steps.push_back(step());
    return std::move(script_);
  }

 private:
  size_t below(size_t bound) { return random_() % bound; }
  bool one_in(size_t chances) { return below(chances) == 0; }

  void choose_options() {
    static constexpr Duration kLongest = kEnd, kShortest = kBeginning + 1;
    using Bound = std::optional<Duration>;
    static const std::vector<std::pair<Bound, Bound>> bounds = {{-5, 5},
                                                                {0, 10},
                                                                {-12, 0},
                                                                {0, 0},
                                                                {-10, -2},
                                                                {3, 8},
                                                                {5, -5},
                                                                {Bound(), Bound()},
                                                                {Bound(), 4},
                                                                {-4, Bound()},
                                                                {Bound(), -3},
                                                                {2, Bound()},
                                                                {kShortest, kLongest},
                                                                {kShortest, 0},
                                                                {0, kLongest},
                                                                {kLongest, kLongest}};
    BinaryJoinOptions& options = script_.options;
    std::tie(script_.lower, script_.upper) = bounds[below(bounds.size())];
    options.bounds = Bounds(script_.lower, script_.upper);
    options.type = static_cast<JoinType>(below(6));
    options.late = one_in(3) ? LatePolicy::kInsert : LatePolicy::kDrop;
    options.violation = one_in(3) ? ViolationPolicy::kKeep : ViolationPolicy::kDrop;
    if (kind_.error_policies) {
      if (one_in(2)) options.late = LatePolicy::kError;
      if (options.late != LatePolicy::kError || one_in(2)) options.violation = ViolationPolicy::kError;
    }
    for (SideOptions& side : options.sides) {
      if (one_in(4)) side.implies = one_in(2) ? Implies::kUnique : Implies::kClustered;
      if (kind_.lifespans && !one_in(3)) side.lifespan = static_cast<Duration>(below(25));
    }
    options.use_windows = !one_in(10);
    if (one_in(3)) script_.condition = 1 + below(4);
    static constexpr std::array<Time, 5> starts = {0, 0, -30, kBeginning + 1, kEnd - 60};
    clock_ = {starts[below(5)], starts[below(5)]};
    if (!one_in(6)) clock_[kRight] = clock_[kLeft];
    lateness_ = one_in(2) ? 0 : 1 + below(20);
    drift_ = below(3);
    for (Code key = 0; key < 60; ++key) script_.universe.push_back(key);
    script_.universe.insert(script_.universe.end(), {kSmallest, kSmallest + 1, -1, kLargest - 1, kLargest});
  }

  // Keys move on, so that what was promised long ago seldom comes again.
  Code key() {
    if (one_in(15)) return script_.universe[below(script_.universe.size())];
    return std::min<Code>(59, static_cast<Code>(drift_ * script_.steps.size() / 3 + below(5)));
  }
  static Code code(Wide value) { return static_cast<Code>(std::clamp<Wide>(value, kSmallest, kLargest)); }
  static Time legal(Wide time) { return static_cast<Time>(std::clamp<Wide>(time, kBeginning + 1, kEnd - 1)); }

  ScriptStep step() {
    using Kind = ScriptStep::Kind;
    ScriptStep step{.kind = Kind::kPush, .side = one_in(2) ? kLeft : kRight};
    const size_t choice = below(100);
    if (choice < 60) {
      push(step);
    } else if (choice < 75) {
      step.kind = Kind::kPunctuate;
      step.low = step.high = key();
      step.time = legal(Wide{clock_[step.side]} + static_cast<Time>(below(20)) - 10);
    } else if (choice < 82) {
      step.kind = Kind::kPunctuateRange;
      step.low = one_in(8) ? kSmallest : code(Wide{key()} - static_cast<Code>(below(2) * 4));
      step.high = one_in(8) ? kLargest : code(Wide{step.low} + static_cast<Code>(below(8)) - 1);
      step.time = legal(Wide{clock_[step.side]} + static_cast<Time>(below(20)) - 10);
    } else if (choice < 91) {
      step.kind = Kind::kAdvance;
      clock_[step.side] = legal(Wide{clock_[step.side]} + static_cast<Time>(below(8)));
      step.time = clock_[step.side];
      if (one_in(100)) step.time = kEnd;
    } else if (choice < 93) {
      step.kind = one_in(4) ? Kind::kEndStream : Kind::kAdvance;
      step.time = clock_[step.side];
    } else {
      step.kind = one_in(2) && kind_.snapshots ? Kind::kReload : Kind::kCompact;
    }
    return step;
  }

  void push(ScriptStep& step) {
    const size_t rows = one_in(12) ? 150 : below(8);  // now and then more than the join takes as one block
    const bool nulls = one_in(4);
    const size_t rows_per_punctuation = one_in(2) ? 0 : 1 + below(rows > 100 ? 30 : 6);
    Time& clock = clock_[step.side];
    const auto punctuate = [&] {
      while (rows_per_punctuation > 0 && one_in(1 + rows_per_punctuation)) {
        const Time time = legal(Wide{clock} + static_cast<Time>(below(20)) - 10);
        step.punctuations.push_back({step.rows.size(), key(), time});
      }
    };
    for (size_t i = 0; i < rows; ++i) {
      punctuate();
      if (one_in(rows > 100 ? 20 : 2)) clock = legal(Wide{clock} + static_cast<Time>(below(4)));
      const bool late = lateness_ > 0 && one_in(kind_.error_policies ? 40 : 5);
      const Time time = late ? legal(Wide{clock} - static_cast<Time>(below(lateness_))) : clock;
      step.rows.push_back({step.side, script_.rows.size(), time, key(), nulls && one_in(4)});
      script_.rows.push_back(step.rows.back());
    }
    punctuate();
    if (rows_per_punctuation > 0 && one_in(40)) {  // and more of these, too
      while (step.punctuations.size() < 150) step.punctuations.push_back({rows, key(), clock});
    }
  }

  static constexpr Code kSmallest = std::numeric_limits<Code>::min();
  static constexpr Code kLargest = std::numeric_limits<Code>::max();

  std::mt19937_64 random_;
  const ScriptKind kind_;
  JoinScript script_;
  std::array<Time, 2> clock_{};
  size_t lateness_ = 0;
  size_t drift_ = 0;
};

}  // namespace streamjoin
