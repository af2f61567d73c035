#include "streamjoin/state/promises.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace streamjoin {
namespace {

constexpr size_t kShortestRange = 4;   // fewer keys than that cost less one by one
constexpr size_t kFirstGrowth = 1024;  // closed keys before ranges are looked for
constexpr size_t kBytesPerExpiry = 64;

}  // namespace

void Promises::open(ValueList& list) {
  open_ += !list.promised();
  list.set_promised(true);
  state_.mark_last_promised(list);
}

/// A list that is no longer promised, and gone if it has no rows.
void Promises::drop_open(ValueList* list, Code key) {
  if (list == nullptr) return;
  open_ -= list->promised();
  list->set_promised(false);
  state_.remove_if_idle(list, key);
}

void Promises::close_key(Code key) {
  bool added;
  closed_.find_or_add(key, added);
  if (!added) return;
  if (uint8_t& count = closed_near_[near(hash_code(key))]; count != kUncounted)
    any_uncounted_ |= ++count == kUncounted;
  state_.hold_key(key);
  if (options_.lifespan != kEnd || !options_.codes_are_values) return;
  newly_closed_.push_back(key);
  if (newly_closed_.size() >= grow_at_) grow_ranges();
}

bool Promises::drop_closed(Code key) {
  const uint64_t hash = hash_code(key);
  INode* node = may_be_closed(hash) ? closed_.find(key) : nullptr;
  if (node == nullptr) return false;
  closed_.remove(node);
  if (uint8_t& count = closed_near_[near(hash)]; count != kUncounted) --count;
  if (closed_.size() == 0 && any_uncounted_) {
    closed_near_.fill(0);
    any_uncounted_ = false;
  }
  state_.let_key_go(key);
  return true;
}

std::vector<Code> Promises::keys_between(Code low, Code high) {
  std::vector<Code> keys = state_.lists().keys_between(low, high);
  if (closed_.size() == 0) return keys;
  const std::vector<Code> closed = closed_.keys_between(low, high);
  std::vector<Code> all;
  std::set_union(keys.begin(), keys.end(), closed.begin(), closed.end(), std::back_inserter(all));
  return all;
}

Time Promises::held_until(Code key) const {
  if (flag(key) == PunctuationFlag::kNone) return kBeginning;
  if (options_.lifespan == kEnd || everything_) return kEnd;
  const auto at = expires_.find(key);
  return std::max(at == expires_.end() ? kBeginning : at->second, covered_.expiry_of(key));
}

PunctuationFlag Promises::remember(Code key, ValueList* list, Time expires) {
  if (options_.lifespan != kEnd) {
    Time& held_until = expires_.try_emplace(key, expires).first->second;
    held_until = std::max(held_until, expires);
    expiries_.emplace(held_until, key);
  }
  if (list != nullptr) {
    if (state_.has_live_rows(*list)) {
      open(*list);
      return PunctuationFlag::kPunctuated;
    }
    close(*list, key);
  } else if (!is_covered_for_ever(key)) {
    close_key(key);
  }
  return PunctuationFlag::kPropagated;
}

void Promises::close(ValueList& list, Code key) {
  if (!is_covered_for_ever(key)) close_key(key);
  drop_open(&list, key);
}

void Promises::reopen(ValueList& list, Code key) {
  if (options_.lifespan != kEnd && expires_.count(key) == 0) {
    const Time expires = everything_ ? kEnd : covered_.expiry_of(key);
    expires_.emplace(key, expires);
    expiries_.emplace(expires, key);
  }
  drop_closed(key);
  open(list);
}

void Promises::forget(Code key) {
  if (!drop_closed(key)) drop_open(state_.lists().find(key), key);
  if (options_.lifespan != kEnd) expires_.erase(key);
  // A code that stands for a pattern's key stays covered for as long as the pattern is remembered.
  if (options_.codes_are_values && !covered_.empty()) covered_.erase(key, key);
}

void Promises::clear() {
  constexpr Code kLow = std::numeric_limits<Code>::min();
  constexpr Code kHigh = std::numeric_limits<Code>::max();
  for (const Code key : state_.lists().keys_between(kLow, kHigh)) drop_open(state_.lists().find(key), key);
  for (const Code key : closed_.keys_between(kLow, kHigh)) drop_closed(key);
  covered_.clear();
  everything_ = false;
  newly_closed_.clear();
  expires_.clear();
  expiries_ = {};
}

// Closed keys that touch become ranges. Done for many at once: the cost is a sort over what has gathered, and
// the next time is not before as many again have come.
void Promises::grow_ranges() {
  std::erase_if(newly_closed_, [&](Code key) { return !is_closed(key); });
  std::sort(newly_closed_.begin(), newly_closed_.end());
  newly_closed_.erase(std::unique(newly_closed_.begin(), newly_closed_.end()), newly_closed_.end());
  std::vector<Code> single;
  for (size_t begin = 0; begin < newly_closed_.size();) {
    size_t end = begin + 1;
    while (end < newly_closed_.size() && newly_closed_[end] == newly_closed_[end - 1] + 1) ++end;
    const Code low = newly_closed_[begin];
    const Code high = newly_closed_[end - 1];
    const bool touches = (low > std::numeric_limits<Code>::min() && covered_.contains(low - 1)) ||
                         (high < std::numeric_limits<Code>::max() && covered_.contains(high + 1));
    if (end - begin >= kShortestRange || touches) {
      covered_.insert(low, high, kEnd);
      for (size_t i = begin; i < end; ++i) drop_closed(newly_closed_[i]);
    } else {
      single.insert(single.end(), newly_closed_.begin() + begin, newly_closed_.begin() + end);
    }
    begin = end;
  }
  newly_closed_ = std::move(single);
  grow_at_ = std::max(kFirstGrowth, newly_closed_.size() * 2);
}

void Promises::expire(Time clock) {
  if (options_.lifespan == kEnd) return;
  covered_.expire(clock);
  while (!expiries_.empty() && expiries_.top().first < clock) {
    const auto [expires, key] = expiries_.top();
    expiries_.pop();
    const auto at = expires_.find(key);
    if (at == expires_.end() || at->second != expires) continue;
    expires_.erase(at);
    drop_closed(key);
    drop_open(state_.lists().find(key), key);
  }
}

size_t Promises::memory_bytes() const {
  return covered_.memory_bytes() + closed_.memory_bytes() + sizeof(closed_near_) +
         newly_closed_.capacity() * sizeof(Code) + (expires_.size() + expiries_.size()) * kBytesPerExpiry;
}

std::string Promises::validate() const {
  if (const std::string broken = closed_.validate(); !broken.empty()) return broken;
  size_t open = 0;
  std::string broken;
  const auto check_expiry = [&](Code key) {
    if (options_.lifespan != kEnd && expires_.count(key) == 0) broken = "promises: a key without expiry";
  };
  state_.lists().for_each([&](const ValueList& list) {
    if (!list.promised()) return;
    ++open;
    check_expiry(state_.lists().key_of(list));
  });
  closed_.for_each([&](const INode& node) {
    check_expiry(node.key);
    if (!is_closed(node.key)) broken = "promises: a closed key that is not counted";
    const ValueList* list = state_.lists().find(node.key);
    if (list == nullptr) return;
    state_.look(*list, [&](uint32_t, const TNode&) {
      broken = "promises: a closed key with live rows";
      return Visit::kStop;
    });
  });
  if (!broken.empty()) return broken;
  if (open != open_) return "promises: the count of promised value lists is wrong";
  if (options_.lifespan == kEnd && !expires_.empty()) return "promises: an expiry without a lifespan";
  return covered_.validate();
}

void Promises::save(ArchiveWriter& out) const {
  std::vector<Code> keys;
  state_.lists().for_each([&](const ValueList& list) {
    if (list.promised()) keys.push_back(state_.lists().key_of(list));
  });
  closed_.for_each([&](const INode& node) { keys.push_back(node.key); });
  std::sort(keys.begin(), keys.end());
  std::vector<Time> expires;
  for (const Code key : keys) {
    const auto at = expires_.find(key);
    expires.push_back(at == expires_.end() ? kEnd : at->second);
  }
  out.array(keys);
  out.array(expires);
  covered_.save(out);
  out.value(everything_);
}

void Promises::load(ArchiveReader& in) {
  const auto keys = in.array<Code>();
  const auto expires = in.array<Time>();
  if (keys.size() != expires.size()) throw DamagedArchive("promise columns differ in length");
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!state_.may_hold(keys[i])) throw DamagedArchive("a promise of a key that is not there");
    remember(keys[i], expires[i]);
  }
  // Remembering may have grown ranges already.
  RangeSet covered;
  covered.load(in);
  covered.for_each([&](Code low, Code high, Time until) { covered_.insert(low, high, until); });
  everything_ = in.value<bool>();
}

}  // namespace streamjoin
