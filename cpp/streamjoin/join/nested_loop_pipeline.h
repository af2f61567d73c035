// NestedLoopPipeline: NLW-join as the W-join paper draws it, a left-deep pipeline of binary steps.
//
//   A --.
//        step B --(a, b)--.
//   B --'                  step C --(a, b, c)-->
//   C --------------------'
//
// The left input of a step is a stream or the tuples of the step below, with the times of all their rows; the
// right input is a stream. Both are buffered. What comes on one side is compared with all of the other side
// that lies in its period: where the windows to the rows bound so far overlap. What no later row of the other
// side can reach leaves the buffer when that side is next looked through. A silent stream stops nothing.
//
// Invariants:
//   1. A left tuple of step s is buffered until clock(s) is past its period; a right row until the clocks of
//      all streams on the left are past its reach.
//   2. A result is put out with its last row, so it comes once.
// Cost: every buffered row or tuple of the other side for each row or tuple that comes; intermediate tuples
// are stored, which MultiJoin does not. For comparison: the operator runs MultiJoin. One thread.

#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "streamjoin/base/code.h"
#include "streamjoin/join/window_matrix.h"
#include "streamjoin/state/nodes.h"

namespace streamjoin {

struct PipelineRow {
  Time time;
  Code key;
  RowRef row;
};

class NestedLoopPipeline {
 public:
  /// Whether a row goes with a tuple of rows of the streams before its own.
  using Condition = std::function<bool(std::span<const PipelineRow> tuple, const PipelineRow& row)>;

  NestedLoopPipeline(WindowMatrix matrix, Condition condition)
      : matrix_(std::move(matrix)),
        condition_(std::move(condition)),
        left_(matrix_.streams()),
        right_(matrix_.streams()),
        clocks_(matrix_.streams(), kBeginning) {
    if (matrix_.streams() < 2 || matrix_.alternatives() != 1)
      throw UsageError("a pipeline needs at least two streams and one matrix of windows");
  }

  /// Takes the next row of a stream, in its time order. Appends results, one row per stream each.
  void push(size_t stream, const PipelineRow& row, std::vector<PipelineRow>& results) {
    clocks_[stream] = row.time;
    tuples_.clear();
    if (stream == 0) {
      tuples_.push_back(row);
    } else {
      from_the_right(stream, row);
    }
    for (size_t step = stream + 1; step < matrix_.streams(); ++step) from_the_left(step);
    results.insert(results.end(), tuples_.begin(), tuples_.end());
  }

  /// Rows in all buffers; a tuple counts as many as it has.
  size_t buffered_rows() const {
    size_t rows = 0;
    for (const auto& buffer : left_) rows += buffer.size();
    for (const auto& buffer : right_) rows += buffer.size();
    return rows;
  }

 private:
  Period period(std::span<const PipelineRow> tuple, size_t stream) const {
    Period period;
    for (size_t other = 0; other < tuple.size(); ++other)
      matrix_.narrow(0, stream, other, tuple[other].time, period);
    return period;
  }

  // A row of stream `step` meets the left buffer of its step; tuples_ becomes what they make.
  void from_the_right(size_t step, const PipelineRow& row) {
    std::vector<PipelineRow>& left = left_[step];
    size_t kept = 0;
    for (size_t at = 0; at < left.size(); at += step) {
      const std::span<const PipelineRow> tuple(&left[at], step);
      const Period reach = period(tuple, step);
      if (reach.last < clocks_[step]) continue;
      if (reach.contains(row.time) && condition_(tuple, row)) {
        tuples_.insert(tuples_.end(), tuple.begin(), tuple.end());
        tuples_.push_back(row);
      }
      std::move(left.begin() + static_cast<ptrdiff_t>(at), left.begin() + static_cast<ptrdiff_t>(at + step),
                left.begin() + static_cast<ptrdiff_t>(kept));
      kept += step;
    }
    left.resize(kept);
    right_[step].push_back(row);
  }

  // tuples_ meet the right buffer of a step and become what they make; they stay in its left buffer.
  void from_the_left(size_t step) {
    if (tuples_.empty()) return;
    std::erase_if(right_[step], [&](const PipelineRow& row) { return is_out_of_reach(step, row.time); });
    made_.clear();
    for (size_t at = 0; at < tuples_.size(); at += step) {
      const std::span<const PipelineRow> tuple(&tuples_[at], step);
      const Period reach = period(tuple, step);
      for (const PipelineRow& row : right_[step]) {
        if (!reach.contains(row.time) || !condition_(tuple, row)) continue;
        made_.insert(made_.end(), tuple.begin(), tuple.end());
        made_.push_back(row);
      }
    }
    left_[step].insert(left_[step].end(), tuples_.begin(), tuples_.end());
    std::swap(tuples_, made_);
  }

  bool is_out_of_reach(size_t step, Time time) const {
    for (size_t other = 0; other < step; ++other) {
      const Duration reach = matrix_.upper(0, step, other);
      if (clocks_[other] == kBeginning || reach == kEnd || clocks_[other] <= add_saturating(time, reach))
        return false;
    }
    return true;
  }

  const WindowMatrix matrix_;
  const Condition condition_;
  std::vector<std::vector<PipelineRow>> left_;  // by step: tuples of as many rows as there are streams before
  std::vector<std::vector<PipelineRow>> right_;  // by step
  std::vector<Time> clocks_;
  std::vector<PipelineRow> tuples_;
  std::vector<PipelineRow> made_;
};

}  // namespace streamjoin
