// The hot loops of WindowState, in a header so that the join's own loops take them in. Included by
// window_state.h alone.

#pragma once

#include <algorithm>

#include "streamjoin/state/window_state.h"

namespace streamjoin {

inline uint32_t WindowState::append(Time time, Code key, uint64_t hash, RowRef row, INode* slot) {
  const uint32_t index = nodes_.allocate();
  nodes_[index].start(time, key, row);
  bool added;
  INode& list = index_.add_at(slot, key, hash, added);
  if (added && dictionary_ != nullptr) dictionary_->reference(key);
  if (list.has_rows()) {
    nodes_[list.tail()].next_in_value = index;
  } else {
    list.head = index;
  }
  list.set_tail(index);
  ++live_;
  if (row.batch >= batch_rows_.size()) batch_rows_.resize(row.batch + 1);
  ++batch_rows_[row.batch];
  return index;
}

inline uint32_t WindowState::insert(Time time, Code key, uint64_t hash, RowRef row, INode* slot) {
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

inline void WindowState::unlink_from_value_list(INode& key, uint32_t previous, uint32_t index) {
  TNode& node = nodes_[index];
  if (previous == kNoNode) {
    key.head = node.next_in_value;
  } else {
    nodes_[previous].next_in_value = node.next_in_value;
  }
  if (key.tail() == index) key.set_tail(previous);
  node.mark(TNode::kOffValueList);
}

inline void WindowState::drop_dead_head(INode& key) {
  while (key.head != kNoNode && nodes_[key.head].is(TNode::kDead)) {
    unlink_from_value_list(key, kNoNode, key.head);
  }
}

template <typename Visitor>
inline void WindowState::walk(INode& key, Visitor visitor) {
  drop_dead_head(key);
  uint32_t previous = kNoNode;
  for (uint32_t at = key.head; at != kNoNode;) {
    TNode& node = nodes_[at];
    const uint32_t following = node.next_in_value;
    if (following != kNoNode) nodes_.prefetch(following);
    const Visit visit = visitor(at, node);
    if (visit == Visit::kStop) return;
    if (visit == Visit::kTakeOut) {
      take_out(node);
      unlink_from_value_list(key, previous, at);
    } else {
      previous = at;
    }
    at = following;
  }
}

template <typename Visitor>
inline void WindowState::look(const INode& key, Visitor visitor) const {
  for (uint32_t at = key.head; at != kNoNode; at = nodes_[at].next_in_value) {
    if (nodes_[at].is(TNode::kDead)) continue;
    if (visitor(at, nodes_[at]) == Visit::kStop) return;
  }
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
      // A late row is dead in the midst of its value list, so it leaves it now: dead rows stay a prefix.
      INode& key = *index_.find(node.key);
      uint32_t previous = kNoNode;
      for (uint32_t at = key.head; at != index; at = nodes_[at].next_in_value) previous = at;
      unlink_from_value_list(key, previous, index);
      node.mark(TNode::kDead);
      count_out(node);
      leaving(node);
      remove_if_idle(index_.find(node.key));
    }
    nodes_.release(index);
  }
}

template <typename Leaving>
inline size_t WindowState::purge(INode& key, Leaving leaving) {
  size_t count = 0;
  walk(key, [&](uint32_t, TNode& node) {
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
