#include "streamjoin/state/i_node_index.h"

#include <algorithm>

namespace streamjoin {
namespace {

constexpr size_t kSmallest = 16;
// Patience with an empty table: value_list_index.cc. This one is twice as full.
constexpr size_t kSlotsPerRow = 1;
constexpr size_t kRowsPerCall = 16;
constexpr size_t kLeastPatience = size_t{1} << 14;  // a small table costs little, and promises come in bursts
constexpr size_t kLarge = size_t{1} << 16;
constexpr uint64_t kNarrow = 4096;  // values of a range that are worth asking for one by one

}  // namespace

INodeIndex::INodeIndex() : slots_(nullptr), capacity_(0) {
  resize(kSmallest);
}

INodeIndex::~INodeIndex() {
  free_pages(slots_, capacity_ * sizeof(INode));
}

// Slots are in the order of the hashes, so a resize streams through both tables: a large one can afford small
// steps, and is never much emptier than it must be.
void INodeIndex::grow() {
  resize(capacity_ < kLarge ? capacity_ * 2 : capacity_ + capacity_ / 10);
}

// Windows breathe: a table that has just been emptied may be filled again at once. Only one that stays empty
// gives memory back.
void INodeIndex::give_back(size_t rows) {
  if (size_ >= shrink_below_) {
    work_while_empty_ = 0;
    return;
  }
  work_while_empty_ += rows + kRowsPerCall;
  if (work_while_empty_ * kSlotsPerRow >= std::max(capacity_, kLeastPatience)) give_back_now();
}

void INodeIndex::give_back_now() {
  if (size_ >= shrink_below_) return;
  resize(std::max(kSmallest, size_ * 2));
  order_.drop();
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
  if (!order_.kept() || order_.is_stale(size_)) {
    for_each([&](const INode& node) { keys.push_back(node.key); });
    order_.build(std::move(keys));
  }
  return order_.between(low, high, size_, [&](Code key) { return find(key) != nullptr; });
}

void INodeIndex::resize(size_t capacity) {
  capacity = (capacity + kSlotsPerLine - 1) / kSlotsPerLine * kSlotsPerLine;
  INode* old = slots_;
  const size_t old_capacity = capacity_;
  slots_ = static_cast<INode*>(allocate_pages(capacity * sizeof(INode)));
  capacity_ = capacity;
  grow_above_ = capacity * 62 / 100;
  shrink_below_ = capacity <= kSmallest ? 0 : capacity / 8;
  work_while_empty_ = 0;
  ++generation_;
  ++moves_;
  for (size_t from = 0; from < old_capacity; ++from) {
    if (old[from].vacant()) continue;
    size_t at = home(hash_code(old[from].key));
    while (!slots_[at].vacant()) at = next(at);
    slots_[at] = old[from];
  }
  free_pages(old, old_capacity * sizeof(INode));
}

size_t INodeIndex::memory_bytes() const {
  return capacity_ * sizeof(INode) + order_.memory_bytes();
}

std::string INodeIndex::validate() const {
  size_t filled = 0;
  for (size_t at = 0; at < capacity_; ++at) {
    if (slots_[at].vacant()) continue;
    ++filled;
    if (find(slots_[at].key) != &slots_[at]) return "I-Node index: a key is not found from its home slot";
    if (order_.kept() && !order_.contains(slots_[at].key))
      return "I-Node index: a key is missing from the order";
  }
  if (filled != size_) return "I-Node index: the count of keys is wrong";
  if (filled > grow_above_) return "I-Node index: the slots are too full";
  return order_.validate();
}

}  // namespace streamjoin
