// GroupedRows: rows brought together by key, each key's rows by time, for kernels that look many keys up.
//
//   table     7 -> group 0           9 -> group 1     ...    dense numbers, in order of first appearance
//   first     0                      2                3 ...
//   entries   |t=2 row 3|t=5 row 0|  |t=4 row 1|      ...    one group after another, each by (time, row)
//
// Invariants:
//   1. Every row with a valid key is in exactly one group, rows with a null key in none.
//   2. first is ascending; group g holds the entries [first[g], first[g + 1]).
//   3. The table is at most half full, so a walk through it ends.
// Cost: O(rows), plus one sort of each group that did not come in time order. At most 60 bytes a row. Below
// 2^31 rows. Lookups go in blocks: ask for the memory of a whole block first, then use it. Read only once
// built, so threads may share it.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "streamjoin/base/hash.h"
#include "streamjoin/base/time.h"

namespace streamjoin {

/// Key -> dense group number, in order of first appearance. Open addressing with linear probing.
class GroupTable {
 public:
  static constexpr uint32_t kNoGroup = 0xffffffff;

  // Zeroed by calloc, so that a large table for few keys costs only the pages that those keys touch.
  explicit GroupTable(size_t rows)
      : slots_(2 * rows + 1), table_(static_cast<Slot*>(std::calloc(slots_, sizeof(Slot))), &std::free) {
    if (table_ == nullptr) throw std::bad_alloc();
    ask_for_large_pages();
  }

  size_t home(int64_t key) const { return slot_of(mix(static_cast<uint64_t>(key)), slots_); }
  void prefetch(size_t slot) const { __builtin_prefetch(&table_[slot]); }

  uint32_t find_or_add(int64_t key, size_t slot) {
    Slot& found = table_[walk(key, slot)];
    if (found.group_plus_one == 0) found = {key, ++groups_};
    return found.group_plus_one - 1;
  }

  /// kNoGroup (which is 0 - 1) for an unknown key.
  uint32_t find(int64_t key, size_t slot) const { return table_[walk(key, slot)].group_plus_one - 1; }

  uint32_t groups() const { return groups_; }

 private:
  struct Slot {
    int64_t key;
    uint32_t group_plus_one;  // 0: empty
  };

  size_t walk(int64_t key, size_t slot) const {
    while (table_[slot].group_plus_one != 0 && table_[slot].key != key) {
      if (++slot == slots_) slot = 0;
    }
    return slot;
  }

  /// A table of many pages, hit at random, misses the page cache of the processor as often as its data
  /// caches. A wish only.
  void ask_for_large_pages() {
#ifdef __linux__
    constexpr uintptr_t kPage = 4096, kWorthIt = uintptr_t{1} << 22;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(table_.get()) + kPage - 1) & ~(kPage - 1);
    const uintptr_t end = reinterpret_cast<uintptr_t>(table_.get() + slots_) & ~(kPage - 1);
    if (end > begin && end - begin >= kWorthIt)
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
  }

  size_t slots_;
  std::unique_ptr<Slot[], decltype(&std::free)> table_;
  uint32_t groups_ = 0;
};

/// The columns of one side of a kernel. All of equal length, except that no `valid` at all means that every
/// key is valid.
struct TimedKeyColumns {
  std::span<const int64_t> keys;
  std::span<const Time> times;
  std::span<const uint8_t> valid = {};  // 0: the key is null and matches nothing, not even another null
};

class GroupedRows {
 public:
  // Rows whose memory is asked for together: enough to hide the latency, few enough to stay in the first
  // cache.
  static constexpr size_t kBlock = 64;

  struct Entry {
    Time time;
    int64_t row;
  };
  /// Entries by position.
  struct Run {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  explicit GroupedRows(const TimedKeyColumns& rows) : table_(rows.keys.size()) {
    const std::vector<uint32_t> group_of_row = number_groups(rows);
    for (size_t group = 1; group < first_.size(); ++group) first_[group] += first_[group - 1];
    scatter(rows, group_of_row);
    sort_groups();
  }

  const GroupTable& table() const { return table_; }
  const Entry* entries() const { return entries_.data(); }
  uint32_t longest() const { return longest_; }
  void prefetch_group(uint32_t group) const { __builtin_prefetch(&first_[group]); }
  Run run_of(uint32_t group) const { return {first_[group], first_[group + 1] - first_[group]}; }

 private:
  /// Leaves in first_[g + 1] the number of rows of group g.
  std::vector<uint32_t> number_groups(const TimedKeyColumns& rows) {
    const size_t count = rows.keys.size();
    std::vector<uint32_t> group_of_row(count);
    first_.assign(count + 1, 0);
    std::array<size_t, kBlock> homes;
    for (size_t begin = 0; begin < count; begin += kBlock) {
      const size_t size = std::min(kBlock, count - begin);
      for (size_t i = 0; i < size; ++i) table_.prefetch(homes[i] = table_.home(rows.keys[begin + i]));
      for (size_t i = 0; i < size; ++i) {
        const size_t row = begin + i;
        if (!rows.valid.empty() && rows.valid[row] == 0) {
          group_of_row[row] = GroupTable::kNoGroup;
          continue;
        }
        group_of_row[row] = table_.find_or_add(rows.keys[row], homes[i]);
        ++first_[group_of_row[row] + 1];
      }
    }
    first_.resize(table_.groups() + size_t{1});
    return group_of_row;
  }

  /// Counting sort: stable, so a group whose rows came in time order is in its final order already.
  void scatter(const TimedKeyColumns& rows, const std::vector<uint32_t>& group_of_row) {
    entries_.resize(first_.back());
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (size_t row = 0; row < group_of_row.size(); ++row) {
      if (group_of_row[row] == GroupTable::kNoGroup) continue;
      entries_[next[group_of_row[row]]++] = {rows.times[row], static_cast<int64_t>(row)};
    }
  }

  void sort_groups() {
    const auto earlier = [](const Entry& a, const Entry& b) {
      return a.time != b.time ? a.time < b.time : a.row < b.row;
    };
    for (size_t group = 0; group + 1 < first_.size(); ++group) {
      const auto begin = entries_.begin() + first_[group], end = entries_.begin() + first_[group + 1];
      longest_ = std::max(longest_, first_[group + 1] - first_[group]);
      if (end - begin > 1 && !std::is_sorted(begin, end, earlier)) std::sort(begin, end, earlier);
    }
  }

  GroupTable table_;
  std::vector<uint32_t> first_;  // of each group, and the end of the last
  std::vector<Entry> entries_;
  uint32_t longest_ = 0;  // group
};

}  // namespace streamjoin
