// Pages: memory for large tables and slabs, straight from the system allocator.
//
// Large tables that are read at random cost more in address translation than in data. From one huge page (2 MiB) upwards the
// memory is aligned to it and the system is asked to back it so; small tables stay on small pages and cost what they touch.
// Memory comes zeroed.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace streamjoin {

inline constexpr size_t kHugePage = size_t{2} << 20;

inline void* allocate_pages(size_t bytes) {
  if (bytes < kHugePage) {
    void* memory = std::calloc(1, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  const size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, rounded);
  if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  madvise(memory, rounded, MADV_HUGEPAGE);
#endif
  std::memset(memory, 0, bytes);
  return memory;
}

inline void free_pages(void* memory) { std::free(memory); }

}  // namespace streamjoin
