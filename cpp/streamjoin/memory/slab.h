// Slab: nodes of one kind in large blocks, linked by 32-bit index instead of pointer.
//
//   index = block << shift | offset
//   blocks_  [ block 0 ][ block 1 ][   -   ][ block 3 ]      a block without nodes gives its memory back
//
// Invariants (validate() checks them):
//   1. used nodes + free nodes of a block = nodes it has handed out at least once.
//   2. A block without used nodes holds no memory, except the current one and one spare.
// Cost: allocate and release O(1). A window moves on through the blocks, so old ones empty and are returned:
// memory follows the nodes in use. Where nodes go at random, one that stays keeps its block; is_sparse() then
// tells the owner, who alone knows the links, to move the rest to another slab and swap. Nodes are not
// initialised. Owned by one state; one thread.

#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "streamjoin/memory/pages.h"

namespace streamjoin {

inline constexpr uint32_t kNoNode = 0x3fffffff;  // 30 bits: two more are left for flags beside a link

struct SlabOptions {
  uint32_t nodes_per_block_log2 = 16;
};

template <typename T>
class Slab {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) >= sizeof(uint32_t));

 public:
  explicit Slab(SlabOptions options = {})
      : shift_(options.nodes_per_block_log2), mask_((uint32_t{1} << options.nodes_per_block_log2) - 1) {}
  ~Slab() {
    for (const Block& block : blocks_) free_block(block);
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  T& operator[](uint32_t index) { return blocks_[index >> shift_].nodes[index & mask_]; }
  const T& operator[](uint32_t index) const { return blocks_[index >> shift_].nodes[index & mask_]; }
  void prefetch(uint32_t index) const { __builtin_prefetch(&(*this)[index]); }

  uint32_t allocate() {
    if (current_ == kNoBlock || !has_room(blocks_[current_])) [[unlikely]]
      choose_current();
    Block& block = blocks_[current_];
    uint32_t offset = block.first_free;
    if (offset == kNoNode) {
      offset = block.touched++;
    } else {
      std::memcpy(&block.first_free, &block.nodes[offset], sizeof(uint32_t));
    }
    ++block.used;
    ++used_;
    return (current_ << shift_) | offset;
  }

  void release(uint32_t index) {
    const uint32_t number = index >> shift_;
    Block& block = blocks_[number];
    std::memcpy(static_cast<void*>(&block.nodes[index & mask_]), &block.first_free, sizeof(uint32_t));
    block.first_free = index & mask_;
    --block.used;
    --used_;
    if (number == current_) return;
    if (block.used == 0) {
      retire(number);
    } else if (!block.listed) {
      block.listed = true;
      with_room_.push_back(number);
    }
  }

  size_t used() const { return used_; }
  uint32_t nodes_per_block_log2() const { return shift_; }

  /// Whether the blocks held have room for more than twice the nodes in use, and for a few blocks more.
  bool is_sparse() const { return blocks_held_ > 2 * (used_ >> shift_) + kFewBlocks; }

  void swap(Slab& other) noexcept {
    std::swap(shift_, other.shift_);
    std::swap(mask_, other.mask_);
    blocks_.swap(other.blocks_);
    with_room_.swap(other.with_room_);
    vacant_.swap(other.vacant_);
    std::swap(current_, other.current_);
    std::swap(spare_, other.spare_);
    std::swap(used_, other.used_);
    std::swap(blocks_held_, other.blocks_held_);
  }

  /// Bytes of the blocks held; of one on small pages those that were ever handed out.
  size_t memory_bytes() const {
    size_t bytes = 0;
    for (uint32_t number = 0; number < blocks_.size(); ++number) {
      const Block& block = blocks_[number];
      if (block.nodes == nullptr) continue;
      bytes += block.huge || number == spare_ ? block_bytes() : block.touched * sizeof(T);
    }
    return bytes;
  }

  /// Names the first broken invariant, or is empty.
  std::string validate() const {
    size_t used = 0;
    size_t idle = 0;
    size_t held = 0;
    for (uint32_t number = 0; number < blocks_.size(); ++number) {
      const Block& block = blocks_[number];
      if (block.nodes == nullptr) continue;
      ++held;
      size_t free = 0;
      for (uint32_t at = block.first_free; at != kNoNode && free <= block.touched; ++free) {
        std::memcpy(&at, &block.nodes[at], sizeof(uint32_t));
      }
      if (free + block.used != block.touched) return "slab: used and free nodes of a block do not add up";
      used += block.used;
      idle += block.used == 0 && number != current_;
    }
    if (used != used_) return "slab: the count of used nodes is wrong";
    if (held != blocks_held_) return "slab: the count of blocks held is wrong";
    if (idle > 1) return "slab: more than one spare block is held";
    return {};
  }

 private:
  static constexpr uint32_t kNoBlock = 0xffffffff;
  static constexpr size_t kFewBlocks = 8;
  struct alignas(32) Block {
    T* nodes = nullptr;
    uint32_t used = 0;
    uint32_t touched = 0;
    uint32_t first_free = kNoNode;
    bool listed = false;  // on with_room_
    bool huge = false;
  };

  bool has_room(const Block& block) const { return block.first_free != kNoNode || block.touched <= mask_; }

  // The spare first: its nodes are handed out in order again, and neighbours in time stay neighbours in
  // memory.
  void choose_current() {
    if (spare_ != kNoBlock) {
      current_ = spare_;
      spare_ = kNoBlock;
      return;
    }
    while (!with_room_.empty()) {
      const uint32_t number = with_room_.back();
      with_room_.pop_back();
      blocks_[number].listed = false;
      if (blocks_[number].nodes != nullptr && has_room(blocks_[number])) {
        current_ = number;
        return;
      }
    }
    if (vacant_.empty()) {
      if (blocks_.size() >= (size_t{kNoNode} >> shift_)) throw std::bad_alloc();
      vacant_.push_back(static_cast<uint32_t>(blocks_.size()));
      blocks_.emplace_back();
    }
    const uint32_t number = vacant_.back();
    allocate_block(blocks_[number]);
    vacant_.pop_back();
    current_ = number;
  }

  // The first block stays on small pages: most states are small and should cost what they touch. No node lies
  // on two cache lines if its size divides one.
  void allocate_block(Block& block) {
    block.huge = used_ > 0 && block_bytes() >= kHugePage;
    block.nodes =
        static_cast<T*>(block.huge ? allocate_pages(block_bytes())
                                   : std::aligned_alloc(kCacheLine, rounded_up(block_bytes(), kCacheLine)));
    if (block.nodes == nullptr) throw std::bad_alloc();
    ++blocks_held_;
  }
  void free_block(const Block& block) {
    block.huge ? free_pages(block.nodes, block_bytes()) : std::free(block.nodes);
  }
  size_t block_bytes() const { return sizeof(T) << shift_; }

  void retire(uint32_t number) {
    Block& block = blocks_[number];
    const bool listed = block.listed;
    if (spare_ == kNoBlock) {
      block = Block{.nodes = block.nodes, .listed = listed, .huge = block.huge};
      spare_ = number;
      return;
    }
    free_block(block);
    --blocks_held_;
    block = Block{.listed = listed};
    vacant_.push_back(number);
  }

  uint32_t shift_;
  uint32_t mask_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> with_room_;
  std::vector<uint32_t> vacant_;
  uint32_t current_ = kNoBlock;
  uint32_t spare_ = kNoBlock;
  size_t used_ = 0;
  size_t blocks_held_ = 0;
};

}  // namespace streamjoin
