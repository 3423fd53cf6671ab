// Asks the kernel of Linux for huge pages where fresh memory is about to be written for the first time.
//
// Large fresh memory costs one page fault every 4 KiB, and on a CPU these take longer than the arithmetic; with huge pages
// there is one every 2 MiB. A hint only: no content, no address and no result depends on it. Elsewhere than on Linux, and
// where huge pages are switched off, nothing happens.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace {

inline void prefer_huge_pages([[maybe_unused]] void* start, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(start) + page - 1) / page * page;
  const uintptr_t last = (reinterpret_cast<uintptr_t>(start) + bytes) / page * page;
  // Fails where the system has no huge pages, which leaves everything as it was.
  (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace
