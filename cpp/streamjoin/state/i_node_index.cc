#include "streamjoin/state/i_node_index.h"

#include <algorithm>

namespace streamjoin {
namespace {

constexpr size_t kSmallest = 16;
constexpr uint64_t kNarrow = 4096;  // values of a range that are worth asking for one by one
constexpr size_t kBytesPerOrderedKey = 48;

}  // namespace

INodeIndex::INodeIndex() : slots_(nullptr), capacity_(0) { resize(kSmallest); }

INodeIndex::~INodeIndex() { free_pages(slots_); }

INode& INodeIndex::find_or_add(Code key, bool& added) {
  if (size_ >= grow_above_) resize(capacity_ + capacity_ / 2);
  size_t at = home(key);
  for (; !slots_[at].vacant(); at = next(at)) {
    if (slots_[at].key == key) {
      added = false;
      return slots_[at];
    }
  }
  slots_[at].start(key);
  ++size_;
  added = true;
  if (order_) order_->insert(key);
  return slots_[at];
}

void INodeIndex::remove(INode* node) {
  if (order_) order_->erase(node->key);
  size_t hole = static_cast<size_t>(node - slots_);
  for (size_t at = next(hole); !slots_[at].vacant(); at = next(at)) {
    // A node may fill the hole unless its home lies behind the hole (cyclically).
    const size_t home_slot = home(slots_[at].key);
    const bool home_behind_hole = hole <= at ? (home_slot > hole && home_slot <= at)
                                             : (home_slot > hole || home_slot <= at);
    if (home_behind_hole) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole].clear();
  --size_;
  if (size_ < shrink_below_) resize(std::max(kSmallest, size_ * 2));
}

std::vector<Code> INodeIndex::keys_between(Code low, Code high) {
  std::vector<Code> keys;
  if (low > high) return keys;
  const uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (width < kNarrow) {
    for (uint64_t step = 0; step <= width; ++step) {
      const Code key = low + static_cast<Code>(step);
      if (find(key) != nullptr) keys.push_back(key);
    }
    return keys;
  }
  if (low == std::numeric_limits<Code>::min() && high == std::numeric_limits<Code>::max()) {
    for_each([&](const INode& node) { keys.push_back(node.key); });
    std::sort(keys.begin(), keys.end());
    return keys;
  }
  if (!order_) {
    order_.emplace();
    for_each([&](const INode& node) { order_->insert(node.key); });
  }
  for (auto at = order_->lower_bound(low); at != order_->end() && *at <= high; ++at) keys.push_back(*at);
  return keys;
}

void INodeIndex::resize(size_t capacity) {
  INode* old = slots_;
  const size_t old_capacity = capacity_;
  slots_ = static_cast<INode*>(allocate_pages(capacity * sizeof(INode)));
  capacity_ = capacity;
  grow_above_ = capacity * 7 / 10;
  shrink_below_ = capacity <= kSmallest ? 0 : capacity / 5;
  ++generation_;
  for (size_t from = 0; from < old_capacity; ++from) {
    if (old[from].vacant()) continue;
    size_t at = home(old[from].key);
    while (!slots_[at].vacant()) at = next(at);
    slots_[at] = old[from];
  }
  free_pages(old);
}

size_t INodeIndex::memory_bytes() const {
  return capacity_ * sizeof(INode) + (order_ ? order_->size() * kBytesPerOrderedKey : 0);
}

std::string INodeIndex::validate() const {
  size_t filled = 0;
  for (size_t at = 0; at < capacity_; ++at) {
    if (slots_[at].vacant()) continue;
    ++filled;
    if (find(slots_[at].key) != &slots_[at]) return "I-Node index: a key is not found from its home slot";
    if (order_ && order_->count(slots_[at].key) == 0) return "I-Node index: a key is missing from the order";
  }
  if (filled != size_) return "I-Node index: the count of keys is wrong";
  if (order_ && order_->size() != size_) return "I-Node index: the order holds a key that is gone";
  if (filled > grow_above_ || filled < shrink_below_) return "I-Node index: the slots are too full or too empty";
  return {};
}

}  // namespace streamjoin
