// DisorderInput: holds rows that come out of order until they may join, and brings what joins into order.
//
//   batch  ->  held: reference, codes, values  ->  DisorderStage  ->  group of released rows
//                                                                          |
//   results by the row that completes them  <-  OrderedJoin  <-  rows of stream 0, of stream 1, ..
//
// A join needs each stream in order, not the streams synchronised, so a group goes stream by stream, in
// blocks as large as calls make them, up to kBlock rows; results are put afterwards in the order in which the
// rows that complete them were released. A row behind the clock and a punctuation stand for themselves: what
// was released before goes first. A payload batch is in use while rows of it wait. What the join throws
// leaves the group unfinished: `resume` goes on with it, and nothing is lost or joined twice. Cost: O(m) a
// row and a result beside the join and the stage. Owned by an operator. One thread.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/disorder/disorder_stage.h"
#include "streamjoin/join/multi_join.h"

namespace streamjoin {

/// The join that rows in order go to. Results pile up in the operator until a call gives them out.
class OrderedJoin {
 public:
  virtual ~OrderedJoin() = default;
  /// Rows of one stream in order. May throw before anything has changed.
  virtual void join(size_t stream, const StreamBatch& rows) = 0;
  /// One row behind `clock`: false if it is late.
  virtual bool insert_behind(size_t stream, const StreamBatch& row, Time clock) = 0;
  virtual bool is_late(size_t stream, Time time, Time clock) const = 0;
  /// A late row, kept or not.
  virtual void refuse(size_t stream, RowRef row, Duration late_by) = 0;
  virtual void give_up(size_t stream, RowRef row) = 0;
  virtual void punctuate(size_t stream, uint32_t punctuation) = 0;
  /// No row in order of any stream comes before `clock` any more.
  virtual void raise_clocks(Time clock) = 0;
  /// The rows of a stream no longer hold these codes of its class number `position`.
  virtual void let_go(size_t stream, size_t position, std::span<const Code> codes) = 0;
  /// Results that were not given out yet, one reference per stream each; their order may be changed.
  virtual std::span<RowRef> results() = 0;
};

struct DisorderInputOptions {
  DisorderOptions stage;
  LatePolicy late = LatePolicy::kDrop;
  /// Per stream: codes and numbers that come with each row.
  std::vector<size_t> classes;
  std::vector<size_t> value_slots;
};

class DisorderInput : private JoinSink {
 public:
  DisorderInput(DisorderInputOptions options, OrderedJoin& join);

  /// Goes on with a call that the join has broken off; before every other call.
  void resume();
  /// Takes the rows of a batch; their codes are now held by them. Under the error policy throws RefusedBatch
  /// if one of them would be late, before anything has changed.
  void push(size_t stream, const StreamBatch& rows);
  /// Since the last `resume`.
  bool took_batch() const { return took_batch_; }
  void check_late(size_t stream, std::span<const Time> times) const;
  void punctuate(size_t stream, Time time, uint32_t punctuation);
  void advance(size_t stream, Time time);
  void look_at_clock(Time now);
  void finish();

  const DisorderStage& stage() const { return stage_; }
  Time clock() const { return stage_.clock(); }

  size_t waiting_rows(size_t stream) const { return held_[stream].rows; }
  size_t rows_of_batch(size_t stream, uint32_t batch) const;
  /// Batches of which no row waits any more, since the last call.
  std::vector<uint32_t> take_drained_batches(size_t stream);
  /// Moves the waiting rows of a stream to `batch`, behind the `before` rows there, and says where they were.
  std::vector<RowRef> move_rows_to(size_t stream, uint32_t batch, size_t before);

  size_t memory_bytes() const;
  std::string validate() const;
  /// Rows are saved as those behind the `before[stream]` rows of batch 0. Throws UsageError while a call is
  /// unfinished.
  void save(ArchiveWriter& out, std::span<const size_t> before);
  void load(ArchiveReader& in);
  /// `visit(stream, position, code)` for each code that a waiting row holds.
  template <typename Visit>
  void for_each_code(Visit&& visit) {
    for (size_t stream = 0; stream < held_.size(); ++stream) {
      stage_.for_each_waiting(static_cast<uint32_t>(stream), [&](const WaitingRow& row) {
        if (row.is_punctuation()) return;
        for (size_t position = 0; position < held_[stream].columns.keys.size(); ++position)
          visit(stream, position, held_[stream].columns.keys[position][row.index]);
      });
    }
  }

 private:
  struct Columns {
    std::vector<RowRef> refs;
    std::vector<uint8_t> unmatchable;
    std::vector<std::vector<Code>> keys;
    std::vector<std::vector<NumericValue>> values;
  };
  /// Rows of a stream that wait, by slot.
  struct Held {
    Columns columns;
    std::vector<uint32_t> free;
    size_t rows = 0;
    std::vector<uint32_t> rows_of_batch;
    std::vector<uint32_t> drained;
    /// By batch and row: the number of its release; zero while it waits. Empty: released before this group.
    std::vector<std::vector<uint64_t>> releases;
    std::vector<uint64_t> spare;  // of a batch that is drained, for the next
  };
  /// Rows of a stream in the group: where they wait, and what they hold once they are taken from there.
  struct Run {
    std::vector<Time> times;
    std::vector<uint32_t> slots;
    std::vector<uint32_t> order;  // of their release in the group, from 1
    Columns columns;
    bool any_unmatchable = false;
  };
  static constexpr size_t kBlock = 2048;  // rows that join together: few enough to stay in the caches
  class LateFinder;

  void join(std::span<const ReleasedRow> rows, std::span<uint64_t> results) override;
  void add(const ReleasedRow& released, size_t place);
  void join_behind(const ReleasedRow& released);
  void flush(std::span<uint64_t> results);
  void order_results(std::span<uint64_t> results);
  const uint64_t* release_at(size_t stream, RowRef row) const;
  void take_from_slots(size_t stream);
  void clear(size_t stream);
  static StreamBatch batch_of(const Run& run);

  DisorderInputOptions options_;
  OrderedJoin& join_;
  DisorderStage stage_;
  std::vector<Held> held_;
  // The group under way.
  std::vector<Run> runs_;
  std::vector<uint32_t> places_;  // of the rows of the runs among the released ones, by release
  uint64_t before_ = 0;           // releases before this group
  Time clock_ = kBeginning;       // as far as rows have been handed on
  size_t at_ = 0;
  bool took_batch_ = false;
  size_t flushing_ = 0;
  size_t ordered_ = 0;  // results that are in order
  std::vector<uint32_t> slots_;
  std::vector<uint32_t> completed_by_;
  std::vector<uint32_t> starts_;
  std::vector<RowRef> sorted_;

 public:
  /// The results were given out.
  void results_taken() { ordered_ = 0; }
};

}  // namespace streamjoin
