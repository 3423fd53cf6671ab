// Any strides at all: elements are read one by one, twice. The kernel of last resort, and right for every layout.
//
// 32 or 256 threads share a row. Eight loads are summed as a tree before they join a thread's sum, so even 32 threads
// add as many partial sums as 256 would.
#pragma once

#include "rows.cuh"

namespace l1norm {

constexpr int kStridedThreads = 256;

struct StridedArgs {
  void const* in;
  void* out;
  std::int64_t count;
  std::int64_t columns;
  std::int64_t column_in;
  std::int64_t column_out;
  OuterDims<kMaxOuter> outer;
  int lanes;  // kWarp or kStridedThreads
};

template <typename T> __global__ void __launch_bounds__(kStridedThreads, 3) strided_rows(StridedArgs const args) {
  using Sum = SumOf<T>;
  constexpr int kUnroll = 8;
  __shared__ Sum warps[2][kStridedThreads / kWarp];
  let_next_begin();
  wait_for_previous();
  int const lane = static_cast<int>(threadIdx.x) & (args.lanes - 1);
  int const per_block = kStridedThreads / args.lanes;
  std::int64_t const step = static_cast<std::int64_t>(gridDim.x) * per_block;
  int turn = 0;
  // With 256 lanes the whole block walks the same rows, so its barrier is met by all.
  for (std::int64_t row =
           static_cast<std::int64_t>(blockIdx.x) * per_block + static_cast<int>(threadIdx.x) / args.lanes;
       row < args.count; row += step) {
    Offsets const at = offsets(args.outer, row);
    T const* const in = static_cast<T const*>(args.in) + at.in;
    T* const out = static_cast<T*>(args.out) + at.out;
    Sum sum = 0;
    for (std::int64_t first = lane; first < args.columns; first += kUnroll * args.lanes) {
      Sum part[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        std::int64_t const j = first + i * args.lanes;
        part[i] = j < args.columns ? magnitude(Numeric<T>::widen(in[j * args.column_in])) : Sum(0);
      }
      sum += tree_sum<kUnroll>(part);
    }
    sum = warp_sum(sum);
    if (args.lanes == kStridedThreads) {
      // Two sets of slots, used in turn: a slow warp may still read the last row's.
      if (threadIdx.x % kWarp == 0) warps[turn][threadIdx.x / kWarp] = sum;
      __syncthreads();
      sum = tree_sum<kStridedThreads / kWarp>(warps[turn]);
      turn ^= 1;
    }
    RowScale<Sum> const scale = row_scale(sum, static_cast<Sum>(args.columns));
#pragma unroll 4
    for (std::int64_t j = lane; j < args.columns; j += args.lanes) {
      out[j * args.column_out] = Numeric<T>::narrow(quotient(Numeric<T>::widen(in[j * args.column_in]), scale));
    }
  }
}

}  // namespace l1norm
