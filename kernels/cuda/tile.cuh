// Tiny rows behind each other: a block takes a tile of whole rows and pays for its alignment once.
//
// The tile is one stretch of memory, read and written as vectors wherever the rows begin. Its elements also go to
// shared memory, where groups of lanes add up the rows; then every thread scales the vectors it still holds, looking up
// the row of each element.
#pragma once

#include "rows.cuh"

namespace l1norm {

constexpr int kTileThreads = 256;
constexpr int kTileEach = 2;  // vectors a thread holds
constexpr int kTileBytes = kTileThreads * kTileEach * kVectorBytes;
constexpr int kTileScaleBytes = 8192;  // room for the scales of a tile's rows: 1024 in float, 512 in double

struct TileArgs {
  void const* in;
  void* out;
  std::int64_t count;
  int columns;
  int rows_each;        // rows of a tile
  int lanes_log2;       // lanes that add up one row
  unsigned reciprocal;  // ceil(2^32 / columns): a tile has under 2^13 elements and a row under 2^9, so the product is
                        // exact enough
};

template <typename T> __global__ void __launch_bounds__(kTileThreads) tile_rows(TileArgs const args) {
  using Sum = SumOf<T>;
  constexpr int kPer = kPerVector<T>;
  __shared__ uint4
      staged[kTileBytes / kVectorBytes + 2];  // the head lies before the first whole vector, the tail after the last
  __shared__ RowScale<Sum> scales[kTileScaleBytes / sizeof(RowScale<Sum>)];
  let_next_begin();
  int const thread = static_cast<int>(threadIdx.x);
  std::int64_t const first = static_cast<std::int64_t>(blockIdx.x) * args.rows_each;
  int const rows = static_cast<int>(args.count - first < args.rows_each ? args.count - first : args.rows_each);
  int const count = rows * args.columns;
  T const* const in = static_cast<T const*>(args.in) + first * args.columns;
  T* const out = static_cast<T*>(args.out) + first * args.columns;
  Cut const part = cut(in, count);
  int const vectors = static_cast<int>(part.vectors);
  T* const elements = reinterpret_cast<T*>(staged) + (kPer - part.head);  // element 0 of the tile
  bool const has_edge = thread < part.head + part.tail;
  int const edge = thread < part.head ? thread : count - part.tail + (thread - part.head);

  wait_for_previous();
  uint4 held[kTileEach];
#pragma unroll
  for (int k = 0; k < kTileEach; ++k) {
    if (thread + k * kTileThreads < vectors) held[k] = load16(in + part.head + (thread + k * kTileThreads) * kPer);
  }
  if (has_edge) elements[edge] = in[edge];
#pragma unroll
  for (int k = 0; k < kTileEach; ++k) {
    if (thread + k * kTileThreads < vectors) staged[1 + thread + k * kTileThreads] = held[k];
  }
  __syncthreads();

  int const lanes = 1 << args.lanes_log2;
  int const lane = thread & (lanes - 1);
  // All lanes of a warp go round equally often: the shuffles need them.
  for (int start = 0; start < rows; start += kTileThreads >> args.lanes_log2) {
    int const row = start + (thread >> args.lanes_log2);
    Sum sum = 0;
    if (row < rows) {
      for (int j = lane; j < args.columns; j += lanes)
        sum += magnitude(Numeric<T>::widen(elements[row * args.columns + j]));
    }
    sum = group_sum(sum, lanes);
    if (row < rows && lane == 0) scales[row] = row_scale(sum, static_cast<Sum>(args.columns));
  }
  __syncthreads();

  auto const row_of = [&](int element) {
    return args.columns == 1 ? element : static_cast<int>(__umulhi(static_cast<unsigned>(element), args.reciprocal));
  };
  auto const scaled = [&](Sum x, int element) { return quotient(x, scales[row_of(element)]); };
  bool const whole =
      ((reinterpret_cast<std::uintptr_t>(in) ^ reinterpret_cast<std::uintptr_t>(out)) & (kVectorBytes - 1)) == 0;
  if (whole) {
#pragma unroll
    for (int k = 0; k < kTileEach; ++k) {
      int const v = thread + k * kTileThreads;
      if (v < vectors) {
        Sum y[kPer];
#pragma unroll
        for (int i = 0; i < kPer; ++i) y[i] = scaled(Numeric<T>::widen(held[k], i), part.head + v * kPer + i);
        store16(out + part.head + v * kPer, Numeric<T>::pack(y));
      }
    }
    if (has_edge) out[edge] = Numeric<T>::narrow(scaled(Numeric<T>::widen(elements[edge]), edge));
    return;
  }
  // The output has another phase: its vectors are gathered from shared memory.
  Cut const to = cut(out, count);
  for (int v = thread; v < static_cast<int>(to.vectors); v += kTileThreads) {
    Sum y[kPer];
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      int const at = to.head + v * kPer + i;
      y[i] = scaled(Numeric<T>::widen(elements[at]), at);
    }
    store16(out + to.head + v * kPer, Numeric<T>::pack(y));
  }
  if (thread < to.head + to.tail) {
    int const at = thread < to.head ? thread : count - to.tail + (thread - to.head);
    out[at] = Numeric<T>::narrow(scaled(Numeric<T>::widen(elements[at]), at));
  }
}

}  // namespace l1norm
