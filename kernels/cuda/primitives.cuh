// The handful of named operations that the kernels are written in.
//
// Promise: everything the kernels ask of the machine beyond plain C++ (16-byte accesses, asynchronous copies, shuffles,
// barriers, the cluster, the grid barrier) stands in this file and in `team.cuh`, so that another machine, or an
// emulator of one, can supply it. Nothing here reads or writes a byte that its caller did not name.
#pragma once

#include "geometry.h"
#include "numbers.cuh"

namespace l1norm {

// What one fully coalesced access of 8 lanes covers, the unit of the L1 cache, and a row of shared memory's banks.
// Static shared memory is made of whole ones, so that the tensor's lines, which lie behind it, begin at one: rows of 8
// KB and more were 3 % slower where they began 16 bytes beside it.
constexpr int kLineBytes = 128;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// ---- memory ---------------------------------------------------------------------------------------------------------

// The same number, from which the compiler computes anew what it would else keep in registers all along.
__device__ inline int found_again(int number) {
  asm volatile("" : "+r"(number));
  return number;
}

__device__ inline uint4 found_again(uint4 v) {
  asm volatile("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w));
  return v;
}

// How long the L2 cache is to keep what is moved: as always, longer than everything else, or not at all if it needs room.
enum class Keep { kUsual, kLong, kShort };

// How long to keep what is read once. Where memory is fast: longest. Nobody asks for it again, but what is written does
// not have to wait for room among it, and 0.960 of a copy became 0.996 (H200, 16384 x 16383); whoever comes next does
// not lose by it.
template <Memory kMemory> constexpr Keep kKeepRead = kMemory == Memory::kFast ? Keep::kLong : Keep::kUsual;

template <Keep kKeep> __device__ inline std::uint64_t cache_policy() {
  static_assert(kKeep != Keep::kUsual, "what is kept as always has no policy");
  std::uint64_t policy;
  if constexpr (kKeep == Keep::kLong) {
    asm("createpolicy.fractional.L2::evict_last.b64 %0;" : "=l"(policy));
  } else {
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  }
  return policy;
}

// 16 bytes at a 16-byte aligned global address. The order of `volatile` keeps a refill of a buffer behind its last
// reading.
template <Keep kKeep = Keep::kUsual> __device__ inline uint4 load16(void const* from) {
  uint4 v;
  if constexpr (kKeep == Keep::kUsual) {
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  } else {
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from), "l"(cache_policy<kKeep>()));
  }
  return v;
}

// The same where it is `wanted`, zeros elsewhere; `from` may then be anything. One instruction under a condition: with a
// way around each of eight loads a short call takes a quarter longer (H200, 128 x 1024).
template <Keep kKeep = Keep::kUsual> __device__ inline uint4 load16_if(bool wanted, void const* from) {
  uint4 v = make_uint4(0, 0, 0, 0);
  if constexpr (kKeep == Keep::kUsual) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %5, 0;\n\t"
        "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
        : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
        : "l"(from), "r"(static_cast<int>(wanted)));
  } else {
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %6, 0;\n\t"
        "@p ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;\n\t}"
        : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
        : "l"(from), "l"(cache_policy<kKeep>()), "r"(static_cast<int>(wanted)));
  }
  return v;
}

template <Keep kKeep = Keep::kUsual> __device__ inline void store16(void* to, uint4 v) {
  if constexpr (kKeep == Keep::kUsual) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
  } else {
    asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w), "l"(cache_policy<kKeep>())
                 : "memory");
  }
}

// The same where it is `wanted`, nothing elsewhere.
__device__ inline void store16_if(bool wanted, void* to, uint4 v) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %5, 0;\n\t"
      "@p st.global.v4.u32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(to),
      "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(static_cast<int>(wanted))
      : "memory");
}

// Start copying 16 bytes from global to shared memory; both addresses 16-byte aligned. They have arrived, for the
// thread that asked, after `copies_arrived`; for its whole block after a barrier besides.
template <Keep kKeep = Keep::kUsual> __device__ inline void copy16_async(uint4* to_shared, void const* from_global) {
  unsigned const to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
  if constexpr (kKeep == Keep::kUsual) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from_global) : "memory");
  } else {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from_global),
                 "l"(cache_policy<kKeep>())
                 : "memory");
  }
}

// The same for one element; 16-bit elements are too small for it and are copied at once.
template <typename T> __device__ inline void copy_element_async(T* to_shared, T const* from_global) {
  if constexpr (sizeof(T) >= 4) {
    unsigned const to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
    constexpr int kBytes = static_cast<int>(sizeof(T));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from_global), "n"(kBytes) : "memory");
  } else {
    *to_shared = *from_global;
  }
}

__device__ inline void copies_arrived() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// A launch may begin while the kernel before it on the stream still runs, which saves a microsecond. It lets the next
// one begin at once, finds out where its data lies, and waits: only behind `wait_for_previous` may it touch memory.
// Both do nothing in launches that were not made so.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- sums of a warp ---------------------------------------------------------------------------------------------------

// Sum over each aligned group of `lanes` lanes (a power of two up to 32), the same bits in every lane of the group: a
// butterfly adds the same pairs in either order. Every lane of the warp takes part.
template <typename Sum> __device__ inline Sum group_sum(Sum value, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

template <typename Sum> __device__ inline Sum warp_sum(Sum value) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

}  // namespace l1norm
