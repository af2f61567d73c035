// SortedBuffer: rows that wait, smallest time first; cheap when they come nearly in order.
//
//   run    [ 3 5 5 8 9 ]  <- a row that is not before the last one goes to the end
//   heap   ( 4 7 )        <- any other row
//   front  the smaller of the two heads
//
// Rows of one time keep the order in which they came, punctuations stand behind them: `rank` says so.
// Invariants (validate() checks them): the run is in order; the heap is a heap.
// Cost: O(1) for a row in order, O(log h) for one of h rows in the heap; `move_until` and `run` let
// neighbours go together. Memory follows the rows that wait. Owned by a SlackBuffer or the Synchronizer. One
// thread.

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/base/time.h"

namespace streamjoin {

/// A row or punctuation on its way to the join. `index` names it to its owner; `delay` is its coarse delay.
struct WaitingRow {
  Time time;
  uint64_t rank;
  uint32_t index;
  uint32_t delay;

  static constexpr uint64_t kPunctuation = uint64_t{1} << 63;
  bool is_punctuation() const { return rank >= kPunctuation; }
  friend bool operator<(const WaitingRow& a, const WaitingRow& b) {
    return a.time != b.time ? a.time < b.time : a.rank < b.rank;
  }
  friend bool operator==(const WaitingRow&, const WaitingRow&) = default;
};

inline void save_row(ArchiveWriter& out, const WaitingRow& row) {
  out.value(row.time);
  out.value(row.rank);
  out.value(row.index);
  out.value(row.delay);
}

inline WaitingRow load_row(ArchiveReader& in) {
  WaitingRow row{};
  row.time = in.value<Time>();
  row.rank = in.value<uint64_t>();
  row.index = in.value<uint32_t>();
  row.delay = in.value<uint32_t>();
  return row;
}

class SortedBuffer {
 public:
  bool empty() const { return head_ == run_.size() && heap_.empty(); }
  size_t size() const { return run_.size() - head_ + heap_.size(); }

  void push(const WaitingRow& row) {
    if (head_ == run_.size() || !(row < run_.back())) {
      run_.push_back(row);
      return;
    }
    heap_.push_back(row);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  /// Adds rows without delay that are in order among themselves; the first has rank `rank`, the next one
  /// more.
  void push_run(std::span<const Time> times, std::span<const uint32_t> indexes, uint64_t rank) {
    // A punctuation of the same time stands behind its rows, also behind those that come after it.
    if (head_ < run_.size() && WaitingRow{times[0], rank, 0, 0} < run_.back()) {
      for (size_t i = 0; i < times.size(); ++i) push({times[i], rank + i, indexes[i], 0});
      return;
    }
    const size_t before = run_.size();
    run_.resize(before + times.size());
    for (size_t i = 0; i < times.size(); ++i) run_[before + i] = {times[i], rank + i, indexes[i], 0};
  }

  /// The first row. The buffer must not be empty.
  const WaitingRow& front() const { return front_is_in_run() ? run_[head_] : heap_.front(); }

  void pop() {
    if (front_is_in_run()) {
      drop(1);
    } else {
      pop_heap();
    }
  }

  /// Moves the rows up to `bound` to the end of another buffer.
  void move_until(Time bound, SortedBuffer& to) {
    const WaitingRow* at = run_.data() + head_;
    const WaitingRow* const end = run_.data() + run_.size();
    const WaitingRow* const first = at;
    const auto move_run = [&](auto&& goes) {
      const WaitingRow* const begin = at;
      while (at != end && goes(*at)) ++at;
      to.append({begin, at});
    };
    while (!heap_.empty() && heap_.front().time <= bound) {
      const WaitingRow& late = heap_.front();
      move_run([&](const WaitingRow& row) { return row < late; });
      to.push(late);
      pop_heap();
    }
    move_run([&](const WaitingRow& row) { return row.time <= bound; });
    drop(static_cast<size_t>(at - first));
  }

  /// Whether every row that waits is in `run`.
  bool is_run() const { return heap_.empty(); }
  std::span<const WaitingRow> run() const { return std::span(run_).subspan(head_); }
  /// Drops the first rows of the run.
  void drop(size_t rows) {
    head_ += rows;
    if (head_ == run_.size()) {
      run_.clear();
      head_ = 0;
    } else if (head_ >= kMinGap && head_ * 2 >= run_.size()) {
      run_.erase(run_.begin(), run_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }

  /// Every waiting row, in no particular order; `visit` may change its index.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (size_t at = head_; at < run_.size(); ++at) visit(run_[at]);
    for (WaitingRow& row : heap_) visit(row);
  }

  size_t memory_bytes() const { return (run_.capacity() + heap_.capacity()) * sizeof(WaitingRow); }

  /// Names the first broken invariant, or is empty.
  std::string validate() const {
    if (head_ > run_.size()) return "sorted buffer: the run's head is behind its end";
    if (!std::is_sorted(run_.begin() + static_cast<std::ptrdiff_t>(head_), run_.end()))
      return "sorted buffer: the run is out of order";
    if (!std::is_heap(heap_.begin(), heap_.end(), later)) return "sorted buffer: the heap is no heap";
    return {};
  }

  void save(ArchiveWriter& out) const {
    out.value<uint64_t>(size());
    SortedBuffer rest = *this;
    for (; !rest.empty(); rest.pop()) save_row(out, rest.front());
  }
  void load(ArchiveReader& in) {
    *this = {};
    const uint64_t rows = in.value<uint64_t>();
    for (uint64_t i = 0; i < rows; ++i) push(load_row(in));
  }

 private:
  static constexpr size_t kMinGap = 1024;  // below that, moving the rest is not worth it
  static bool later(const WaitingRow& a, const WaitingRow& b) { return b < a; }

  void append(std::span<const WaitingRow> rows) {
    if (rows.empty()) return;
    if (head_ == run_.size() || !(rows[0] < run_.back())) {
      run_.insert(run_.end(), rows.begin(), rows.end());
    } else {
      for (const WaitingRow& row : rows) push(row);
    }
  }
  void pop_heap() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
  bool front_is_in_run() const {
    return heap_.empty() || (head_ < run_.size() && run_[head_] < heap_.front());
  }

  std::vector<WaitingRow> run_;
  std::vector<WaitingRow> heap_;
  size_t head_ = 0;
};

}  // namespace streamjoin
