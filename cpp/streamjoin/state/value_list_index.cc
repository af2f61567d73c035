#include "streamjoin/state/value_list_index.h"

#include <algorithm>
#include <limits>

namespace streamjoin {
namespace {

constexpr size_t kSmallest = 32;
// A table is held while it is empty for one row per so many slots. A table a third full takes a row per three
// slots to fill again: streams that take turns with batches as long as their windows keep it, however long
// those are and however they are cut. A call counts as some rows more, since punctuations and heartbeats
// bring none: they must free the memory too, but not before they have cost what a rebuild costs, a nanosecond
// or two a slot.
constexpr size_t kSlotsPerRow = 2;
constexpr size_t kRowsPerCall = 16;
constexpr size_t kLarge = size_t{1} << 16;
constexpr size_t kFullPercent = 32;
constexpr uint64_t kNarrow = 4096;  // values of a range that are worth asking for one by one

}  // namespace

ValueListIndex::ValueListIndex(const Slab<TNode>& rows) : rows_(rows) {
  resize(kSmallest);
}

ValueListIndex::~ValueListIndex() {
  free_pages(slots_, capacity_ * sizeof(ValueList));
}

// Slots are in the order of the hashes, so a resize streams through both tables: a large one can afford small
// steps, and is never much emptier than it must be.
void ValueListIndex::grow() {
  resize(capacity_ < kLarge ? capacity_ * 2 : capacity_ + capacity_ / 10);
}

void ValueListIndex::reserve(size_t lists) {
  if (lists > grow_above_) resize(lists * 100 / kFullPercent + 1);
}

// Windows breathe: a table that has just been emptied may be filled again at once. Only one that stays empty
// gives memory back.
void ValueListIndex::shrink_if_idle(size_t rows) {
  work_while_empty_ += rows + kRowsPerCall;
  if (work_while_empty_ * kSlotsPerRow >= capacity_) shrink();
}

void ValueListIndex::shrink() {
  resize(std::max(kSmallest, size_ * 4));
  order_.drop();
}

std::vector<Code> ValueListIndex::keys_between(Code low, Code high) {
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
    for_each([&](const ValueList& list) { keys.push_back(key_of(list)); });
    std::sort(keys.begin(), keys.end());
    return keys;
  }
  if (!order_.kept() || order_.is_stale(size_)) {
    for_each([&](const ValueList& list) { keys.push_back(key_of(list)); });
    order_.build(std::move(keys));
  }
  return order_.between(low, high, size_, [&](Code key) { return find(key) != nullptr; });
}

void ValueListIndex::resize(size_t capacity) {
  ValueList* old = slots_;
  const size_t old_capacity = capacity_;
  slots_ = static_cast<ValueList*>(allocate_pages(capacity * sizeof(ValueList)));
  capacity_ = capacity;
  grow_above_ = capacity * kFullPercent / 100;
  shrink_below_ = capacity <= kSmallest ? 0 : capacity / 16;
  work_while_empty_ = 0;
  ++moves_;
  for (size_t from = 0; from < old_capacity; ++from) {
    if (old[from].vacant()) continue;
    size_t at = home(old[from].tag_);
    while (!slots_[at].vacant()) at = next(at);
    slots_[at] = old[from];
  }
  free_pages(old, old_capacity * sizeof(ValueList));
}

size_t ValueListIndex::memory_bytes() const {
  return capacity_ * sizeof(ValueList) + order_.memory_bytes();
}

std::string ValueListIndex::validate() const {
  size_t filled = 0;
  for (size_t at = 0; at < capacity_; ++at) {
    const ValueList& slot = slots_[at];
    prefetch_row_ahead(at);
    if (slot.vacant()) continue;
    ++filled;
    if (!slot.has_rows()) return "value list index: a list without rows";
    const Code key = key_of(slot);
    if (slot.tag_ != tag_of(hash_code(key))) return "value list index: a tag is not that of its key";
    if (find(key) != &slot) return "value list index: a key is not found from its home slot";
    if (order_.kept() && !order_.contains(key)) return "value list index: a key is missing from the order";
  }
  if (filled != size_) return "value list index: the count of keys is wrong";
  if (filled > grow_above_) return "value list index: the slots are too full";
  return order_.validate();
}

}  // namespace streamjoin
