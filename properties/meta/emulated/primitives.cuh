// Stands in the place of kernels/cuda/primitives.cuh where a host compiler builds the kernels: a GPU's thread is a thread
// of the host, shared memory is an array, and a copy has arrived when it was asked for.
//
// Only what these kernels need, of blocks that share nothing. Whoever includes it defines `threadIdx`, `blockIdx` and `meeting`.
#pragma once

#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

// What the compiler for the device knows by itself, before numbers.cuh asks for it.
struct Index {
  unsigned x;
};
extern thread_local Index threadIdx;
extern thread_local Index blockIdx;
extern std::barrier<>* meeting;  // of a block's threads

inline void __syncthreads() { meeting->arrive_and_wait(); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((std::uint64_t{a} * b) >> 32); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __double2loint(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x)); }
inline int __double2hiint(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 32); }
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>((std::uint64_t{static_cast<unsigned>(high)} << 32) | static_cast<unsigned>(low));
}

#include "geometry.h"
#include "numbers.cuh"

#define __launch_bounds__(...)

namespace l1norm {

inline uint4 dynamic[1 << 14];  // a block's shared memory: 256 KB, more than any card has

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// All threads of the block come here together, as they come to every shuffle of a kernel that is run so.
template <typename Sum> Sum __shfl_xor_sync(unsigned, Sum value, int step) {
  static Sum shown[1 << 10];
  shown[threadIdx.x] = value;
  __syncthreads();
  Sum const other = shown[threadIdx.x ^ static_cast<unsigned>(step)];
  __syncthreads();
  return other;
}

enum class Keep { kUsual, kLong, kShort };
template <Keep kKeep = Keep::kUsual> uint4 load16(void const* from) {
  uint4 v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <Keep kKeep = Keep::kUsual> void store16(void* to, uint4 v) { std::memcpy(to, &v, sizeof v); }
template <Keep kKeep = Keep::kUsual> void copy16_async(uint4* to, void const* from) { *to = load16(from); }
template <typename T> void copy_element_async(T* to, T const* from) { *to = *from; }
inline void copies_arrived() {}
inline void let_next_begin() {}
inline void wait_for_previous() {}

}  // namespace l1norm
