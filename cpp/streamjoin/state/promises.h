// Promises: what one stream has punctuated, and for how long that is remembered.
//
//   I-Node flag   kPunctuated    promised, rows of the key are still stored
//                 kPropagated    promised, none is stored: closed
//   covered       [10 .. 19] [40 .. 47]     ranges of keys, promised as a whole, or grown from closed keys
//   that touch
//
// A key inside a covered range needs no I-Node of its own once it has no rows, so memory follows the ranges,
// not the keys.
//
// Invariants (validate() checks them):
//   1. A flagged I-Node without live rows is kPropagated, one with live rows is kPunctuated.
//   2. With a lifespan, every flagged key and every range has an expiry; without, none has.
// Cost: flag O(1), or O(log ranges) for a key that has no I-Node while ranges are held; remember O(1)
// amortised (O(log n) with a lifespan or when it grows ranges). Lives beside the WindowState it annotates;
// one thread.

#pragma once

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
  Promises(WindowState& state, PromiseOptions options) : state_(state), options_(options) {}

  /// False: no key is promised. The hot path asks this first.
  bool any() const { return flagged_ > 0 || everything_ || !covered_.empty(); }
  /// Promised keys whose rows are still stored: their end will close them.
  bool any_open() const { return flagged_ > closed_count_; }
  bool any_covered() const { return !covered_.empty(); }

  /// The flag of a key whose I-Node (or nullptr) was found already.
  PunctuationFlag flag(Code key, const INode* node) const {
    if (node != nullptr && node->flag() != PunctuationFlag::kNone) return node->flag();
    if (!everything_ && (covered_.empty() || !covered_.contains(key))) return PunctuationFlag::kNone;
    return node != nullptr && node->has_rows() ? PunctuationFlag::kPunctuated : PunctuationFlag::kPropagated;
  }
  PunctuationFlag flag(Code key) const { return flag(key, state_.index().find(key)); }

  /// Until when the promise about `key` is remembered; kBeginning if there is none.
  Time held_until(Code key) const;

  Time expiry_of(Time time) const { return end_of(time, options_.lifespan); }

  /// Remembers a promise about one key. Returns its flag from now on: kPunctuated while rows of it are
  /// stored, else kPropagated.
  PunctuationFlag remember(Code key, Time expires);
  /// The last row of a punctuated key is gone.
  void close(INode& key);
  /// A row of a promised key is stored all the same: its end will close the key.
  void reopen(INode& key);
  /// Forgets the promise about one key.
  void forget(Code key);

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
  size_t held() const { return closed_count_ + covered_.ranges(); }
  size_t closed_keys() const { return closed_count_; }
  size_t memory_bytes() const;
  std::string validate() const;
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  using Expiry = std::pair<Time, Code>;

  void set_flag(INode& key, PunctuationFlag flag);
  void clear_flag(INode& key);
  void grow_ranges();

  WindowState& state_;
  const PromiseOptions options_;
  RangeSet covered_;
  bool everything_ = false;
  size_t flagged_ = 0;
  size_t closed_count_ = 0;
  std::vector<Code> closed_;  // closed since ranges were last grown; may name keys that were forgotten since
  size_t grow_at_ = 1024;
  std::unordered_map<Code, Time> expires_;  // of flagged keys, with a lifespan only
  std::priority_queue<Expiry, std::vector<Expiry>, std::greater<>> expiries_;
};

}  // namespace streamjoin
