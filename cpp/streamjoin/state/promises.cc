#include "streamjoin/state/promises.h"

#include <algorithm>

namespace streamjoin {
namespace {

constexpr size_t kShortestRange = 4;   // fewer keys than that cost less as I-Nodes
constexpr size_t kFirstGrowth = 1024;  // closed keys before ranges are looked for
constexpr size_t kBytesPerExpiry = 64;

}  // namespace

void Promises::set_flag(INode& key, PunctuationFlag flag) {
  clear_flag(key);
  key.set_flag(flag);
  if (flag == PunctuationFlag::kNone) return;
  ++flagged_;
  if (flag == PunctuationFlag::kPropagated) ++closed_count_;
}

void Promises::clear_flag(INode& key) {
  if (key.flag() == PunctuationFlag::kNone) return;
  --flagged_;
  if (key.flag() == PunctuationFlag::kPropagated) --closed_count_;
  key.set_flag(PunctuationFlag::kNone);
}

Time Promises::held_until(Code key) const {
  if (flag(key) == PunctuationFlag::kNone) return kBeginning;
  if (options_.lifespan == kEnd || everything_) return kEnd;
  const auto at = expires_.find(key);
  return std::max(at == expires_.end() ? kBeginning : at->second, covered_.expiry_of(key));
}

PunctuationFlag Promises::remember(Code key, Time expires) {
  INode& node = state_.find_or_add_key(key);
  if (options_.lifespan != kEnd) {
    Time& held_until = expires_.try_emplace(key, expires).first->second;
    held_until = std::max(held_until, expires);
    expiries_.emplace(held_until, key);
  }
  if (state_.has_live_rows(node)) {
    set_flag(node, PunctuationFlag::kPunctuated);
    state_.mark_last_promised(node);
    return PunctuationFlag::kPunctuated;
  }
  close(node);
  return PunctuationFlag::kPropagated;
}

void Promises::close(INode& key) {
  const Code code = key.key;
  if (everything_ || (options_.lifespan == kEnd && covered_.contains(code))) {
    clear_flag(key);
    state_.remove_if_idle(&key);
    return;
  }
  set_flag(key, PunctuationFlag::kPropagated);
  if (options_.lifespan != kEnd || !options_.codes_are_values) return;
  closed_.push_back(code);
  if (closed_.size() >= grow_at_) grow_ranges();
}

void Promises::reopen(INode& key) {
  if (options_.lifespan != kEnd && expires_.count(key.key) == 0) {
    const Time expires = everything_ ? kEnd : covered_.expiry_of(key.key);
    expires_.emplace(key.key, expires);
    expiries_.emplace(expires, key.key);
  }
  set_flag(key, PunctuationFlag::kPunctuated);
  state_.mark_last_promised(key);
}

void Promises::forget(Code key) {
  if (INode* node = state_.index().find(key); node != nullptr) {
    clear_flag(*node);
    expires_.erase(key);
    state_.remove_if_idle(node);
  }
  // A code that stands for a pattern's key stays covered for as long as the pattern is remembered.
  if (options_.codes_are_values && !covered_.empty()) covered_.erase(key, key);
}

void Promises::clear() {
  for (const Code key :
       state_.index().keys_between(std::numeric_limits<Code>::min(), std::numeric_limits<Code>::max())) {
    INode* node = state_.index().find(key);
    clear_flag(*node);
    state_.remove_if_idle(node);
  }
  covered_.clear();
  everything_ = false;
  closed_.clear();
  expires_.clear();
  expiries_ = {};
}

// Closed keys that touch become ranges. Done for many at once: the cost is a sort over what has gathered, and
// the next time is not before as many again have come.
void Promises::grow_ranges() {
  std::sort(closed_.begin(), closed_.end());
  closed_.erase(std::unique(closed_.begin(), closed_.end()), closed_.end());
  std::erase_if(closed_, [&](Code key) {
    const INode* node = state_.index().find(key);
    return node == nullptr || node->flag() != PunctuationFlag::kPropagated;
  });
  std::vector<Code> single;
  for (size_t begin = 0; begin < closed_.size();) {
    size_t end = begin + 1;
    while (end < closed_.size() && closed_[end] == closed_[end - 1] + 1) ++end;
    const Code low = closed_[begin];
    const Code high = closed_[end - 1];
    const bool touches = (low > std::numeric_limits<Code>::min() && covered_.contains(low - 1)) ||
                         (high < std::numeric_limits<Code>::max() && covered_.contains(high + 1));
    if (end - begin >= kShortestRange || touches) {
      covered_.insert(low, high, kEnd);
      for (size_t i = begin; i < end; ++i) {
        INode* node = state_.index().find(closed_[i]);
        clear_flag(*node);
        state_.remove_if_idle(node);
      }
    } else {
      single.insert(single.end(), closed_.begin() + begin, closed_.begin() + end);
    }
    begin = end;
  }
  closed_ = std::move(single);
  grow_at_ = std::max(kFirstGrowth, closed_.size() * 2);
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
    INode* node = state_.index().find(key);
    if (node == nullptr) continue;
    clear_flag(*node);
    state_.remove_if_idle(node);
  }
}

size_t Promises::memory_bytes() const {
  return covered_.memory_bytes() + closed_.capacity() * sizeof(Code) +
         (expires_.size() + expiries_.size()) * kBytesPerExpiry;
}

std::string Promises::validate() const {
  size_t flagged = 0;
  size_t closed = 0;
  std::string broken;
  state_.index().for_each([&](const INode& key) {
    if (key.flag() == PunctuationFlag::kNone) return;
    ++flagged;
    closed += key.flag() == PunctuationFlag::kPropagated;
    if (options_.lifespan != kEnd && expires_.count(key.key) == 0)
      broken = "promises: a flagged key without expiry";
  });
  if (!broken.empty()) return broken;
  if (flagged != flagged_) return "promises: the count of flagged keys is wrong";
  if (closed != closed_count_) return "promises: the count of closed keys is wrong";
  if (options_.lifespan == kEnd && !expires_.empty()) return "promises: an expiry without a lifespan";
  return covered_.validate();
}

void Promises::save(ArchiveWriter& out) const {
  std::vector<Code> keys;
  state_.index().for_each([&](const INode& key) {
    if (key.flag() != PunctuationFlag::kNone) keys.push_back(key.key);
  });
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
  for (size_t i = 0; i < keys.size(); ++i) remember(keys[i], expires[i]);
  // Remembering may have grown ranges already.
  RangeSet covered;
  covered.load(in);
  covered.for_each([&](Code low, Code high, Time until) { covered_.insert(low, high, until); });
  everything_ = in.value<bool>();
}

}  // namespace streamjoin
