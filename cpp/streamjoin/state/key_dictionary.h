// KeyDictionary: keys of bytes <-> codes, with a count of the references to each.
//
//   slots     [tag|entry][ empty ][tag|entry]...      open addressing; the tag says where an entry belongs
//                   \_______________
//   entries   [0][1][2]...[511] | [512]...            entry number = code; in chunks, so bytes never move
//              |  \__ "01 berlin 00 00"               up to 20 bytes inside the entry,
//              \_____ -> [longer ones]                in a block of their own
//
// Invariants (validate() checks them):
//   1. An entry is live exactly if it has references; a live entry has one slot, reachable by probing.
//   2. A new key gets the smallest free code, so codes stay dense and freed ones come again.
//   3. At most 3/4 of the slots are taken; at least 1/8, unless there are only a few.
// Cost: intern, find, release O(1) expected: a cache miss for the slot, one for the entry, one for the bytes
// of a long key; all can be fetched ahead.
// Memory: 32 bytes an entry, 11 to 64 bytes of slots, the bytes of long keys. Chunks without a live entry are
// given back; one live entry keeps its chunk, because codes do not move.
// `hash` is always hash_bytes(bytes): the caller has it already. Views of bytes hold until their entry goes.
// Owned by the operator, shared by its streams, whose I-Nodes and batches hold the references. One thread.

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/base/check.h"
#include "streamjoin/base/code.h"
#include "streamjoin/base/hash.h"

namespace streamjoin {

class KeyDictionary {
 public:
  KeyDictionary() = default;
  ~KeyDictionary() { clear(); }
  KeyDictionary(KeyDictionary&& other) noexcept { swap(other); }
  KeyDictionary& operator=(KeyDictionary&& other) noexcept {
    swap(other);
    return *this;
  }

  /// The code of `bytes`, with one more reference; the first one creates it.
  Code intern(std::string_view bytes, uint64_t hash, bool& created);
  /// One more reference to a live code.
  void reference(Code code) {
    Entry& entry = this->entry(code);
    SJ_CHECK(++entry.references != 0, "too many references to a key");
  }
  /// One reference less. True if it was the last: the entry is gone and its code free for another key.
  bool release(Code code) {
    if (--entry(code).references > 0) return false;
    remove(static_cast<uint32_t>(code));
    return true;
  }
  /// The code of `bytes`, or kNoCode. Changes no count.
  Code find(std::string_view bytes, uint64_t hash) const;
  /// The bytes of a live code.
  std::string_view bytes(Code code) const { return entry(code).bytes(); }
  uint32_t references(Code code) const { return entry(code).references; }
  /// Whether any 64 bits are a live code: for codes that come from outside.
  bool is_live(Code code) const {
    const uint64_t number = static_cast<uint64_t>(code);
    if (number / kChunk >= chunks_.size() || !chunks_[number / kChunk]) return false;
    return (chunks_[number / kChunk]->live[number % kChunk / 64] >> (number % 64) & 1) != 0;
  }

  // For blocks of lookups, each over the whole block before the next: `prefetch` the slots, `prefetch_entry`
  // the entries, and `prefetch_bytes` where keys are longer than an entry holds. Only hints: a lookup without
  // them is right, only slower.
  void prefetch(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[home(tag_of(hash))]);
  }
  void prefetch_entry(uint64_t hash) const {
    const uint32_t likely = first_with_tag(tag_of(hash));
    if (likely != kFree) __builtin_prefetch(&entry(likely));
  }
  void prefetch_bytes(uint64_t hash) const {
    const uint32_t likely = first_with_tag(tag_of(hash));
    if (likely != kFree) __builtin_prefetch(entry(likely).data());
  }

  /// Calls `f(code, bytes)` for each live entry, ascending by code. `f` must not add or release keys.
  template <typename F>
  void for_each(F&& f) const {
    for (size_t number = 0; number < chunks_.size(); ++number) {
      if (!chunks_[number]) continue;
      for (size_t word = 0; word < kWords; ++word) {
        for (uint64_t left = chunks_[number]->live[word]; left != 0; left &= left - 1) {
          const Code code = static_cast<Code>(number * kChunk + word * 64 + std::countr_zero(left));
          f(code, bytes(code));
        }
      }
    }
  }

  size_t size() const { return size_; }
  size_t memory_bytes() const;
  void clear();

  void save(ArchiveWriter& archive) const;
  /// Replaces the content; codes and counts are as they were saved. On DamagedArchive the dictionary is as it
  /// was.
  void load(ArchiveReader& archive);
  /// Empty if sound, else the first broken invariant.
  std::string validate() const;

 private:
  static constexpr uint32_t kFree = 0xffffffff;
  static constexpr uint32_t kChunk = 512;
  static constexpr uint32_t kWords = kChunk / 64;
  static constexpr uint32_t kInside = 20;

  struct Slot {
    uint32_t tag;
    uint32_t entry;
  };
  /// Half a cache line, aligned to it, so that a look at a short key is one miss.
  struct alignas(32) Entry {
    uint32_t references;
    uint32_t tag;
    uint32_t length;
    char inside[kInside];  // the bytes, or the address of their block

    const char* data() const {
      if (length <= kInside) return inside;
      const char* block;
      std::memcpy(&block, inside, sizeof block);
      return block;
    }
    std::string_view bytes() const { return {data(), length}; }
  };
  struct Chunk {
    uint64_t live[kWords] = {};
    uint32_t count = 0;
    Entry entries[kChunk];
    Chunk() {}  // leaves the entries untouched: their pages are not needed yet
  };

  // The high half of the hash decides the slot, so growing and closing gaps need no look at an entry.
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t home(uint32_t tag) const { return slot_of(uint64_t{tag} << 32, slots_.size()); }
  size_t next(size_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }

  Entry& entry(Code code) { return const_cast<Entry&>(std::as_const(*this).entry(code)); }
  const Entry& entry(Code code) const {
    const uint64_t number = static_cast<uint64_t>(code);
    return chunks_[number / kChunk]->entries[number % kChunk];
  }
  uint32_t first_with_tag(uint32_t tag) const {
    if (slots_.empty()) return kFree;
    size_t at = home(tag);
    while (slots_[at].entry != kFree && slots_[at].tag != tag) at = next(at);
    return slots_[at].entry;
  }
  uint32_t find_entry(std::string_view bytes, uint32_t tag) const;
  uint32_t smallest_free_code();
  void fill(uint32_t code, std::string_view bytes, uint32_t tag, uint32_t references);
  void place(Slot slot);
  void remove(uint32_t code);
  void resize(size_t slots);
  void note_open(size_t chunk, bool open);
  void swap(KeyDictionary& other) noexcept;

  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // nullptr: no live entry
  std::vector<uint64_t> open_;                  // a bit per chunk: has it a free code?
  size_t first_open_ = 0;                       // no word of open_ before this one has a bit
  size_t size_ = 0;
  size_t outside_bytes_ = 0;  // in the blocks of long keys
};

}  // namespace streamjoin
