// The hot loops of WindowState, in a header so that the join's own loops take them in. Included by
// window_state.h alone.

#pragma once

#include <algorithm>

#include "streamjoin/state/window_state.h"

namespace streamjoin {

inline uint32_t WindowState::append(Time time, Code key, uint64_t hash, RowRef row, ValueList* slot) {
  const uint32_t index = nodes_.allocate();
  TNode& node = nodes_[index];
  node.start(time, key, row);
  bool added;
  ValueList& list = lists_.add_at(slot, key, hash, index, added);
  if (added) {
    node.next_in_value = index;
    if (dictionary_ != nullptr) dictionary_->reference(key);
  } else {
    TNode& last = nodes_[list.tail()];
    node.next_in_value = last.next_in_value;
    last.next_in_value = index;
    list.set_tail(index);
  }
  ++live_;
  if (row.batch >= batch_rows_.size()) batch_rows_.resize(row.batch + 1);
  ++batch_rows_[row.batch];
  return index;
}

inline uint32_t WindowState::insert(Time time, Code key, uint64_t hash, RowRef row, ValueList* slot) {
  const uint32_t index = append(time, key, hash, row, slot);
  if (tail_ != kNoNode) nodes_[tail_].next_in_time = index;
  tail_ = index;
  if (sweep_ == kNoNode) sweep_ = index;
  if (head_ == kNoNode) {
    head_ = index;
    oldest_ = std::min(oldest_, time);
  }
  return index;
}

inline void WindowState::refresh_oldest() {
  oldest_ = head_ == kNoNode ? kEnd : nodes_[head_].time;
  if (!late_.empty()) oldest_ = std::min(oldest_, late_.front().time);
}

inline void WindowState::take_out(TNode& node) {
  node.mark(TNode::kDead);
  count_out(node);
  ++(node.is(TNode::kLate) ? purged_late_ : purged_);
}

// `previous` of the oldest row is the newest: the list is a circle.
inline void WindowState::unlink_from_value_list(ValueList& list, uint32_t previous, uint32_t index) {
  TNode& node = nodes_[index];
  nodes_[previous].next_in_value = node.next_in_value;
  if (list.tail() == index) list.set_tail(previous == index ? kNoNode : previous);
  node.mark(TNode::kOffValueList);
}

inline void WindowState::drop_dead_head(ValueList& list) {
  while (list.has_rows()) {
    const uint32_t head = nodes_[list.tail()].next_in_value;
    if (!nodes_[head].is(TNode::kDead)) return;
    unlink_from_value_list(list, list.tail(), head);
  }
}

template <typename Visitor>
inline void WindowState::walk(ValueList& list, Visitor visitor) {
  drop_dead_head(list);
  if (!list.has_rows()) return;
  const uint32_t last = list.tail();
  uint32_t previous = last;
  for (uint32_t at = nodes_[last].next_in_value;;) {
    TNode& node = nodes_[at];
    const uint32_t following = node.next_in_value;
    if (at != last) nodes_.prefetch(following);
    const Visit visit = visitor(at, node);
    if (visit == Visit::kStop) return;
    if (visit == Visit::kTakeOut) {
      take_out(node);
      unlink_from_value_list(list, previous, at);
    } else {
      previous = at;
    }
    if (at == last) return;
    at = following;
  }
}

template <typename Visitor>
inline void WindowState::look(const ValueList& list, Visitor visitor) const {
  if (!list.has_rows()) return;
  uint32_t at = list.tail();
  do {
    at = nodes_[at].next_in_value;
    if (nodes_[at].is(TNode::kDead)) continue;
    if (visitor(at, nodes_[at]) == Visit::kStop) return;
  } while (at != list.tail());
}

template <typename Leaving>
inline void WindowState::invalidate_before(Time limit, Leaving leaving) {
  if (oldest_ >= limit) return;
  if (!late_.empty()) invalidate_late_before(limit, leaving);
  while (head_ != kNoNode) {
    TNode& node = nodes_[head_];
    if (node.is(TNode::kDead)) {
      --purged_;
    } else {
      if (node.time >= limit) break;
      node.mark(TNode::kDead);
      count_out(node);
      leaving(node);
    }
    ++expired_;
    head_ = node.next_in_time;
  }
  refresh_oldest();
}

template <typename Leaving>
void WindowState::invalidate_late_before(Time limit, Leaving leaving) {
  while (!late_.empty() && late_.front().time < limit) {
    const uint32_t index = pop_late();
    TNode& node = nodes_[index];
    if (node.is(TNode::kDead)) {
      --purged_late_;
    } else {
      node.mark(TNode::kDead);
      count_out(node);
      if (node.next_in_value == index) {
        // The only row of its key: it stays on its value list and is freed as one that expired in order.
        node.next_in_time = sweep_;
        sweep_ = index;
        if (tail_ == kNoNode) tail_ = index;
        ++expired_;
        leaving(node);
        node.unmark(TNode::kLate);
        continue;
      }
      // Dead in the midst of its value list, so it leaves it now: dead rows stay a prefix.
      ValueList& list = *lists_.find(node.key);
      uint32_t previous = list.tail();
      while (nodes_[previous].next_in_value != index) previous = nodes_[previous].next_in_value;
      unlink_from_value_list(list, previous, index);
      leaving(node);
    }
    nodes_.release(index);
  }
}

template <typename Leaving>
inline size_t WindowState::purge(ValueList& list, Leaving leaving) {
  size_t count = 0;
  walk(list, [&](uint32_t, TNode& node) {
    leaving(node);
    ++count;
    return Visit::kTakeOut;
  });
  return count;
}

template <typename Visitor>
inline void WindowState::for_each_row(Visitor visitor) {
  for (uint32_t at = head_; at != kNoNode; at = nodes_[at].next_in_time) {
    if (!nodes_[at].is(TNode::kDead)) visitor(nodes_[at]);
  }
  for (const LateRow& late : late_) {
    if (!nodes_[late.node].is(TNode::kDead)) visitor(nodes_[late.node]);
  }
}

}  // namespace streamjoin
