// TuplePipeline: NLW-join as the W-join paper draws it, a left-deep pipeline of binary steps.
//
//   A --.
//        step 1 --(a, b)--.
//   B --'                  step 2 --(a, b, c)-->
//   C --------------------'
//
// The left input of a step is the first stream or the tuples of the step below, with the times of all their
// rows; the right input is a stream. What comes on one side is compared with everything buffered on the
// other: it must lie in the period that the rows bound so far leave, have equal keys, and satisfy the
// predicates whose last stream the step binds. Right buffers are the states of the join; left buffers are
// here. A silent stream stops nothing.
//
// Invariants (validate() checks the first two):
//   1. A buffered tuple has a node of each stream before its step; none of them has been freed.
//   2. Its times are those of its rows, and it satisfies an alternative of the windows as far as it goes.
//   3. Between calls, left buffers hold every such tuple of live rows, but for rows that came behind the
//      clock since the last push: catch_up() adds those.
// Cost: everything buffered on the other side for each row or tuple that comes; tuples are stored, which
// TupleExtender does not. Owned by one MultiJoin; one thread.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/join/tuple_extender.h"

namespace streamjoin {

class TuplePipeline {
 public:
  /// `plan` is that of the first stream: the others follow as they are declared.
  TuplePipeline(const WindowMatrix& matrix, ProbingPlan plan, std::span<const Conjunct> conjuncts,
                std::vector<const StreamState*> states);

  /// A call begins: what one that failed has left is forgotten.
  void begin();
  /// Appends the results of rows of a batch, m row references each. The tuples in the making wait for
  /// absorb(). Rows and tuples that have a row older than limits[stream] are passed over.
  void extend(size_t origin, const StreamBatch& batch, std::span<const uint32_t> rows,
              std::span<const Time> limits, std::vector<RowRef>& results);
  /// The rows have been stored: nodes[i] is where row i of the batch is now, kNoNode if it is nowhere.
  void absorb(size_t origin, std::span<const uint32_t> nodes);

  /// A row has been stored without being joined.
  void stored_behind(size_t stream, uint32_t node) { behind_.push_back({stream, node}); }
  /// Makes the tuples of such rows. If a predicate throws, the rest is made the next time.
  void catch_up();

  /// Lets go of tuples with dead rows. Call it before their nodes are freed.
  void prune();

  /// Buffered tuples of two and more rows.
  size_t tuples() const;
  size_t memory_bytes() const;
  std::string validate() const;
  /// The states have been swept; rows are numbered as they lie on their time lists.
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  /// Tuples of the first `width` streams. A row is its node, or its number in the batch that is joined.
  struct Tuples {
    size_t width = 0;
    std::vector<uint32_t> rows{};
    std::vector<Time> times{};
    std::vector<WindowMatrix::Mask> masks{};

    size_t size() const { return masks.size(); }
    const uint32_t* rows_of(size_t tuple) const { return rows.data() + tuple * width; }
    const Time* times_of(size_t tuple) const { return times.data() + tuple * width; }
    void add(const uint32_t* first_rows, const Time* first_times, uint32_t row, Time time,
             WindowMatrix::Mask mask);
    void append(const Tuples& others, size_t tuple);
    /// Keeps tuples from `from` on for which `keep(tuple)` holds.
    template <typename Keep>
    void keep_if(size_t from, Keep keep);
    void clear();
  };
  struct Behind {
    size_t stream;
    uint32_t node;
  };
  class Block;  // tuples as a predicate sees them
  static constexpr size_t kBlock = 4096;

  Tuples start(std::span<const uint32_t> rows);
  Tuples from_the_right(std::span<const uint32_t> rows);
  Tuples from_the_left(size_t step, const Tuples& tuples);
  std::span<const size_t> conjuncts_of(size_t step) const;
  void filter(size_t step, Tuples& tuples, size_t from);
  WindowMatrix::Mask fitting(WindowMatrix::Mask mask, const Time* times, size_t stream, Time time) const;
  bool is_alive(const uint32_t* rows, size_t width) const;
  bool waits(size_t stream, uint32_t node) const;

  Time time_of(uint32_t row) const;
  Code key_of(size_t stream, size_t position, uint32_t row) const;
  NumericValue value_of(size_t stream, size_t slot, uint32_t row) const;
  RowRef reference(size_t stream, uint32_t row) const;

  const WindowMatrix& matrix_;
  const ProbingPlan plan_;
  const std::vector<Conjunct> conjuncts_;
  const std::vector<const StreamState*> states_;
  std::vector<Tuples> left_;     // by step, of as many rows as there are streams before it
  std::vector<Tuples> pending_;  // by step: will be there once their rows are stored
  std::vector<Behind> behind_;

  // Of the call that is running.
  size_t origin_ = 0;
  const StreamBatch* batch_ = nullptr;  // nullptr: rows of the origin are nodes too
  std::span<const Time> limits_;
  std::vector<uint8_t> holds_;
};

}  // namespace streamjoin
