// The joins that the W-join paper compares with, adapted to windows as there: a window check on every match,
// and a clean-up of all buffers every `clean_every` rows. Between clean-ups rows that no window reaches any
// more stay and are met. Only benchmarks use them.
//
//   RippleJoin   everything that the other side has buffered is looked at
//   XJoin        a hash table per side; what has the same key is looked at
//
// Both are operators of two inputs, as published, so more streams are a left-deep pipeline, which is how the
// paper runs every join (its figure 4): the left input of a step is a stream or the tuples of the step below,
// and both inputs are buffered, tuples with the times of their oldest and newest row. To join m streams in
// one operator, without these buffers, came after both, and is what HW-join is here. Kinder than the
// originals where a benchmark should not decide by it: no payload, nothing on disk, no call a row and step.

#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "m_way_streams.h"

namespace streamjoin::bench {

struct OlderJoinOptions {
  Duration window = 0;
  size_t clean_every = 10000;
};

/// Rows of the first streams, or one row.
template <size_t kStreams>
struct BufferedTuple {
  Time oldest;
  Time newest;
  Code key;
  std::array<RowRef, kStreams - 1> rows;  // of one row: the first
};

template <size_t kStreams>
class RippleBuffer {
 public:
  using Tuple = BufferedTuple<kStreams>;

  void add(const Tuple& tuple) {
    heads_.push_back({tuple.oldest, tuple.newest, tuple.key});
    rows_.push_back(tuple.rows);
  }
  /// Visits tuples of the key: oldest, newest, rows.
  template <typename Visit>
  void look(Code key, Visit visit) const {
    for (size_t i = 0; i < heads_.size(); ++i) {
      if (heads_[i].key == key) visit(heads_[i].oldest, heads_[i].newest, rows_[i]);
    }
  }
  /// Takes out what has its oldest row before `time`.
  void remove_before(Time time) {
    size_t kept = 0;
    for (size_t i = 0; i < heads_.size(); ++i) {
      if (heads_[i].oldest < time) continue;
      heads_[kept] = heads_[i];
      rows_[kept++] = rows_[i];
    }
    heads_.resize(kept);
    rows_.resize(kept);
  }

 private:
  struct Head {
    Time oldest;
    Time newest;
    Code key;
  };
  std::vector<Head> heads_;
  std::vector<std::array<RowRef, kStreams - 1>> rows_;
};

template <size_t kStreams>
class XJoinBuffer {
 public:
  using Tuple = BufferedTuple<kStreams>;

  void add(const Tuple& tuple) { table_[tuple.key].push_back(tuple); }
  template <typename Visit>
  void look(Code key, Visit visit) const {
    const auto found = table_.find(key);
    if (found == table_.end()) return;
    for (const Tuple& tuple : found->second) visit(tuple.oldest, tuple.newest, tuple.rows);
  }
  void remove_before(Time time) {
    for (auto& [key, tuples] : table_)
      std::erase_if(tuples, [=](const Tuple& tuple) { return tuple.oldest < time; });
    std::erase_if(table_, [](const auto& entry) { return entry.second.empty(); });
  }

 private:
  std::unordered_map<Code, std::vector<Tuple>> table_;
};

/// A pipeline: step s joins the tuples of the streams before s with stream s.
template <size_t kStreams, typename Buffer>
class OlderJoin {
 public:
  explicit OlderJoin(OlderJoinOptions options) : options_(options) { clocks_.fill(kBeginning); }

  size_t push(std::span<const TimedRow> rows) {
    found_.clear();
    for (const TimedRow& row : rows) take(row);
    return found_.size() / kStreams;
  }

 private:
  using Tuple = BufferedTuple<kStreams>;

  void take(const TimedRow& row) {
    Tuple tuple{row.time, row.time, row.key, {}};
    tuple.rows[0] = {row.row, 0};
    clocks_[row.stream] = row.time;
    if (row.stream == 0) {
      go_on(1, tuple);
    } else {
      from_the_right(row.stream, tuple);
    }
    if (++rows_ % options_.clean_every == 0) clean();
  }

  // A row of stream `step` meets the tuples on its left.
  void from_the_right(size_t step, const Tuple& row) {
    right_[step].add(row);
    left_[step].look(row.key, [&](Time oldest, Time newest, const auto& rows) {
      if (!in_window(oldest, newest, row.oldest)) return;
      extended(step, oldest, newest, row.key, rows, row.oldest, row.rows[0]);
    });
  }

  // A tuple of the streams before `step` meets the rows on its right.
  void go_on(size_t step, const Tuple& tuple) {
    left_[step].add(tuple);
    right_[step].look(tuple.key, [&](Time time, Time, const auto& rows) {
      if (!in_window(tuple.oldest, tuple.newest, time)) return;
      extended(step, tuple.oldest, tuple.newest, tuple.key, tuple.rows, time, rows[0]);
    });
  }

  template <typename Rows>
  void extended(size_t step, Time oldest, Time newest, Code key, const Rows& rows, Time time, RowRef last) {
    if (step + 1 == kStreams) {
      found_.insert(found_.end(), rows.begin(), rows.end());
      found_.push_back(last);
    } else if constexpr (kStreams > 2) {
      Tuple whole{std::min(oldest, time), std::max(newest, time), key, rows};
      whole.rows[step] = last;
      go_on(step + 1, whole);
    }
  }

  bool in_window(Time oldest, Time newest, Time time) const {
    return time >= newest - options_.window && time <= oldest + options_.window;
  }

  // What lies more than the window before the last rows of all streams on the other side.
  void clean() {
    Time left = kEnd;
    for (size_t step = 1; step < kStreams; ++step) {
      left = std::min(left, clocks_[step - 1]);
      if (clocks_[step] != kBeginning) left_[step].remove_before(clocks_[step] - options_.window);
      if (left != kBeginning) right_[step].remove_before(left - options_.window);
    }
  }

  OlderJoinOptions options_;
  std::array<Buffer, kStreams> left_;
  std::array<Buffer, kStreams> right_;
  std::array<Time, kStreams> clocks_;
  std::vector<RowRef> found_;
  size_t rows_ = 0;
};

/// The join of a number of streams, from 2 to 6.
template <template <size_t> typename Buffer, size_t kStreams = 2>
RunTimes run_older_join(size_t streams, OlderJoinOptions options, std::span<const TimedRow> rows) {
  if (streams == kStreams) return run_rows(OlderJoin<kStreams, Buffer<kStreams>>(options), rows);
  if constexpr (kStreams < 6) return run_older_join<Buffer, kStreams + 1>(streams, options, rows);
  require(streams, kStreams, "streams of an older join");
  return {};
}

inline RunTimes run_ripple_join(size_t streams, OlderJoinOptions options, std::span<const TimedRow> rows) {
  return run_older_join<RippleBuffer>(streams, options, rows);
}

inline RunTimes run_x_join(size_t streams, OlderJoinOptions options, std::span<const TimedRow> rows) {
  return run_older_join<XJoinBuffer>(streams, options, rows);
}

}  // namespace streamjoin::bench
