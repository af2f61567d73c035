#include "streamjoin/state/window_state.h"

#include <algorithm>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

constexpr size_t kFetchedAhead = 24;  // expired rows whose index slots are on their way

struct LaterFirst {
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    return a.time != b.time ? a.time > b.time : a.arrival > b.arrival;
  }
};

}  // namespace

bool WindowState::remove_if_idle(ValueList* list, Code key) {
  if (list == nullptr || list->has_rows() || list->promised()) return false;
  remove_list(list, key);
  return true;
}

void WindowState::remove_list(ValueList* list, Code key) {
  if (dictionary_ != nullptr) released_keys_.push_back(key);
  lists_.remove(list);
}

uint32_t WindowState::insert_late(Time time, Code key, RowRef row) {
  const uint32_t index = append(time, key, hash_code(key), row, nullptr);
  nodes_[index].mark(TNode::kLate);
  late_.push_back({time, index, late_arrivals_++});
  std::push_heap(late_.begin(), late_.end(), LaterFirst{});
  oldest_ = std::min(oldest_, time);
  return index;
}

uint32_t WindowState::pop_late() {
  std::pop_heap(late_.begin(), late_.end(), LaterFirst{});
  const uint32_t index = late_.back().node;
  late_.pop_back();
  return index;
}

bool WindowState::has_live_rows(ValueList& list) {
  drop_dead_head(list);
  return list.has_rows();
}

void WindowState::free_some() {
  const size_t allowed = live_ == 0 ? 0 : kSlackRows / 2;
  if (expired_ > allowed) free_expired(expired_ - allowed / 2);
  if (purged_ + purged_late_ > (live_ == 0 ? 0 : live_ / 4 + kSlackRows / 2)) free_purged();
  if (!fits_its_slab()) [[unlikely]]
    pack();
}

void WindowState::sweep_all() {
  free_expired(expired_);
  if (purged_ + purged_late_ > 0) free_purged();
  if (!fits_its_slab()) pack();
  lists_.give_back_now();
  closed_.give_back_now();
}

// In the order in which they came; a second hand runs ahead and fetches the slots of their keys, and a third
// follows it and fetches the newest and the next row of keys that have more than one.
void WindowState::free_expired(size_t count) {
  expired_ -= count;
  uint32_t ahead = sweep_;
  const auto fetch_slot = [&] {
    if (ahead == kNoNode) return;
    const TNode& node = nodes_[ahead];
    if (!node.is(TNode::kOffValueList)) lists_.prefetch(hash_code(node.key));
    ahead = node.next_in_time;
  };
  uint32_t nearer = sweep_;
  const auto fetch_rows = [&] {
    if (nearer == kNoNode) return;
    const TNode& node = nodes_[nearer];
    if (!node.is(TNode::kOffValueList) && node.next_in_value != nearer) {
      const ValueList* likely = lists_.find_likely_slot(hash_code(node.key));
      if (!likely->vacant()) nodes_.prefetch(likely->tail());
      nodes_.prefetch(node.next_in_value);
    }
    nearer = node.next_in_time;
  };
  for (size_t i = 0; i < std::min(count, kFetchedAhead); ++i) fetch_slot();
  for (size_t i = 0; i < std::min(count, kFetchedAhead / 2); ++i) fetch_rows();
  for (; count > 0; --count) {
    fetch_slot();
    fetch_rows();
    const uint32_t index = sweep_;
    const TNode& node = nodes_[index];
    sweep_ = node.next_in_time;
    if (!node.is(TNode::kOffValueList)) {
      if (node.next_in_value == index) {  // the only row of its key: found without a look at any other
        remove_list(lists_.find_by_tail(hash_code(node.key), index), node.key);
      } else {
        ValueList* list = lists_.find(node.key);
        drop_dead_head(*list);
        remove_if_idle(list, node.key);
      }
    }
    nodes_.release(index);
  }
  if (sweep_ == kNoNode) tail_ = kNoNode;
}

// Purged rows lie among live ones, so this walks the list from head_ on; it is called when enough of them
// have gathered to pay.
void WindowState::free_purged() {
  free_expired(expired_);
  uint32_t previous = kNoNode;
  for (uint32_t at = head_; at != kNoNode;) {
    const uint32_t following = nodes_[at].next_in_time;
    if (nodes_[at].is(TNode::kDead)) {
      (previous == kNoNode ? head_ : nodes_[previous].next_in_time) = following;
      nodes_.release(at);
    } else {
      previous = at;
    }
    at = following;
  }
  sweep_ = head_;
  tail_ = previous;
  purged_ = 0;
  std::erase_if(late_, [&](const LateRow& late) {
    const bool dead = nodes_[late.node].is(TNode::kDead);
    if (dead) nodes_.release(late.node);
    return dead;
  });
  std::make_heap(late_.begin(), late_.end(), LaterFirst{});
  purged_late_ = 0;
  refresh_oldest();
}

// In the order of the time list, so that neighbours in time are neighbours in memory again. The new slab is
// empty and hands out 0, 1, 2, ...: all of it is there before the first row changes.
void WindowState::pack() {
  Slab<TNode> to({.nodes_per_block_log2 = nodes_.used() > kLargeAbove ? kLargeBlocks : kSmallBlocks});
  for (size_t i = 0; i < nodes_.used(); ++i) to.allocate();
  uint32_t moved = 0;
  const auto move = [&](uint32_t from) {
    to[moved] = nodes_[from];
    nodes_[from].key = moved;  // where it is now
    return moved++;
  };
  const auto place_of = [&](uint32_t from) { return static_cast<uint32_t>(nodes_[from].key); };

  uint32_t last = kNoNode;
  for (uint32_t at = sweep_; at != kNoNode;) {
    const uint32_t following = nodes_[at].next_in_time;
    const uint32_t now = move(at);
    if (last != kNoNode) to[last].next_in_time = now;
    last = now;
    at = following;
  }
  for (LateRow& late : late_) late.node = move(late.node);
  if (head_ != kNoNode) head_ = place_of(head_);
  if (sweep_ != kNoNode) sweep_ = 0;
  tail_ = last;
  for (uint32_t at = 0; at < moved; ++at) {
    if (!to[at].is(TNode::kOffValueList)) to[at].next_in_value = place_of(to[at].next_in_value);
  }
  lists_.follow_rows(place_of);
  nodes_.swap(to);
}

// In the order in which they will leave, which a heap is as well.
void WindowState::sort_late_rows() {
  std::sort(late_.begin(), late_.end(),
            [](const LateRow& a, const LateRow& b) { return LaterFirst{}(b, a); });
}

std::vector<RowRef> WindowState::move_rows_to(uint32_t batch) {
  sweep_all();
  sort_late_rows();  // a later one must not change the order of late rows
  std::vector<RowRef> from;
  from.reserve(live_);
  for_each_row([&](TNode& node) {
    from.push_back(node.row());
    node.set_row({batch, static_cast<uint32_t>(from.size() - 1)});
  });
  batch_rows_.assign(std::max<size_t>(batch_rows_.size(), batch + 1), 0);
  batch_rows_[batch] = static_cast<uint32_t>(live_);
  empty_batches_.clear();
  return from;
}

size_t WindowState::memory_bytes() const {
  return nodes_.memory_bytes() + lists_.memory_bytes() + late_.capacity() * sizeof(LateRow) +
         batch_rows_.capacity() * sizeof(uint32_t);
}

std::string WindowState::validate() const {
  if (const std::string broken = nodes_.validate(); !broken.empty()) return broken;
  if (const std::string broken = lists_.validate(); !broken.empty()) return broken;

  size_t expired = 0;
  uint32_t at = sweep_;
  for (; at != head_ && at != kNoNode; at = nodes_[at].next_in_time, ++expired) {
    if (!nodes_[at].is(TNode::kDead)) return "time list: a live row lies before the head";
  }
  if (expired != expired_) return "time list: the count of expired rows is wrong";
  size_t live = 0;
  size_t purged = 0;
  uint32_t last = sweep_ == head_ ? kNoNode : tail_;
  Time before = kBeginning;
  for (at = head_; at != kNoNode; last = at, at = nodes_[at].next_in_time) {
    const TNode& node = nodes_[at];
    if (node.time < before) return "time list: not in time order";
    before = node.time;
    ++(node.is(TNode::kDead) ? purged : live);
    if (node.is(TNode::kDead) && !node.is(TNode::kOffValueList))
      return "time list: a purged row is still on its value list";
  }
  if (purged != purged_) return "time list: the count of purged rows is wrong";
  if (head_ != kNoNode && last != tail_) return "time list: the tail is not the last row";
  size_t purged_late = 0;
  for (const LateRow& row : late_) ++(nodes_[row.node].is(TNode::kDead) ? purged_late : live);
  if (purged_late != purged_late_) return "late heap: the count of purged rows is wrong";
  if (live != live_) return "state: the count of live rows is wrong";
  size_t in_batches = 0;
  for (const uint32_t rows : batch_rows_) in_batches += rows;
  if (in_batches != live_) return "state: the live rows of the batches do not add up";
  if (live + dead_rows() != nodes_.used()) return "state: rows have leaked from the slab";

  size_t listed = 0;
  std::string broken;
  lists_.for_each([&](const ValueList& list) {
    bool seen_live = false;
    bool promised = false;
    size_t steps = 0;
    uint32_t row = list.tail();
    do {
      row = nodes_[row].next_in_value;
      const TNode& node = nodes_[row];
      if (node.key != lists_.key_of(list)) broken = "value list: a row of another key";
      if (node.is(TNode::kOffValueList)) broken = "value list: a row that is marked as gone from it";
      if (node.is(TNode::kDead) && seen_live) broken = "value list: a dead row behind a live one";
      if (!node.is(TNode::kDead)) {
        seen_live = true;
        ++listed;
        promised |= node.is(TNode::kLastPromised);
      }
    } while (row != list.tail() && ++steps <= nodes_.used());
    if (row != list.tail()) broken = "value list: the tail is not the last row";
    if (list.promised() && !promised) broken = "value list: a promised key without a last promised row";
  });
  if (!broken.empty()) return broken;
  if (listed != live_) return "value list: a live row is on no value list";
  return {};
}

}  // namespace streamjoin
