// MultiJoin: the inner window join of m streams in one operator, without intermediate results.
//
//   row of i  ->  extend it by rows of every other state  ->  raise i's clock  ->  forget what no row can
//   reach
//             ->  store it in i's state
//
// The streams need not be synchronised. A row of i is forgotten once, for every other stream j, clock(j) is
// past time + upper(i, j): until then a row of some j may still come for which it is needed. A call finds all
// results first and changes the states afterwards, so what a predicate throws, or an error policy, leaves the
// join as it was. All rows of a call are of one stream, so this is the same as row by row: what a row of the
// call makes the others forget cannot match the rows behind it, and a late row is told what has been
// forgotten before it.
//
// Merge, mode 1: where no row can come behind a clock, a row also goes once one stream has left it behind:
// when the oldest row of j, or its clock if it stores none, is past time + upper(i, j), or for GCA past time
// + the largest bound of all pairs. Rows that are left begin with the first that may be part of a result.
// Otherwise they stay, for a late row may need them; the sweep then passes over them.
//
// The algorithms differ in how rows are found: hash by the indexes of the states, merge by their time-sorted
// lists, nested_loop by looking at every row; nested_loop_pipeline does so in binary steps, and is the one
// that stores intermediate results. One thread.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/join/binary_join.h"
#include "streamjoin/join/multi_punctuations.h"
#include "streamjoin/join/probing_order.h"
#include "streamjoin/join/results.h"
#include "streamjoin/join/tuple_extender.h"
#include "streamjoin/join/tuple_pipeline.h"
#include "streamjoin/join/window_matrix.h"
#include "streamjoin/state/stream_state.h"

namespace streamjoin {

struct MultiJoinOptions {
  MultiAlgorithm algorithm = MultiAlgorithm::kHash;
  /// alternatives[k][i][j]: the largest time(j) - time(i), closed; open without value.
  std::vector<std::vector<std::vector<std::optional<Duration>>>> alternatives;
  LatePolicy late = LatePolicy::kDrop;
  /// Whether insert_behind() will be called.
  bool rows_come_behind = false;
  ViolationPolicy violation = ViolationPolicy::kDrop;
  /// Per stream, whether its rows come in any order, such as the results of another join: they do not raise
  /// its clock, only `advance` does. Empty: all come in order.
  std::vector<bool> unordered;
  /// Per stream, its attribute classes without repetition.
  std::vector<std::vector<size_t>> classes;
  /// Per stream, how many numbers are pushed with each row.
  std::vector<size_t> value_slots;
  std::vector<Conjunct> conjuncts;
  PunctuationOptions punctuations;
};

/// What one call produced. `rows` has one reference per stream for each result; the side of a refused row is
/// the number of its stream.
struct MultiResults {
  std::vector<RowRef> rows;
  std::vector<OutputPunctuation> punctuations;  // each says `*` of every class
  std::vector<ClosedPattern> closed;            // they stand before the former
  std::vector<RefusedRow> late;
  std::vector<RefusedRow> violations;
};

class MultiJoin {
 public:
  /// `dictionaries[c]` is that of class c; nullptr where codes are values.
  MultiJoin(MultiJoinOptions options, const std::vector<KeyDictionary*>& dictionaries);

  /// Joins a batch. Throws RefusedBatch under an error policy, and whatever a predicate throws; nothing has
  /// changed then.
  void push(size_t stream, const StreamBatch& batch, MultiResults& results);
  /// The results that `push` would give, one reference per stream for each; throws what it would throw.
  /// Changes nothing.
  std::vector<RowRef> rehearse(size_t stream, const StreamBatch& batch);
  /// Stores a row that comes behind `clock`: it meets the rows to come, not those before it. False if it is
  /// late: nothing from `clock` on can reach it, or its stream has ended.
  bool insert_behind(size_t stream, const StreamBatch& batch, size_t row, Time clock);
  bool is_late(size_t stream, Time time, Time clock) const {
    const std::vector<Time> clocks(streams(), clock);
    return time < matrix_.forget_before(stream, clocks);
  }
  /// Raises a clock: no row of the stream before `clock` comes any more. A lower one changes nothing.
  void advance(size_t stream, Time clock, MultiResults& results);
  /// No row of the stream comes any more that matches `pattern`, which has one attribute per class of it.
  /// Without `punctuations.used` nothing is made of it.
  void punctuate(size_t stream, const KeyPattern& pattern, Time time, MultiResults& results);
  /// No row of the stream comes any more.
  void end(size_t stream, Time time, MultiResults& results);
  void finish(MultiResults& results);

  size_t streams() const { return matrix_.streams(); }
  Time clock(size_t stream) const { return clocks_[stream]; }
  /// The earliest time of a row of the stream in a result to come: such a row is stored, or comes itself.
  Time horizon(size_t stream) { return std::min(clocks_[stream], states_[stream]->oldest()); }
  bool has_ended(size_t stream) const { return ended_[stream] != 0; }
  const StreamState& state(size_t stream) const { return *states_[stream]; }
  std::vector<uint32_t> take_empty_batches(size_t stream) { return states_[stream]->take_empty_batches(); }
  /// Moves the rows of a stream to one batch, as StreamState does.
  std::vector<RowRef> move_rows_to(size_t stream, uint32_t batch);
  /// Frees every dead row.
  void free_dead_rows();
  /// Intermediate results that are stored: none but of the pipeline.
  size_t stored_tuples() const { return pipeline_ == nullptr ? 0 : pipeline_->tuples(); }
  SideCounters& counters(size_t stream) { return counters_[stream]; }
  const SideCounters& counters(size_t stream) const { return counters_[stream]; }
  /// In which order a new row of the stream meets the others.
  std::vector<size_t> probing_order(size_t stream) const;
  uint64_t rows_out() const { return rows_out_; }
  /// Promises that are remembered, the end of the stream among them.
  size_t promises_held(size_t stream) const;
  uint64_t punctuations_out(PropagationKind kind) const {
    return punctuations_out_[static_cast<size_t>(kind)];
  }
  const MultiJoinOptions& options() const { return options_; }

  size_t memory_bytes() const;
  std::string validate() const;
  void save(ArchiveWriter& out);
  void load(ArchiveReader& in);

 private:
  /// A row that goes on to be probed.
  struct Admitted {
    uint32_t row;
    bool late;
    Time clock;  // of its stream when the row comes
  };
  /// Which rows of a batch take part, which break a promise, how many are late, and the clock behind them.
  struct Admission {
    std::vector<Admitted> admitted;
    std::vector<uint32_t> violating;
    size_t late = 0;
    Time clock = kBeginning;
  };
  static constexpr uint64_t kRevisedEvery = 1024;  // rows of a stream

  /// The clock of a stream after a row, if it was `clock` before it.
  Time clock_after(size_t stream, Time clock, Time row) const {
    return options_.unordered.empty() || !options_.unordered[stream] ? std::max(clock, row) : clock;
  }
  void admit(size_t stream, const StreamBatch& batch);
  void probe(size_t stream, const StreamBatch& batch, std::span<const Admitted> admitted, ProbingOrder& order,
             std::vector<RowRef>& found);
  void count_refused(size_t stream, const StreamBatch& batch, MultiResults& results);
  void store(size_t stream, const StreamBatch& batch, std::span<const Admitted> admitted);
  void sweep();
  bool drops_early() const;
  void drop_what_was_left_behind();
  void raise_clock(size_t stream, Time clock);
  void end_output_if_done(Time time, MultiResults& results);

  // Only with punctuations (multi_join_punctuations.cc).
  void start_punctuations(const std::vector<KeyDictionary*>& dictionaries);
  bool joins_row_by_row(size_t stream) const;
  void join_row_by_row(size_t stream, const StreamBatch& batch, std::span<const Admitted> admitted,
                       std::vector<RowRef>& found);
  bool breaks_promise(size_t stream, const StreamBatch& batch, size_t row);
  void take_rows(size_t stream, const StreamBatch& batch, std::span<const Admitted> admitted);
  void take_closed(MultiResults& results);

  const MultiJoinOptions options_;
  const WindowMatrix matrix_;
  ProbingOrder order_;
  TupleExtender extender_;
  std::vector<std::unique_ptr<StreamState>> states_;
  std::vector<const StreamState*> readable_;
  std::vector<SideCounters> counters_;
  std::vector<Time> clocks_;
  std::vector<uint8_t> ended_;
  std::vector<Time> forget_before_;                  // by stream, as the clocks stand
  std::unique_ptr<MultiPunctuations> punctuations_;  // nullptr: none on values
  std::unique_ptr<TuplePipeline> pipeline_;          // nullptr: another algorithm
  bool output_ended_ = false;
  uint64_t rows_out_ = 0;
  std::array<uint64_t, kPropagationKinds> punctuations_out_{};

  // Kept for their memory.
  const std::vector<Time> no_limits_;
  Admission admission_;
  std::vector<uint32_t> run_;
  std::vector<uint32_t> stored_;  // the pipeline's: by row of the batch, its node
  std::vector<Code> keys_;
  std::vector<NumericValue> values_;
};

}  // namespace streamjoin
