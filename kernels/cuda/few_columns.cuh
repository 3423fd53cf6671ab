// Few columns, a stride apart: a thread has a unit of neighbouring rows to itself, and all their elements in registers.
// Threads lie along the rows, so a warp reads neighbouring elements. Nobody waits for anybody.
#pragma once

#include "geometry.h"
#include "rows.cuh"
#include "unit.cuh"

namespace l1norm {

constexpr int kFewDims = kFewOuter + 1;
template <bool kVector, int kMost> constexpr int kFewThreads = few_threads(kVector, kMost);

struct FewArgs {
  void const* in;
  void* out;
  std::int64_t units;
  std::int64_t column_in;
  std::int64_t column_out;
  int columns;
  OuterDims<kFewDims> outer;  // of units: neighbouring ones differ in the last dimension
};

// A thread has room for `kMost` columns.
template <typename T, bool kVector, int kMost, Keep kRead>
__global__ void __launch_bounds__((kFewThreads<kVector, kMost>)) few_columns(FewArgs const args) {
  using Sum = SumOf<T>;
  using U = Unit<T, kVector>;
  constexpr int kRows = U::kRows;
  constexpr int kAtOnce = 4;  // columns between two looks whether there are more
  let_next_begin();
  std::int64_t const unit = blockIdx.x * std::int64_t{kFewThreads<kVector, kMost>} + static_cast<int>(threadIdx.x);
  if (unit >= args.units) return;
  Offsets const at = offsets(args.outer, unit);
  T const* from = static_cast<T const*>(args.in) + at.in;
  T* to = static_cast<T*>(args.out) + at.out;

  wait_for_previous();
  typename U::Type held[kMost];
#pragma unroll
  for (int k = 0; k < kMost; k += kAtOnce) {
    if (k >= args.columns) break;
#pragma unroll
    for (int i = k; i < k + kAtOnce; ++i) {
      if (i < args.columns) held[i] = U::template load<kRead>(from);
      from += args.column_in;
    }
  }
  // Many columns by fours, these by sixteens: one by one, 128 of them would round more often than the grade allows.
  constexpr bool kOneByOne = kMost <= 16;
  Sum sum[kRows] = {};
  Sum sixteen[kRows] = {};
#pragma unroll
  for (int k = 0; k < kMost; k += kAtOnce) {
    if (k >= args.columns) break;
    Sum four[kRows] = {};
#pragma unroll
    for (int i = k; i < k + kAtOnce; ++i) {
      if (i >= args.columns) break;
#pragma unroll
      for (int r = 0; r < kRows; ++r) (kOneByOne ? sum : four)[r] += magnitude(U::widen(held[i], r));
    }
    if constexpr (!kOneByOne) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        sixteen[r] += four[r];
        if ((k + kAtOnce) % 16 == 0) {
          sum[r] += sixteen[r];
          sixteen[r] = 0;
        }
      }
    }
  }
  if constexpr (!kOneByOne) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] += sixteen[r];
  }
  RowScale<Sum> scale[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) scale[r] = row_scale(sum[r], static_cast<Sum>(args.columns));
#pragma unroll
  for (int k = 0; k < kMost; k += kAtOnce) {
    if (k >= args.columns) break;
#pragma unroll
    for (int i = k; i < k + kAtOnce; ++i) {
      if (i >= args.columns) break;
      Sum y[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) y[r] = quotient(U::widen(held[i], r), scale[r]);
      U::store(to, y);
      to += args.column_out;
    }
  }
}

}  // namespace l1norm
