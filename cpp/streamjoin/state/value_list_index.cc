#include "streamjoin/state/value_list_index.h"

#include <algorithm>
#include <limits>

namespace streamjoin {
namespace {

constexpr size_t kSmallest = 32;
constexpr uint32_t kTimesEmpty = 1024;  // a block of rows or a punctuation calls once or twice
constexpr size_t kLarge = size_t{1} << 16;
constexpr size_t kFullPercent = 32;
constexpr uint64_t kNarrow = 4096;  // values of a range that are worth asking for one by one
constexpr size_t kBytesPerOrderedKey = 48;

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

// Windows breathe: a table that has just been emptied may be filled again at once, as when two streams take
// turns with batches as long as the window. Only one that stays empty gives memory back.
void ValueListIndex::shrink(bool at_once) {
  if (at_once || ++times_empty_ >= kTimesEmpty) resize(std::max(kSmallest, size_ * 4));
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
  if (!order_) {
    order_.emplace();
    for_each([&](const ValueList& list) { order_->insert(key_of(list)); });
  }
  order_changes_ = 0;
  for (auto at = order_->lower_bound(low); at != order_->end() && *at <= high; ++at) keys.push_back(*at);
  return keys;
}

void ValueListIndex::add_to_order(Code key) {
  order_->insert(key);
  note_order_change();
}

void ValueListIndex::remove_from_order(Code key) {
  order_->erase(key);
  note_order_change();
}

// To build the order anew costs what keeping it costs for as many changes as there are keys: beyond that,
// keeping it is the dearer way.
void ValueListIndex::note_order_change() {
  if (++order_changes_ > size_ + kNarrow) order_.reset();
}

void ValueListIndex::resize(size_t capacity) {
  ValueList* old = slots_;
  const size_t old_capacity = capacity_;
  slots_ = static_cast<ValueList*>(allocate_pages(capacity * sizeof(ValueList)));
  capacity_ = capacity;
  grow_above_ = capacity * kFullPercent / 100;
  shrink_below_ = capacity <= kSmallest ? 0 : capacity / 16;
  times_empty_ = 0;
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
  return capacity_ * sizeof(ValueList) + (order_ ? order_->size() * kBytesPerOrderedKey : 0);
}

std::string ValueListIndex::validate() const {
  size_t filled = 0;
  for (size_t at = 0; at < capacity_; ++at) {
    const ValueList& slot = slots_[at];
    if (slot.vacant()) continue;
    ++filled;
    if (!slot.has_rows()) return "value list index: a list without rows";
    const Code key = key_of(slot);
    if (slot.tag_ != tag_of(hash_code(key))) return "value list index: a tag is not that of its key";
    if (find(key) != &slot) return "value list index: a key is not found from its home slot";
    if (order_ && order_->count(key) == 0) return "value list index: a key is missing from the order";
  }
  if (filled != size_) return "value list index: the count of keys is wrong";
  if (order_ && order_->size() != size_) return "value list index: the order holds a key that is gone";
  if (filled > grow_above_) return "value list index: the slots are too full";
  return {};
}

}  // namespace streamjoin
