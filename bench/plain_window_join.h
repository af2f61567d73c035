// PlainWindowJoin: the yardstick. A symmetric hash window join of two streams and nothing more.
//
//   ring of a stream   head -> | row | row | row | row | <- tail     rows in time order, newest at the tail
//                                 ^-----------'  older row of the same key
//   index of a stream  key -> newest row of the key
//
// int64 keys and times in, pairs of row numbers out: no punctuations, no outer rows, no payload, no late
// rows. A left row matches right rows up to `window_left` after it, a right row left rows up to
// `window_right` after it, both inclusive. The streams need not be in step: a row is forgotten when the clock
// of the other stream has passed its window.
//
// Invariants:
//   1. The times of a ring ascend. A link points to an earlier row; one before the head is forgotten.
//   2. The index holds exactly the keys that have a row in the ring; deletion shifts back, no tombstones.
//   3. The index is a quarter full at the hinted size, measured to be fastest, unless asked to be smaller.
// Cost: O(1 + matches + rows of the key that the other stream is not yet near) a row. 32 to 64 bytes a row
// for the ring, which is a power of two, and 64 a row for the index at the hinted size. Rows go through in
// blocks whose memory is asked for ahead, stage by stage. One thread.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "streamjoin/base/hash.h"
#include "streamjoin/base/time.h"

namespace streamjoin::bench {

class PlainWindowJoin {
 public:
  using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;  // (left row, right row)

  /// `slots_per_row`: size of the index at the hinted number of rows. 4 is fastest; beyond three quarters
  /// full it doubles.
  PlainWindowJoin(Duration window_left, Duration window_right, size_t capacity_hint, double slots_per_row = 4)
      : sides_{Side(window_left, capacity_hint, slots_per_row),
               Side(window_right, capacity_hint, slots_per_row)} {}

  /// Joins rows of stream `side` (0 left, 1 right), numbered from `first_row`, and appends their matches.
  /// Times must ascend within a stream.
  void push(int side, std::span<const int64_t> times, std::span<const int64_t> keys, uint64_t first_row,
            Pairs& out) {
    for (size_t begin = 0; begin < times.size(); begin += kBlock) {
      const size_t size = std::min(kBlock, times.size() - begin);
      push_block(side, times.subspan(begin, size), keys.subspan(begin, size), first_row + begin, out);
    }
  }

  size_t stored_rows(int side) const { return sides_[side].tail - sides_[side].head; }
  size_t stored_keys(int side) const { return sides_[side].keys; }

 private:
  static constexpr size_t kBlock = 64;
  static constexpr uint64_t kNone = 0;

  // Rows are numbered from 1 in order of arrival, so that 0 can say "none".
  struct alignas(32) Row {  // never on two cache lines
    Time time;
    int64_t key;
    uint64_t number;  // as the caller counts
    uint64_t older;   // of the same key
  };
  struct Slot {
    int64_t key;
    uint64_t newest;  // kNone: empty
  };

  struct Side {
    Side(Duration window_after, size_t capacity_hint, double slots_per_row)
        : window(window_after),
          rows(std::bit_ceil(std::max(capacity_hint, 2 * kBlock))),
          slots(
              static_cast<size_t>(slots_per_row * static_cast<double>(std::max(capacity_hint, 2 * kBlock)))) {
    }

    Row& row(uint64_t arrival) { return rows[arrival & (rows.size() - 1)]; }
    size_t home(int64_t key) const { return slot_of(mix(static_cast<uint64_t>(key)), slots.size()); }
    size_t next(size_t slot) const { return slot + 1 == slots.size() ? 0 : slot + 1; }
    size_t distance(size_t from, size_t to) const {
      return to >= from ? to - from : to + slots.size() - from;
    }

    size_t find(int64_t key, size_t slot) const {
      while (slots[slot].newest != kNone && slots[slot].key != key) slot = next(slot);
      return slot;
    }

    void insert(Time time, int64_t key, uint64_t number, size_t home_slot) {
      Slot& slot = slots[find(key, home_slot)];
      keys += slot.newest == kNone;
      row(tail) = {time, key, number, slot.newest};
      slot = {key, tail++};
    }

    void reserve_block() {
      if (tail - head + kBlock > rows.size()) {
        std::vector<Row> old(2 * rows.size());
        old.swap(rows);
        for (uint64_t arrival = head; arrival != tail; ++arrival)
          row(arrival) = old[arrival & (old.size() - 1)];
      }
      if (4 * (keys + kBlock) > 3 * slots.size()) {
        std::vector<Slot> old(2 * slots.size());
        old.swap(slots);
        for (const Slot& slot : old) {
          if (slot.newest != kNone) slots[find(slot.key, home(slot.key))] = slot;
        }
      }
    }

    /// Forgets the rows whose window ended before the other stream's clock.
    void expire(Time other_clock) {
      while (head != tail && ended(row(head), other_clock)) {
        const uint64_t end = std::min<uint64_t>(tail, head + kBlock);
        for (uint64_t ahead = head; ahead != end && ended(row(ahead), other_clock); ++ahead) {
          __builtin_prefetch(&slots[home(row(ahead).key)], 1);
        }
        for (; head != end && ended(row(head), other_clock); ++head) {
          const size_t slot = find(row(head).key, home(row(head).key));
          if (slots[slot].newest == head) erase(slot);
        }
      }
    }

    bool ended(const Row& stored, Time other_clock) const {
      return add_saturating(stored.time, window) < other_clock;
    }

    /// Backward shift: pulls later keys of the cluster into the hole wherever their home allows.
    void erase(size_t hole) {
      for (size_t at = next(hole); slots[at].newest != kNone; at = next(at)) {
        if (distance(home(slots[at].key), at) < distance(hole, at)) continue;
        slots[hole] = slots[at];
        hole = at;
      }
      slots[hole].newest = kNone;
      --keys;
    }

    Duration window;
    std::vector<Row> rows;  // a power of two
    std::vector<Slot> slots;
    uint64_t head = 1, tail = 1;
    size_t keys = 0;
    Time clock = kBeginning;
  };

  void push_block(int side, std::span<const int64_t> times, std::span<const int64_t> keys, uint64_t first_row,
                  Pairs& out) {
    Side& own = sides_[side];
    Side& other = sides_[1 - side];
    // Once a block: what a later row of the block would expire is in nobody's way, since a probe checks
    // times.
    other.expire(times.front());
    own.clock = times.back();
    own.reserve_block();

    std::array<size_t, kBlock> own_homes, other_homes;
    std::array<uint64_t, kBlock> newest;
    for (size_t i = 0; i < times.size(); ++i) {
      own_homes[i] = own.home(keys[i]);
      other_homes[i] = other.home(keys[i]);
      __builtin_prefetch(&other.slots[other_homes[i]]);
      __builtin_prefetch(&own.slots[own_homes[i]], 1);
    }
    for (size_t i = 0; i < times.size(); ++i) {
      newest[i] = other.slots[other.find(keys[i], other_homes[i])].newest;
      if (newest[i] != kNone) __builtin_prefetch(&other.row(newest[i]));
    }
    for (size_t i = 0; i < times.size(); ++i) {
      const Time earliest = add_saturating(times[i], -other.window);
      const Time latest = add_saturating(times[i], own.window);
      for (uint64_t arrival = newest[i]; arrival >= other.head;) {
        const Row& match = other.row(arrival);
        if (match.time < earliest) break;
        if (match.time <= latest) {
          out.emplace_back(side == 0 ? first_row + i : match.number,
                           side == 0 ? match.number : first_row + i);
        }
        arrival = match.older;
      }
      if (latest >= other.clock) own.insert(times[i], keys[i], first_row + i, own_homes[i]);
    }
  }

  std::array<Side, 2> sides_;
};

}  // namespace streamjoin::bench
