// Short rows behind each other: a block takes a tile of whole rows and pays for its alignment once.
//
// The tile is one stretch of memory, read and written as vectors wherever the rows begin. A vector that reaches into a
// second row is added up in two parts, and groups of lanes add the parts of a row. Then every thread scales the vectors
// it still holds, with the scales of one row or two.
//
// Rows shorter than a vector are added up element by element, from a copy in shared memory.
//
// This kernel is bound by instructions where memory is fast: each step works on vectors, and every division is one of a
// warp full of them.
#pragma once

#include "geometry.h"
#include "rows.cuh"

namespace l1norm {

template <Tiled kRows, Memory kMemory> constexpr TileShape kTileShape = tile_shape(kRows, kMemory);

// Threads of an SM that the registers must leave room for; where two small vectors a thread are all, the compiler finds
// room for 2048 by itself.
template <typename T, Tiled kRows, Memory kMemory>
constexpr int kTileRoom = sizeof(T) < 8 ? (kMemory == Memory::kFast ? 1536 : 0)
                          : kRows == Tiled::kTiny ? 1280
                          : kRows == Tiled::kLong && kMemory == Memory::kFast ? 1152
                                                                              : 1536;

struct TileArgs {
  void const* in;
  void* out;
  std::int64_t count;
  int columns;
  int rows_each;        // rows of a tile
  int lanes_log2;       // lanes that add up one row
  unsigned reciprocal;  // ceil(2^32 / columns): a tile has under 2^14 elements and a row 2^11, so the product is
                        // exact enough
};

// Where a vector lies among rows at least as long: its first `left` elements are of row number `row`, the others of the
// next.
struct InRows {
  int row;
  int left;
};

// Sum of magnitudes of the elements [from, to) of a vector.
template <typename T> __device__ inline SumOf<T> abs_sum_part(uint4 const& v, int from, int to) {
  SumOf<T> part[kPerVector<T>];
#pragma unroll
  for (int i = 0; i < kPerVector<T>; ++i) {
    part[i] = i >= from && i < to ? magnitude(Numeric<T>::widen(v, i)) : SumOf<T>(0);
  }
  return tree_sum<kPerVector<T>>(part);
}

template <typename T, Tiled kRows, Memory kMemory>
__global__ void __launch_bounds__((kTileShape<kRows, kMemory>.threads),
                                  (kTileRoom<T, kRows, kMemory> / kTileShape<kRows, kMemory>.threads))
    tile_rows(TileArgs const args) {
  constexpr bool kTiny = kRows == Tiled::kTiny;
  constexpr int kThreads = kTileShape<kRows, kMemory>.threads;
  constexpr int kEach = kTileShape<kRows, kMemory>.each;
  constexpr int kVectors = kThreads * kEach;
  using Sum = SumOf<T>;
  constexpr int kPer = kPerVector<T>;
  __shared__ uint4 staged[kVectors + 2];  // the head lies before the first whole vector, the tail after the last
  constexpr int kRowsMost = kRows == Tiled::kLong ? kVectors * kVectorBytes / kTileMaxRow
                                                  : kTileScaleBytes / static_cast<int>(sizeof(RowScale<Sum>));
  __shared__ Sum near[kTiny ? 1 : kVectors];  // of each vector, the part in the row that it begins in
  __shared__ Sum far[kTiny ? 1 : kRowsMost];  // of each row, what a vector that begins in the row before has of it
  __shared__ RowScale<Sum> scales[kRowsMost];
  let_next_begin();
  int const thread = static_cast<int>(threadIdx.x);
  int const columns = args.columns;
  std::int64_t const first = static_cast<std::int64_t>(blockIdx.x) * args.rows_each;
  int const rows = static_cast<int>(args.count - first < args.rows_each ? args.count - first : args.rows_each);
  int const count = rows * columns;
  T const* const in = static_cast<T const*>(args.in) + first * columns;
  T* const out = static_cast<T*>(args.out) + first * columns;
  Cut const part = cut(in, count);
  int const vectors = static_cast<int>(part.vectors);
  T* const elements = reinterpret_cast<T*>(staged) + (kPer - part.head);  // element 0 of the tile
  bool const has_edge = thread < part.head + part.tail;
  int const edge = thread < part.head ? thread : count - part.tail + (thread - part.head);
  // May vectors of the input be stored as vectors of the output?
  bool const whole =
      ((reinterpret_cast<std::uintptr_t>(in) ^ reinterpret_cast<std::uintptr_t>(out)) & (kVectorBytes - 1)) == 0;
  auto const row_of = [&](int element) {
    return columns == 1 ? element : static_cast<int>(__umulhi(static_cast<unsigned>(element), args.reciprocal));
  };
  auto const in_rows = [&](int element) {
    int const row = row_of(element);
    return InRows{row, (row + 1) * columns - element};
  };

  wait_for_previous();
  uint4 held[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    int const v = thread + k * kThreads;
    held[k] = load16_if<kKeepRead<kMemory>>(v < vectors, in + part.head + v * kPer);
  }
  if (has_edge) elements[edge] = in[edge];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    int const v = thread + k * kThreads;
    if (v >= vectors) continue;
    if (kTiny || !whole) staged[1 + v] = held[k];
    if constexpr (!kTiny) {
      InRows const at = in_rows(part.head + v * kPer);
      if (at.left >= kPer) {
        near[v] = abs_sum<T>(held[k]);
      } else {
        near[v] = abs_sum_part<T>(held[k], 0, at.left);
        far[at.row + 1] = abs_sum_part<T>(held[k], at.left, kPer);
      }
    }
  }
  __syncthreads();

  int const lanes = 1 << args.lanes_log2;
  int const lane = thread & (lanes - 1);
  // All lanes of a warp go round equally often: the shuffles need them.
  for (int start = 0; start < rows; start += kThreads >> args.lanes_log2) {
    int const row = start + (thread >> args.lanes_log2);
    int const begin = row * columns;
    Sum sum = 0;
    if (row < rows) {
      auto const add = [&](int element) { sum += magnitude(Numeric<T>::widen(elements[element])); };
      if constexpr (kTiny) {
        for (int j = lane; j < columns; j += lanes) add(begin + j);
      } else {
        // The row's vectors: those that begin in it, and the end of one before.
        int const after = begin - part.head + kPer - 1;  // not negative, for the head is shorter than a vector
        int const from = after / kPer;
        int const last = (begin + columns - part.head + kPer - 1) / kPer;
        for (int v = from + lane; v < last && v < vectors; v += lanes) sum += near[v];
        if (lane == 0) {
          if (after % kPer != kPer - 1 && from > 0) sum += far[row];
          if (row == 0) {
#pragma unroll 1
            for (int i = 0; i < part.head; ++i) add(i);
          }
          if (row == rows - 1) {
#pragma unroll 1
            for (int i = count - part.tail; i < count; ++i) add(i);
          }
        }
      }
    }
    sum = group_sum(sum, lanes);
    if (row < rows && lane == 0) scales[row] = row_scale(sum, static_cast<Sum>(columns));
  }
  __syncthreads();

  // The quotients of kPer elements, the first of them number `element` of the tile; `x(i)` gives them.
  auto const scaled = [&](auto const& x, int element) {
    Sum y[kPer];
    if constexpr (kTiny) {
#pragma unroll
      for (int i = 0; i < kPer; ++i) y[i] = quotient(x(i), scales[row_of(element + i)]);
    } else {
      InRows const at = in_rows(element);
      RowScale<Sum> const here = scales[at.row];
      RowScale<Sum> const next = at.left < kPer ? scales[at.row + 1] : here;
#pragma unroll
      for (int i = 0; i < kPer; ++i) y[i] = quotient(x(i), i < at.left ? here : next);
    }
    return Numeric<T>::pack(y);
  };
  auto const store_element = [&](int element) {
    Sum const x = Numeric<T>::widen(elements[element]);
    out[element] = Numeric<T>::narrow(quotient(x, scales[row_of(element)]));
  };
  if (whole) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      int const v = thread + k * kThreads;
      if (v >= vectors) continue;
      int const element = part.head + v * kPer;
      store16(out + element, scaled([&](int i) { return Numeric<T>::widen(held[k], i); }, element));
    }
    if (has_edge) store_element(edge);
    return;
  }
  // The output has another phase: its vectors are gathered from shared memory.
  Cut const to = cut(out, count);
  for (int v = thread; v < static_cast<int>(to.vectors); v += kThreads) {
    int const element = to.head + v * kPer;
    store16(out + element, scaled([&](int i) { return Numeric<T>::widen(elements[element + i]); }, element));
  }
  if (thread < to.head + to.tail) store_element(thread < to.head ? thread : count - to.tail + (thread - to.head));
}

}  // namespace l1norm
