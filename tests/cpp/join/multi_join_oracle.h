// The judge of m-way joins: nested loops over all history, and random cases to put before it.

#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "streamjoin/join/multi_join.h"

namespace streamjoin::testing {

struct OracleRow {
  Time time;
  std::vector<Code> keys;  // per class of the stream
  NumericValue value;
  bool unmatchable;
  uint32_t id;
};

/// Asks whether the values of two streams differ by an odd number: a predicate of no native form.
class OddDifference : public TuplePredicate {
 public:
  OddDifference(size_t a, size_t b, size_t streams) : a_(a), b_(b), streams_(streams) {}
  static bool holds(NumericValue a, NumericValue b) {
    return !a.is_null() && !b.is_null() && ((a.integer() - b.integer()) & 1) != 0;
  }
  void evaluate(TupleView& tuples, std::span<uint8_t> holds) override {
    const std::span<const RowRef> rows = tuples.rows();
    for (size_t i = 0; i < holds.size(); ++i) {
      if (rows[i * streams_ + a_] == kNoRow || rows[i * streams_ + b_] == kNoRow)
        throw std::runtime_error("asked before its streams were bound");
      holds[i] = this->holds(tuples.value(i, a_, 0), tuples.value(i, b_, 0));
    }
  }

 private:
  size_t a_, b_, streams_;
};

/// A conjunct as the oracle asks it, beside the one that the join is given.
struct PlainConjunct {
  size_t a, b;
  int form;  // 0 band of width 1, 1 a < b + 1, 2 odd difference
  bool holds(NumericValue x, NumericValue y) const {
    if (x.is_null() || y.is_null()) return false;
    const int64_t d = x.integer() - y.integer();
    return form == 0 ? d >= -1 && d <= 1 : form == 1 ? d < 1 : OddDifference::holds(x, y);
  }
};

class MultiOracle {
 public:
  MultiOracle(const MultiJoinOptions& options, std::vector<PlainConjunct> conjuncts)
      : options_(options),
        conjuncts_(std::move(conjuncts)),
        streams_(options.classes.size()),
        history_(streams_),
        clocks_(streams_, kBeginning) {}

  /// The results that the row completes, each as one id per stream.
  std::vector<std::vector<uint32_t>> push(size_t stream, const OracleRow& row) {
    const bool late = row.time < clocks_[stream];
    if (late && options_.late == LatePolicy::kDrop) return {};
    clocks_[stream] = std::max(clocks_[stream], row.time);
    results_.clear();
    bury();
    if (row.unmatchable) return {};
    tuple_.assign(streams_, nullptr);
    tuple_[stream] = &row;
    extend(0, stream, late);
    history_[stream].push_back({row, false});
    bury();
    std::sort(results_.begin(), results_.end());
    return results_;
  }
  void advance(size_t stream, Time clock) {
    clocks_[stream] = std::max(clocks_[stream], clock);
    bury();
  }
  size_t alive(size_t stream) const {
    return static_cast<size_t>(std::count_if(history_[stream].begin(), history_[stream].end(),
                                             [](const Held& held) { return !held.dead; }));
  }

 private:
  struct Held {
    OracleRow row;
    bool dead;
  };

  // Dead once every other stream is past what the row can reach in any alternative.
  void bury() {
    for (size_t i = 0; i < streams_; ++i) {
      for (Held& held : history_[i]) {
        bool dead = true;
        for (size_t j = 0; j < streams_; ++j) {
          if (j == i || clocks_[j] == kEnd) continue;
          bool passed = clocks_[j] != kBeginning;
          for (const auto& matrix : options_.alternatives) {
            passed &= matrix[i][j].has_value() && clocks_[j] > held.row.time + *matrix[i][j];
          }
          dead &= passed;
        }
        held.dead |= dead;
      }
    }
  }

  void extend(size_t at, size_t origin, bool late) {
    if (at == streams_) {
      if (in_time()) {
        auto& result = results_.emplace_back();
        for (const OracleRow* row : tuple_) result.push_back(row->id);
      }
      return;
    }
    if (at == origin) {
      if (fits(at)) extend(at + 1, origin, late);
      return;
    }
    // A row in order can meet no dead row by the window alone, so it is shown them all.
    for (const Held& held : history_[at]) {
      if (late && held.dead) continue;
      tuple_[at] = &held.row;
      if (fits(at)) extend(at + 1, origin, late);
    }
    tuple_[at] = nullptr;
  }

  bool fits(size_t at) const {
    for (size_t other = 0; other < streams_; ++other) {
      if (other == at || tuple_[other] == nullptr) continue;
      for (size_t p = 0; p < options_.classes[at].size(); ++p) {
        for (size_t q = 0; q < options_.classes[other].size(); ++q) {
          if (options_.classes[at][p] == options_.classes[other][q] &&
              tuple_[at]->keys[p] != tuple_[other]->keys[q])
            return false;
        }
      }
    }
    for (const PlainConjunct& each : conjuncts_) {
      if (tuple_[each.a] != nullptr && tuple_[each.b] != nullptr &&
          !each.holds(tuple_[each.a]->value, tuple_[each.b]->value))
        return false;
    }
    return true;
  }

  bool in_time() const {
    for (const auto& matrix : options_.alternatives) {
      bool fit = true;
      for (size_t i = 0; i < streams_; ++i) {
        for (size_t j = 0; j < streams_; ++j) {
          if (i != j && matrix[i][j]) fit &= tuple_[j]->time - tuple_[i]->time <= *matrix[i][j];
        }
      }
      if (fit) return true;
    }
    return false;
  }

  const MultiJoinOptions& options_;
  std::vector<PlainConjunct> conjuncts_;
  size_t streams_;
  std::vector<std::vector<Held>> history_;
  std::vector<Time> clocks_;
  std::vector<const OracleRow*> tuple_;
  std::vector<std::vector<uint32_t>> results_;
};

inline int between(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

using Matrix = std::vector<std::vector<std::optional<Duration>>>;

/// Random windows, closed by shortest paths. May be contradictory: then nothing matches.
inline Matrix random_matrix(std::mt19937& random, size_t streams) {
  const int form = between(random, 0, 3);
  const int width = between(random, 0, 8);
  Matrix matrix(streams, std::vector<std::optional<Duration>>(streams));
  for (size_t i = 0; i < streams; ++i) {
    for (size_t j = 0; j < streams; ++j) {
      if (i == j) {
        matrix[i][j] = 0;
      } else if (form == 0) {
        matrix[i][j] = width;  // one for all
      } else if (form == 1) {
        if (i + 1 == j) matrix[i][j] = between(random, 0, 6);  // a path
        if (j + 1 == i) matrix[i][j] = 0;
      } else if (form == 2) {
        matrix[i][j] = between(random, 0, 8);
      } else if (between(random, 0, 2) > 0) {
        matrix[i][j] = between(random, -1, 6);
      }
    }
  }
  for (size_t k = 0; k < streams; ++k) {
    for (size_t i = 0; i < streams; ++i) {
      for (size_t j = 0; j < streams; ++j) {
        if (i == j || !matrix[i][k] || !matrix[k][j]) continue;
        const Duration around = *matrix[i][k] + *matrix[k][j];
        if (!matrix[i][j] || around < *matrix[i][j]) matrix[i][j] = around;
      }
    }
  }
  return matrix;
}

}  // namespace streamjoin::testing
