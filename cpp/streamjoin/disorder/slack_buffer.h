// SlackBuffer: K-slack, which puts the rows of one stream in order.
//
//   row at t  ->  local time T = max(T, t)  ->  wait  ->  leaves when t + K <= T, smallest time first
//
// A row whose delay T - t is larger than K leaves at once and is still out of order. A heartbeat at t
// promises that every row up to t is here, so these leave whatever K is. A punctuation waits like a row of
// its time but says nothing about time: it does not raise T. The owner puts in what arrives and takes out
// what is due. Invariants (validate() checks them): what waits is later than the bound of the last time it
// took. Cost: that of SortedBuffer. One per stream, owned by the DisorderStage. One thread.

#pragma once

#include <algorithm>

#include "streamjoin/disorder/sorted_buffer.h"

namespace streamjoin {

class SlackBuffer {
 public:
  /// Raises the local time and returns the delay of a row that arrives at `time`.
  Duration arrive(Time time) {
    local_time_ = std::max(local_time_, time);
    return subtract_saturating(local_time_, time);
  }
  /// A promise that no row at or before `time` comes any more.
  void promise(Time time) {
    promised_ = std::max(promised_, time);
    local_time_ = std::max(local_time_, time);
  }

  /// A row that has arrived, or a punctuation.
  void push(const WaitingRow& row) { waiting_.push(row); }

  /// What is not later than this need not wait under `slack`.
  Time bound_under(Duration slack) const {
    const Time in_order = local_time_ == kBeginning ? kBeginning : subtract_saturating(local_time_, slack);
    return std::max(promised_, in_order);
  }
  /// What waits up to `bound` is taken out before anything else comes; whether there is anything.
  bool is_due(Time bound) {
    bound_ = bound;
    return !waiting_.empty() && waiting_.front().time <= bound;
  }
  /// The first of what waits. It must not be empty.
  WaitingRow take_first() {
    const WaitingRow row = waiting_.front();
    waiting_.pop();
    return row;
  }

  /// The largest time seen or promised; kBeginning before the first.
  Time local_time() const { return local_time_; }
  Time promised() const { return promised_; }
  size_t size() const { return waiting_.size(); }
  SortedBuffer& waiting() { return waiting_; }
  size_t memory_bytes() const { return waiting_.memory_bytes(); }

  std::string validate() const {
    if (!waiting_.empty() && waiting_.front().time <= bound_) return "slack buffer: a row waits too long";
    return waiting_.validate();
  }
  void save(ArchiveWriter& out) const {
    out.value(local_time_);
    out.value(promised_);
    out.value(bound_);
    waiting_.save(out);
  }
  void load(ArchiveReader& in) {
    local_time_ = in.value<Time>();
    promised_ = in.value<Time>();
    bound_ = in.value<Time>();
    waiting_.load(in);
  }

 private:
  SortedBuffer waiting_;
  Time local_time_ = kBeginning;
  Time promised_ = kBeginning;
  Time bound_ = kBeginning;
};

}  // namespace streamjoin
