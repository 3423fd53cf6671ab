// Dim 1 is not the innermost: the elements of a row lie a stride apart, and neighbours in memory belong to different
// rows.
//
// A tile is a strip of neighbouring rows. Threads lie along the strip, so a warp reads neighbouring elements; those
// behind each other, and the blocks of a cluster, share out the columns. A thread moves one unit at a time: 16 bytes
// where all addresses allow it, else an element. It keeps its units in shared memory, so a strip is read once; what
// does not fit is read twice, the second time backwards.
#pragma once

#include "rows.cuh"
#include "team.cuh"

namespace l1norm {

constexpr int kColumnThreads = 256;
constexpr int kColumnBlocks = 3;  // blocks an SM that the registers must leave room for

struct ColumnArgs {
  void const* in;
  void* out;
  std::int64_t columns;
  std::int64_t column_in;
  std::int64_t column_out;
  std::int64_t units;          // of a strip: units of neighbouring rows
  std::int64_t strips;         // tiles along a strip
  OuterDims<kFewOuter> outer;  // the other dimensions
  int across_log2;             // units across a tile, a power of two
  int team;                    // blocks that share a tile's columns
  int held;                    // units of a thread in shared memory, at most
};

// What a thread moves at once: a vector of neighbouring rows' elements, or one element.
template <typename T, bool kWide> struct Unit;

template <typename T> struct Unit<T, true> {
  using Type = uint4;
  static constexpr int kRows = kPerVector<T>;
  static __device__ SumOf<T> widen(uint4 const& unit, int i) { return Numeric<T>::widen(unit, i); }
  static __device__ uint4 load(T const* from) { return load16(from); }
  static __device__ void store(T* to, SumOf<T> const* y) { store16(to, Numeric<T>::pack(y)); }
  static __device__ void fetch(uint4* to, T const* from) { copy16_async(to, from); }
};

template <typename T> struct Unit<T, false> {
  using Type = T;
  static constexpr int kRows = 1;
  static __device__ SumOf<T> widen(T unit, int) { return Numeric<T>::widen(unit); }
  static __device__ T load(T const* from) { return *from; }
  static __device__ void store(T* to, SumOf<T> const* y) { *to = Numeric<T>::narrow(y[0]); }
  static __device__ void fetch(T* to, T const* from) { copy_element_async(to, from); }
};

template <typename T, bool kWide>
__global__ void __launch_bounds__(kColumnThreads, kColumnBlocks) column_tiles(ColumnArgs const args) {
  using Sum = SumOf<T>;
  using U = Unit<T, kWide>;
  constexpr int kRows = U::kRows;
  constexpr int kUnroll = 8;
  int const thread = static_cast<int>(threadIdx.x);
  int const across = 1 << args.across_log2;
  int const width = across * kRows;  // rows of a tile
  int const x = thread & (across - 1);
  int const y = thread >> args.across_log2;
  int const deep = kColumnThreads >> args.across_log2;  // threads behind each other
  int const rank = static_cast<int>(blockIdx.x % static_cast<unsigned>(args.team));
  std::int64_t const tile = blockIdx.x / static_cast<unsigned>(args.team);

  // Dynamic shared memory: the units, what the cluster's blocks send each other, the sums of the block's parts.
  extern __shared__ uint4 dynamic[];
  auto* const held = reinterpret_cast<typename U::Type*>(dynamic) + thread;
  Sum* const exchanged =
      reinterpret_cast<Sum*>(reinterpret_cast<typename U::Type*>(dynamic) + args.held * kColumnThreads);
  Sum* const partial = exchanged + (args.team > 1 ? args.team * width : 0);

  if (args.team > 1) cluster_arrive();
  wait_for_previous();

  std::int64_t const outer = divide(tile, args.strips);
  std::int64_t const unit = (tile - outer * args.strips) * across + x;
  Offsets const at = offsets(args.outer, outer);
  T const* const in = static_cast<T const*>(args.in) + at.in + unit * kRows;
  T* const out = static_cast<T*>(args.out) + at.out + unit * kRows;
  // This thread's columns: first, first + stride, ...
  int const first = y * args.team + rank;
  int const stride = deep * args.team;
  std::int64_t count = 0;
  if (unit < args.units && first < args.columns) count = divide(args.columns - 1 - first, stride) + 1;
  int const kept = static_cast<int>(count < args.held ? count : args.held);
  std::int64_t const step_in = stride * args.column_in;
  std::int64_t const step_out = stride * args.column_out;
  T const* const from = in + first * args.column_in;
  T* const to = out + first * args.column_out;

#pragma unroll kUnroll
  for (int k = 0; k < kept; ++k) U::fetch(held + k * kColumnThreads, from + k * step_in);
  Sum sum[kRows] = {};
  auto const add = [&](typename U::Type const& value, Sum* part) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) part[i] += magnitude(U::widen(value, i));
  };
  for (std::int64_t k = kept; k < count; ++k) add(U::load(from + k * step_in), sum);
  copies_arrived();
  for (int k = 0; k < kept; k += kUnroll) {
    Sum part[kRows] = {};
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (k + i < kept) add(held[(k + i) * kColumnThreads], part);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) sum[i] += part[i];
  }

  // Threads behind each other: in the warp, in the block, in the cluster.
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    for (int step = across; step < kWarp; step *= 2) sum[i] += __shfl_xor_sync(kAllLanes, sum[i], step);
  }
  int const wide = across < kWarp ? kWarp : across;
  int const groups = kColumnThreads / wide;
  if (groups > 1) {
    if ((thread & (wide - 1)) < across) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) partial[thread / wide * width + x * kRows + i] = sum[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      sum[i] = 0;
      for (int g = 0; g < groups; ++g) sum[i] += partial[g * width + x * kRows + i];
    }
  }
  if (args.team > 1) {
    cluster_wait();  // all members run, so their shared memory may be written
    for (int member = y; member < args.team; member += deep) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) cluster_store(&exchanged[rank * width + x * kRows + i], member, sum[i]);
    }
    cluster_arrive();
    cluster_wait();
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      sum[i] = 0;
      for (int m = 0; m < args.team; ++m) sum[i] += exchanged[m * width + x * kRows + i];
    }
  }
  RowScale<Sum> scale[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) scale[i] = row_scale(sum[i], static_cast<Sum>(args.columns));

  auto const store = [&](T* place, typename U::Type const& value) {
    Sum quotients[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) quotients[i] = quotient(U::widen(value, i), scale[i]);
    U::store(place, quotients);
  };
  for (std::int64_t k = count - 1; k >= kept; --k) store(to + k * step_out, U::load(from + k * step_in));
#pragma unroll 4
  for (int k = 0; k < kept; ++k) store(to + k * step_out, held[k * kColumnThreads]);
}

}  // namespace l1norm
