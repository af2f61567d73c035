#include "streamjoin/punctuation/range_set.h"

#include <algorithm>
#include <iterator>

namespace streamjoin {
namespace {

constexpr Code kSmallest = std::numeric_limits<Code>::min();
constexpr Code kLargest = std::numeric_limits<Code>::max();

bool touch(Code high, Code next_low) {
  return high != kLargest && high + 1 == next_low;
}

}  // namespace

/// The first range whose high end is at or after `code`.
RangeSet::ByLow::const_iterator RangeSet::first_reaching(Code code) const {
  auto range = by_low_.upper_bound(code);
  if (range != by_low_.begin() && std::prev(range)->second.high >= code) --range;
  return range;
}

RangeSet::ByLow::iterator RangeSet::first_reaching(Code code) {
  auto range = by_low_.upper_bound(code);
  if (range != by_low_.begin() && std::prev(range)->second.high >= code) --range;
  return range;
}

RangeSet::ByLow::iterator RangeSet::remove(ByLow::iterator range) {
  if (range->second.expires != kEnd) by_expiry_.erase({range->second.expires, range->first});
  return by_low_.erase(range);
}

void RangeSet::add(const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    by_low_.emplace(range.low, Rest{range.high, range.expires});
    if (range.expires != kEnd) by_expiry_.emplace(range.expires, range.low);
  }
  set_bounds();
}

void RangeSet::set_bounds() {
  smallest_ = empty() ? kLargest : by_low_.begin()->first;
  largest_ = empty() ? kSmallest : by_low_.rbegin()->second.high;
}

/// The two common cases, in place: low..high is there already, or it lengthens the range to its left and
/// meets no other.
bool RangeSet::covered_or_extended(Code low, Code high, Time expires) {
  const auto after = by_low_.upper_bound(low);
  if (after == by_low_.begin()) return false;
  Rest& left = std::prev(after)->second;
  if (left.high >= high && left.expires >= expires) return true;
  if (left.expires != expires || (left.high < low && !touch(left.high, low))) return false;
  if (after != by_low_.end() && (after->first <= high || touch(high, after->first))) return false;
  left.high = high;
  largest_ = std::max(largest_, high);
  return true;
}

void RangeSet::insert(Code low, Code high, Time expires) {
  if (low > high || covered_or_extended(low, high, expires)) return;
  std::vector<Range> parts;
  const auto push = [&parts](Code from, Code to, Time until) {
    if (!parts.empty() && parts.back().expires == until && touch(parts.back().high, from)) {
      parts.back().high = to;
    } else {
      parts.push_back({from, to, until});
    }
  };
  Code next = low;  // the first code of low..high that is in no part yet
  bool whole = false;
  // One code to either side belongs to the neighbourhood: what touches may coalesce.
  auto range = first_reaching(low == kSmallest ? low : low - 1);
  while (range != by_low_.end() && (range->first <= high || touch(high, range->first))) {
    const Range old{range->first, range->second.high, range->second.expires};
    range = remove(range);
    if (old.low < low) push(old.low, std::min<Code>(old.high, low - 1), old.expires);
    if (!whole && old.low > next) {
      push(next, std::min<Code>(high, old.low - 1), expires);
      whole = old.low > high;
    }
    const Code shared_low = std::max(old.low, low), shared_high = std::min(old.high, high);
    if (shared_low <= shared_high) {
      push(shared_low, shared_high, std::max(old.expires, expires));
      whole = shared_high == high;
      if (!whole) next = shared_high + 1;
    }
    if (old.high > high) push(std::max<Code>(old.low, high + 1), old.high, old.expires);
  }
  if (!whole) push(next, high, expires);
  add(parts);
}

void RangeSet::erase(Code low, Code high) {
  if (low > high || high < smallest_ || low > largest_) return;
  std::vector<Range> parts;
  for (auto range = first_reaching(low); range != by_low_.end() && range->first <= high;) {
    const Range old{range->first, range->second.high, range->second.expires};
    range = remove(range);
    if (old.low < low) parts.push_back({old.low, low - 1, old.expires});
    if (old.high > high) parts.push_back({high + 1, old.high, old.expires});
  }
  add(parts);
}

void RangeSet::expire(Time clock) {
  if (by_expiry_.empty() || by_expiry_.begin()->first >= clock) return;
  while (!by_expiry_.empty() && by_expiry_.begin()->first < clock) {
    by_low_.erase(by_expiry_.begin()->second);
    by_expiry_.erase(by_expiry_.begin());
  }
  set_bounds();
}

void RangeSet::clear() {
  by_low_.clear();
  by_expiry_.clear();
  set_bounds();
}

std::vector<std::pair<Code, Code>> RangeSet::intersection(Code low, Code high) const {
  std::vector<std::pair<Code, Code>> parts;
  if (low > high || high < smallest_ || low > largest_) return parts;
  for (auto range = first_reaching(low); range != by_low_.end() && range->first <= high; ++range) {
    const Code from = std::max(low, range->first), to = std::min(high, range->second.high);
    if (!parts.empty() && touch(parts.back().second, from)) {
      parts.back().second = to;
    } else {
      parts.emplace_back(from, to);
    }
  }
  return parts;
}

size_t RangeSet::memory_bytes() const {
  // A tree node: four words of links and colour, the value, and the allocator's word.
  constexpr size_t links = 5 * sizeof(void*);
  return sizeof(*this) + by_low_.size() * (links + sizeof(ByLow::value_type)) +
         by_expiry_.size() * (links + sizeof(std::pair<Time, Code>));
}

void RangeSet::save(ArchiveWriter& archive) const {
  archive.value<uint64_t>(by_low_.size());
  for_each([&archive](Code low, Code high, Time expires) {
    archive.value(low);
    archive.value(high);
    archive.value(expires);
  });
}

void RangeSet::load(ArchiveReader& archive) {
  RangeSet loaded;
  const uint64_t count = archive.value<uint64_t>();
  for (uint64_t at = 0; at < count; ++at) {
    const Code low = archive.value<Code>();
    const Code high = archive.value<Code>();
    const Time expires = archive.value<Time>();
    if (low > high || (!loaded.empty() && low <= loaded.by_low_.rbegin()->second.high)) {
      throw DamagedArchive("snapshot holds ranges that overlap or are out of order");
    }
    loaded.by_low_.emplace_hint(loaded.by_low_.end(), low, Rest{high, expires});
    if (expires != kEnd) loaded.by_expiry_.emplace(expires, low);
  }
  loaded.set_bounds();
  if (!loaded.validate().empty())
    throw DamagedArchive("snapshot holds a broken range set: " + loaded.validate());
  *this = std::move(loaded);
}

std::string RangeSet::validate() const {
  const auto at = [](Code code) { return " at " + std::to_string(code); };
  size_t expiring = 0;
  for (auto range = by_low_.begin(); range != by_low_.end(); ++range) {
    const auto& [low, rest] = *range;
    if (low > rest.high) return "range ends before it starts" + at(low);
    if (rest.expires != kEnd) {
      ++expiring;
      if (!by_expiry_.contains({rest.expires, low})) return "range is not in the order of expiry" + at(low);
    }
    const auto next = std::next(range);
    if (next == by_low_.end()) continue;
    if (next->first <= rest.high) return "ranges overlap" + at(next->first);
    if (touch(rest.high, next->first) && rest.expires == next->second.expires) {
      return "ranges of one expiry touch" + at(next->first);
    }
  }
  if (expiring != by_expiry_.size()) return "order of expiry holds ranges that are gone";
  RangeSet bounds;
  if (empty() ? (smallest_ != bounds.smallest_ || largest_ != bounds.largest_)
              : (smallest_ != by_low_.begin()->first || largest_ != by_low_.rbegin()->second.high)) {
    return "overall bounds differ from the ranges";
  }
  return "";
}

}  // namespace streamjoin
