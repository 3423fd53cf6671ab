// Short rows: a group of lanes (1 to 32, a power of two) holds a row in registers. One read, one write, no shared
// memory, no barrier.
//
// Every lane loads up to kEach vectors before it needs the first one. Rows of one warp lie behind each other, so a warp
// reads one stretch of memory where the tensor is contiguous. The choice sees to it that a group has a lane for every
// edge element.
#pragma once

#include "rows.cuh"

namespace l1norm {

constexpr int kGroupThreads = 256;  // at most: fewer spread few rows over more SMs

template <int kDims> struct GroupArgs {
  Rows<kDims> rows;
  int lanes_log2;
};

// Blocks an SM that the registers must leave room for: the fewer vectors a lane holds, the more lanes must keep memory
// busy. Doubles need twice the registers for their scale, and 16-bit values more to be unpacked in.
template <typename T, int kEach>
constexpr int kGroupBlocks = kEach == 1   ? (sizeof(T) == 8 ? 5 : 6)
                             : kEach == 2 ? (sizeof(T) == 4 ? 6 : 4)
                             : kEach == 4 ? 4
                                          : (sizeof(T) == 2 ? 2 : 3);

template <typename T, int kEach, int kDims, Keep kRead>
__global__ void __launch_bounds__(kGroupThreads, (kGroupBlocks<T, kEach>)) group_rows(GroupArgs<kDims> const args) {
  using Sum = SumOf<T>;
  let_next_begin();
  int const lanes = 1 << args.lanes_log2;
  int const lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  std::int64_t const row = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) >> args.lanes_log2;
  bool const live = row < args.rows.count;  // lanes beyond the last row still take part in the shuffles
  RowView<T> const at = view<T>(args.rows, live ? row : 0);
  int const vectors = live ? static_cast<int>(at.part.vectors) : 0;
  bool const has_edge = live && lane < at.edges();
  std::int64_t const column = at.edge(lane, args.rows.columns);
  bool const whole = at.same_phase();
  auto const has = [&](int k) { return lane + k * lanes < vectors; };
  T const* const from = at.in_vector(lane);
  T* const to = at.out_vector(lane);
  int const step = lanes * kPerVector<T>;

  wait_for_previous();
  Sum edge = 0;
  if (has_edge) edge = Numeric<T>::widen(at.in[column]);
  uint4 held[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) held[k] = load16_if<kRead>(has(k), from + k * step);

  Sum part[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) part[k] = abs_sum<T>(held[k]);
  Sum const total = group_sum(tree_sum<kEach>(part) + magnitude(edge), lanes);
  RowScale<Sum> const scale = row_scale(total, static_cast<Sum>(args.rows.columns));

  if (__builtin_expect(whole, 1)) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) store16_if(has(k), to + k * step, quotient16<T>(held[k], scale));
  } else {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      if (has(k)) store_elements<T>(to + k * step, held[k], scale);
    }
  }
  if (has_edge) at.out[column] = Numeric<T>::narrow(quotient(edge, scale));
}

}  // namespace l1norm
