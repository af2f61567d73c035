#include "streamjoin/state/key_dictionary.h"

#include <algorithm>
#include <utility>

namespace streamjoin {
namespace {

constexpr size_t kFewestSlots = 16;

}  // namespace

uint32_t KeyDictionary::find_entry(std::string_view bytes, uint32_t tag) const {
  if (slots_.empty()) return kFree;
  for (size_t at = home(tag);; at = next(at)) {
    const Slot slot = slots_[at];
    if (slot.entry == kFree) return kFree;
    if (slot.tag == tag && entry(slot.entry).bytes() == bytes) return slot.entry;
  }
}

Code KeyDictionary::find(std::string_view bytes, uint64_t hash) const {
  const uint32_t found = find_entry(bytes, tag_of(hash));
  return found == kFree ? kNoCode : static_cast<Code>(found);
}

Code KeyDictionary::intern(std::string_view bytes, uint64_t hash, bool& created) {
  const uint32_t tag = tag_of(hash);
  const uint32_t found = find_entry(bytes, tag);
  created = found == kFree;
  if (!created) {
    reference(found);
    return found;
  }
  if ((size_ + 1) * 4 > slots_.size() * 3) resize(std::max(kFewestSlots, slots_.size() * 2));
  const uint32_t code = smallest_free_code();
  fill(code, bytes, tag, 1);
  place({tag, code});
  return code;
}

void KeyDictionary::note_open(size_t chunk, bool open) {
  const uint64_t bit = uint64_t{1} << (chunk % 64);
  if (open) {
    open_[chunk / 64] |= bit;
    first_open_ = std::min(first_open_, chunk / 64);
  } else {
    open_[chunk / 64] &= ~bit;
  }
}

/// Finds it and leaves its chunk in memory.
uint32_t KeyDictionary::smallest_free_code() {
  while (first_open_ < open_.size() && open_[first_open_] == 0) ++first_open_;
  if (first_open_ == open_.size()) {
    // All chunks are full. The bits of chunks beyond the last are set too: they are free, if not yet there.
    SJ_CHECK(open_.size() < (uint64_t{1} << 32) / (64 * kChunk), "too many keys for 32-bit codes");
    open_.push_back(~uint64_t{0});
  }
  const size_t number = first_open_ * 64 + std::countr_zero(open_[first_open_]);
  if (number >= chunks_.size()) chunks_.resize(number + 1);
  if (!chunks_[number]) chunks_[number] = std::make_unique<Chunk>();
  size_t word = 0;
  while (chunks_[number]->live[word] == ~uint64_t{0}) ++word;
  const uint64_t code = number * kChunk + word * 64 + std::countr_one(chunks_[number]->live[word]);
  SJ_CHECK(code < kFree, "too many keys for 32-bit codes");
  return static_cast<uint32_t>(code);
}

/// Makes a free code, whose chunk is in memory, a live entry. It has no slot yet.
void KeyDictionary::fill(uint32_t code, std::string_view bytes, uint32_t tag, uint32_t references) {
  Chunk& chunk = *chunks_[code / kChunk];
  Entry& entry = chunk.entries[code % kChunk];
  SJ_CHECK(bytes.size() < kFree, "a key is longer than 4 GiB");
  if (bytes.size() <= kInside) {
    std::copy(bytes.begin(), bytes.end(), entry.inside);
  } else {
    char* block = new char[bytes.size()];
    std::memcpy(block, bytes.data(), bytes.size());
    std::memcpy(entry.inside, &block, sizeof block);
    outside_bytes_ += bytes.size();
  }
  entry.references = references;
  entry.tag = tag;
  entry.length = static_cast<uint32_t>(bytes.size());
  chunk.live[code % kChunk / 64] |= uint64_t{1} << (code % 64);
  if (++chunk.count == kChunk) note_open(code / kChunk, false);
  ++size_;
}

void KeyDictionary::place(Slot slot) {
  size_t at = home(slot.tag);
  while (slots_[at].entry != kFree) at = next(at);
  slots_[at] = slot;
}

void KeyDictionary::resize(size_t slots) {
  SJ_CHECK(slots < (uint64_t{1} << 32), "too many keys for one dictionary");
  std::vector<Slot> old(slots, Slot{0, kFree});
  old.swap(slots_);
  // Slots are in the order of their tags, old and new, so this walks both tables from front to back.
  for (const Slot slot : old) {
    if (slot.entry != kFree) place(slot);
  }
}

void KeyDictionary::remove(uint32_t code) {
  Chunk& chunk = *chunks_[code / kChunk];
  const Entry& entry = chunk.entries[code % kChunk];
  size_t gap = home(entry.tag);
  while (slots_[gap].entry != code) gap = next(gap);
  // Close the gap: an entry further along moves into it unless it would come to stand before its home.
  const auto steps = [this](size_t from, size_t to) {
    return to >= from ? to - from : to + slots_.size() - from;
  };
  for (size_t at = next(gap); slots_[at].entry != kFree; at = next(at)) {
    if (steps(home(slots_[at].tag), at) < steps(gap, at)) continue;
    slots_[gap] = slots_[at];
    gap = at;
  }
  slots_[gap].entry = kFree;

  if (entry.length > kInside) {
    outside_bytes_ -= entry.length;
    delete[] entry.data();
  }
  chunk.live[code % kChunk / 64] &= ~(uint64_t{1} << (code % 64));
  if (chunk.count == kChunk) note_open(code / kChunk, true);
  if (--chunk.count == 0) {
    chunks_[code / kChunk].reset();
    while (!chunks_.empty() && !chunks_.back()) chunks_.pop_back();
  }
  --size_;
  if (slots_.size() > kFewestSlots && size_ * 8 < slots_.size())
    resize(std::max(kFewestSlots, slots_.size() / 4));
}

void KeyDictionary::clear() {
  if (outside_bytes_ > 0) {
    for_each([](Code, std::string_view bytes) {
      if (bytes.size() > kInside) delete[] bytes.data();
    });
  }
  slots_ = std::vector<Slot>();
  chunks_ = std::vector<std::unique_ptr<Chunk>>();
  open_ = std::vector<uint64_t>();
  first_open_ = size_ = outside_bytes_ = 0;
}

void KeyDictionary::swap(KeyDictionary& other) noexcept {
  std::swap(slots_, other.slots_);
  std::swap(chunks_, other.chunks_);
  std::swap(open_, other.open_);
  std::swap(first_open_, other.first_open_);
  std::swap(size_, other.size_);
  std::swap(outside_bytes_, other.outside_bytes_);
}

size_t KeyDictionary::memory_bytes() const {
  size_t bytes = sizeof(*this) + slots_.capacity() * sizeof(Slot) + chunks_.capacity() * sizeof(void*) +
                 open_.capacity() * sizeof(uint64_t) + outside_bytes_;
  for (const auto& chunk : chunks_) bytes += chunk ? sizeof(Chunk) : 0;
  return bytes;
}

void KeyDictionary::save(ArchiveWriter& archive) const {
  archive.value<uint64_t>(size_);
  for_each([&](Code code, std::string_view bytes) {
    archive.value<uint32_t>(static_cast<uint32_t>(code));
    archive.value<uint32_t>(references(code));
    archive.text(bytes);
  });
}

void KeyDictionary::load(ArchiveReader& archive) {
  KeyDictionary loaded;
  const uint64_t count = archive.value<uint64_t>();
  uint64_t smallest = 0;  // that the next code may be
  for (uint64_t at = 0; at < count; ++at) {
    const uint32_t code = archive.value<uint32_t>();
    const uint32_t references = archive.value<uint32_t>();
    const std::string bytes = archive.text();
    const uint32_t tag = tag_of(hash_bytes(bytes));
    if (code < smallest || code == kFree) throw DamagedArchive("snapshot holds key codes out of order");
    if (references == 0) throw DamagedArchive("snapshot holds a key without references");
    if (references > kFree / 2) throw DamagedArchive("snapshot holds a key with more references than rows");
    if (loaded.find_entry(bytes, tag) != kFree) throw DamagedArchive("snapshot holds a key twice");
    smallest = uint64_t{code} + 1;

    const size_t number = code / kChunk;
    if (number >= loaded.chunks_.size()) loaded.chunks_.resize(number + 1);
    if (!loaded.chunks_[number]) loaded.chunks_[number] = std::make_unique<Chunk>();
    if (number / 64 >= loaded.open_.size()) loaded.open_.resize(number / 64 + 1, ~uint64_t{0});
    if ((loaded.size_ + 1) * 4 > loaded.slots_.size() * 3) {
      loaded.resize(std::max(kFewestSlots, loaded.slots_.size() * 2));
    }
    loaded.fill(code, bytes, tag, references);
    loaded.place({tag, code});
  }
  *this = std::move(loaded);
}

std::string KeyDictionary::validate() const {
  const auto of = [](Code code) { return " of code " + std::to_string(code); };
  std::string broken;
  size_t live = 0, outside = 0;
  for_each([&](Code code, std::string_view bytes) {
    ++live;
    if (bytes.size() > kInside) outside += bytes.size();
    if (!broken.empty()) return;
    if (entry(code).references == 0) broken = "no references to the live entry" + of(code);
    if (find_entry(bytes, entry(code).tag) != static_cast<uint32_t>(code))
      broken = "probing misses the entry" + of(code);
  });
  if (!broken.empty()) return broken;
  if (live != size_) return "size differs from the live entries";
  if (outside != outside_bytes_) return "bytes of long keys are counted wrongly";
  const auto taken = std::ranges::count_if(slots_, [](Slot slot) { return slot.entry != kFree; });
  if (static_cast<size_t>(taken) != size_) return "slots taken differ from the live entries";
  if (size_ * 4 > slots_.size() * 3) return "too many slots are taken";
  if (slots_.size() > kFewestSlots && size_ * 8 < slots_.size()) return "too few slots are taken";
  for (size_t number = 0; number < open_.size() * 64; ++number) {
    const Chunk* chunk = number < chunks_.size() ? chunks_[number].get() : nullptr;
    size_t count = 0;
    for (size_t word = 0; chunk && word < kWords; ++word) count += std::popcount(chunk->live[word]);
    if (chunk && (count == 0 || count != chunk->count)) return "live entries of a chunk are counted wrongly";
    const bool open = (open_[number / 64] >> (number % 64) & 1) != 0;
    if (open != (count < kChunk)) return "a chunk is not open exactly if it has a free code";
    if (open && number / 64 < first_open_) return "an open chunk lies before the first open one";
  }
  if (chunks_.size() > open_.size() * 64) return "a chunk has no mark for being open";
  return "";
}

}  // namespace streamjoin
