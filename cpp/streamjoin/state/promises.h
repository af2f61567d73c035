// Promises: what one stream has punctuated, and for how long that is remembered.
//
//   value list    promised: kPunctuated, rows of the key are still stored
//   closed        { 7, 30, 60 }             kPropagated: promised, no row of the key is stored
//   covered       [10 .. 19] [40 .. 47]     ranges of keys, promised as a whole, or grown from closed keys
//   that touch
//
// Closed keys lie apart from the rows: rows do not pay for them, and punctuations that concern no row do not
// move the index of the rows. A key inside a covered range is not held by itself once it has no rows, so
// memory follows the ranges, not the keys.
//
// Invariants (validate() checks them):
//   1. A promised value list has live rows; a closed key has none.
//   2. With a lifespan, every promised list, every closed key and every range has an expiry; without, none
//   has.
// Cost: flag O(1), or O(log ranges) for a key that is not held by itself while ranges are held; remember O(1)
// amortised (O(log n) with a lifespan or when it grows ranges). Lives beside the WindowState it annotates;
// one thread.

#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/base/code.h"
#include "streamjoin/base/time.h"
#include "streamjoin/punctuation/range_set.h"
#include "streamjoin/state/i_node_index.h"
#include "streamjoin/state/window_state.h"

namespace streamjoin {

struct PromiseOptions {
  /// How long a promise is remembered after its time; kEnd is for ever.
  Duration lifespan = kEnd;
  /// Whether neighbouring codes are neighbouring values: then closed keys that touch become ranges.
  bool codes_are_values = true;
};

class Promises {
 public:
  Promises(WindowState& state, PromiseOptions options)
      : state_(state), closed_(state.closed()), options_(options) {}

  /// False: no key is promised. The hot path asks this first.
  bool any() const { return open_ > 0 || closed_.size() > 0 || everything_ || !covered_.empty(); }
  /// Promised keys whose rows are still stored: their end will close them.
  bool any_open() const { return open_ > 0; }
  /// Whether a key that has no open promise may be promised all the same; `hash` is hash_code of it. False is
  /// sure, and costs one read.
  bool may_be_closed(uint64_t hash) const { return closed_near_[near(hash)] != 0; }
  /// Fetches ahead what tells whether a key is closed; `hash` is hash_code of it.
  void prefetch(uint64_t hash) const { closed_.prefetch(hash); }
  bool any_covered() const { return !covered_.empty(); }
  /// Whether keys may be promised that are neither open nor closed by themselves.
  bool covers_any() const { return everything_ || !covered_.empty(); }

  /// The flag of a key whose value list (or nullptr) was found already.
  PunctuationFlag flag(Code key, const ValueList* list) const {
    if (list != nullptr && list->promised()) return PunctuationFlag::kPunctuated;
    if (closed_.size() > 0 && is_closed(key)) return PunctuationFlag::kPropagated;
    if (!everything_ && (covered_.empty() || !covered_.contains(key))) return PunctuationFlag::kNone;
    return list != nullptr && list->has_rows() ? PunctuationFlag::kPunctuated : PunctuationFlag::kPropagated;
  }
  PunctuationFlag flag(Code key) const { return flag(key, state_.lists().find(key)); }
  bool is_closed(Code key) const { return may_be_closed(hash_code(key)) && closed_.find(key) != nullptr; }
  bool is_open(Code key) const {
    const ValueList* list = open_ == 0 ? nullptr : std::as_const(state_).lists().find(key);
    return list != nullptr && list->promised();
  }
  /// Keys in [low, high] that have rows or are closed, ascending.
  std::vector<Code> keys_between(Code low, Code high);

  /// Until when the promise about `key` is remembered; kBeginning if there is none.
  Time held_until(Code key) const;

  Time expiry_of(Time time) const { return end_of(time, options_.lifespan); }

  /// Remembers a promise about one key. Returns its flag from now on: kPunctuated while rows of it are
  /// stored, else kPropagated.
  PunctuationFlag remember(Code key, Time expires) {
    return remember(key, state_.lists().find(key), expires);
  }
  PunctuationFlag remember(Code key, ValueList* list, Time expires);
  /// The last row of a punctuated key is gone.
  void close(ValueList& list, Code key);
  /// A row of a promised key is stored all the same: its end will close the key.
  void reopen(ValueList& list, Code key);
  /// Forgets the promise about one key.
  void forget(Code key);

  // The short way of promises without lifespan, while no range is covered:
  /// Remembers a promise about a key that has no value list and is not closed.
  void close_unstored(Code key) { close_key(key); }
  /// Forgets a key if it is closed. True if it was.
  bool forget_closed(Code key) { return drop_closed(key); }

  /// Forgets every promise.
  void clear();

  /// Keys of a whole range are promised. Those with rows must be remembered one by one as well.
  void cover(Code low, Code high, Time expires) { covered_.insert(low, high, expires); }
  void uncover(Code low, Code high) { covered_.erase(low, high); }
  std::vector<std::pair<Code, Code>> covered_parts(Code low, Code high) const {
    if (everything_) return {{low, high}};
    return covered_.intersection(low, high);
  }
  /// The stream has ended: every key is promised, for ever.
  void cover_everything() { everything_ = true; }

  /// Forgets promises whose lifespan ended before the stream's clock.
  void expire(Time clock);

  /// Promises held without rows: closed keys and ranges.
  size_t held() const { return closed_.size() + covered_.ranges(); }
  size_t memory_bytes() const;
  std::string validate() const;
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  using Expiry = std::pair<Time, Code>;

  void open(ValueList& list);
  void drop_open(ValueList* list, Code key);
  void close_key(Code key);
  bool drop_closed(Code key);
  bool is_covered_for_ever(Code key) const {
    return everything_ || (options_.lifespan == kEnd && !covered_.empty() && covered_.contains(key));
  }
  void grow_ranges();
  static size_t near(uint64_t hash) { return hash >> (64 - kNearBits); }

  static constexpr unsigned kNearBits = 13;
  static constexpr uint8_t kUncounted = 255;

  WindowState& state_;
  INodeIndex& closed_;  // keys only: none has rows
  const PromiseOptions options_;
  RangeSet covered_;
  bool everything_ = false;
  // Closed keys, counted by the first bits of their hashes: zero tells nearly every row that its key is not
  // closed. A counter that is full stays so until no key is closed.
  std::array<uint8_t, size_t{1} << kNearBits> closed_near_{};
  bool any_uncounted_ = false;
  size_t open_ = 0;                 // promised value lists
  std::vector<Code> newly_closed_;  // since ranges were last grown; may name keys that were forgotten since
  size_t grow_at_ = 1024;
  std::unordered_map<Code, Time> expires_;  // of open and closed keys, with a lifespan only
  std::priority_queue<Expiry, std::vector<Expiry>, std::greater<>> expiries_;
};

}  // namespace streamjoin
