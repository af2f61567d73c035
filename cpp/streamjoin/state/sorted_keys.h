// SortedKeys: the keys of an index in their order, for ranges too wide to be asked for value by value.
//
//   runs_   [ 2 5 7 9 12 40 41 77 ][ 3 8 90 ][ 11 ]     each sorted and at most half as long as the one
//   before fresh_  11 6 80                                     added since a range last asked, not yet sorted
//
// Built when a wide range asks. From then on an added key costs a push_back and a removed one nothing: the
// index is asked which of the keys found are still there. Dropped when more keys were added since the last
// wide range than there were keys, so that rows do not go on paying for ranges that no longer come.
//
// Invariants (validate() checks them; the index checks that each of its keys is here):
//   1. Runs are sorted; each is at most half as long as the one before.
//   2. Keys held, gone ones included, are at most twice those of the index at the last range, and kSlack, and
//      as many again that were added since.
// Cost: build and rebuild O(n log n), once per n additions; add O(1), and O(log n) amortised in the next
// range; between O(log^2 n) and its keys. Owned by an index; one thread.

#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "streamjoin/base/code.h"

namespace streamjoin {

class SortedKeys {
 public:
  static constexpr size_t kSlack = 4096;

  bool kept() const { return kept_; }

  /// Starts anew from all keys of the index, in any order.
  void build(std::vector<Code> keys);
  void drop() { *this = SortedKeys(); }

  void add(Code key) {
    fresh_.push_back(key);
    if (fresh_.size() > allowance_) [[unlikely]]
      drop();
  }

  /// Whether too many keys are gone to go on with: then build() is due before the next range. `keys` are
  /// those that the index has.
  bool is_stale(size_t keys) const { return held() > 2 * keys + kSlack; }

  /// Keys in [low, high] for which `is_there(key)`, ascending. `keys` as above.
  template <typename IsThere>
  std::vector<Code> between(Code low, Code high, size_t keys, IsThere is_there) {
    sort_fresh();
    allowance_ = keys + kSlack;
    std::vector<Code> found;
    for (const std::vector<Code>& run : runs_) {
      const auto begin = std::lower_bound(run.begin(), run.end(), low);
      found.insert(found.end(), begin, std::upper_bound(begin, run.end(), high));
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::erase_if(found, [&](Code key) { return !is_there(key); });
    return found;
  }

  bool contains(Code key) const;
  size_t memory_bytes() const;
  std::string validate() const;

 private:
  size_t held() const;
  void sort_fresh();

  bool kept_ = false;
  size_t allowance_ = kSlack;
  std::vector<std::vector<Code>> runs_;
  std::vector<Code> fresh_;
};

}  // namespace streamjoin
