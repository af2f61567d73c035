// Pages: memory for large tables and slabs, straight from the system.
//
// Large tables that are read at random cost more in address translation than in data. From one huge page (2
// MiB) upwards memory is aligned to it and the system is asked to back it so; smaller tables stay on small
// pages and cost what they touch. Memory comes zeroed, and starts on a cache line.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace streamjoin {

inline constexpr size_t kCacheLine = 64;
inline constexpr size_t kHugePage = size_t{2} << 20;

inline size_t rounded_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

#if defined(__linux__)
/// Zeroed by the system, aligned to a huge page: asks for one more and gives back what lies beside.
inline void* map_huge_pages(size_t bytes) {
  const size_t rounded = rounded_up(bytes, kHugePage);
  void* mapped =
      mmap(nullptr, rounded + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = rounded_up(begin, kHugePage);
  if (aligned > begin) munmap(mapped, aligned - begin);
  if (const size_t behind = begin + kHugePage - aligned; behind > 0)
    munmap(reinterpret_cast<void*>(aligned + rounded), behind);
  madvise(reinterpret_cast<void*>(aligned), rounded, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}
#endif

inline void* allocate_pages(size_t bytes) {
#if defined(__linux__)
  if (bytes >= kHugePage) return map_huge_pages(bytes);
#endif
  void* memory = std::aligned_alloc(kCacheLine, rounded_up(bytes, kCacheLine));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return memory;
}

/// `bytes` is what was asked for.
inline void free_pages(void* memory, size_t bytes) {
  if (memory == nullptr) return;
#if defined(__linux__)
  if (bytes >= kHugePage) {
    munmap(memory, rounded_up(bytes, kHugePage));
    return;
  }
#endif
  std::free(memory);
}

}  // namespace streamjoin
