// Short strips of neighbouring rows, behind each other: the columns of a strip make a slab, one stretch of memory, and a
// block takes a tile of whole slabs. No place of memory is asked for twice, however little of it a row has.
//
// A slab's elements go round its rows: row s has the elements s, s + strip, s + 2 * strip, ... Threads lie along the
// tile, which is in shared memory. So many of them that a slab's rows come out even share out a slab; each adds up one
// row's part. Then vectors are scaled element by element, and stored as they were read.
#pragma once

#include "rows.cuh"

namespace l1norm {

constexpr int kSlabThreads = 256;
// Elements that a thread adds up as a tree: of many one by one, each would be rounded too often for the grade.
constexpr int kTogether = 8;

struct SlabArgs {
  void const* in;
  void* out;
  std::int64_t count;         // slabs
  int columns;
  int strip;                  // rows of a slab
  int each;                   // slabs of a tile
  int parts;                  // threads that share a row
  unsigned slab_reciprocal;   // ceil(2^32 / (strip * columns)) and ceil(2^32 / strip): a tile has under 2^15 elements,
  unsigned strip_reciprocal;  // so the products are exact enough
};

template <typename T, Keep kRead>
__global__ void __launch_bounds__(kSlabThreads, 6) slab_rows(SlabArgs const args) {
  using Sum = SumOf<T>;
  constexpr int kPer = kPerVector<T>;
  let_next_begin();
  int const thread = static_cast<int>(threadIdx.x);
  int const strip = args.strip;
  int const slab = strip * args.columns;
  std::int64_t const first = static_cast<std::int64_t>(blockIdx.x) * args.each;
  int const slabs = static_cast<int>(args.count - first < args.each ? args.count - first : args.each);
  int const count = slabs * slab;
  T const* const in = static_cast<T const*>(args.in) + first * slab;
  T* const out = static_cast<T*>(args.out) + first * slab;
  Cut const part = cut(in, count);
  int const vectors = static_cast<int>(part.vectors);
  bool const has_edge = thread < part.head + part.tail;
  int const edge = thread < part.head ? thread : count - part.tail + (thread - part.head);

  // Dynamic shared memory: the tile, with its head before the first whole vector and its tail after the last; the scales;
  // the sums of the parts.
  extern __shared__ uint4 dynamic[];
  T* const elements = reinterpret_cast<T*>(dynamic) + (kPer - part.head);
  int const most = (args.each * slab + kPer - 1) / kPer + 2;
  auto* const scales = reinterpret_cast<RowScale<Sum>*>(dynamic + most);
  auto* const sums = reinterpret_cast<Sum*>(scales + args.each * strip);

  wait_for_previous();
  for (int v = thread; v < vectors; v += kSlabThreads) copy16_async<kRead>(dynamic + 1 + v, in + part.head + v * kPer);
  if (has_edge) elements[edge] = in[edge];
  copies_arrived();
  __syncthreads();

  Sum const columns = static_cast<Sum>(args.columns);
  int const wide = strip * args.parts;  // threads of a slab
  for (int i = thread; i < slabs * wide; i += kSlabThreads) {
    int const number = i / wide;
    T const* const end = elements + (number + 1) * slab;
    T const* at = elements + number * slab + (i - number * wide);
    Sum sum = 0;
    for (T const* const whole = end - (kTogether - 1) * wide; at < whole;) {
      Sum sizes[kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; ++k, at += wide) sizes[k] = magnitude(Numeric<T>::widen(*at));
      sum += tree_sum<kTogether>(sizes);
    }
    Sum rest = 0;
    for (; at < end; at += wide) rest += magnitude(Numeric<T>::widen(*at));
    sum += rest;
    if (args.parts == 1) {
      scales[i] = row_scale(sum, columns);
    } else {
      sums[i] = sum;
    }
  }
  __syncthreads();
  if (args.parts > 1) {
    for (int i = thread; i < slabs * strip; i += kSlabThreads) {
      int const number = i / strip;
      Sum const* const from = sums + number * wide + (i - number * strip);
      Sum const sum = sum_by_fours<Sum>(args.parts, [&](int p) { return from[p * strip]; });
      scales[i] = row_scale(sum, columns);
    }
    __syncthreads();
  }

  // The row, in the tile, of an element.
  struct Place {
    int row;   // of the slab's first element
    int s;     // in the slab
    int left;  // elements of the slab from here on
  };
  auto const place = [&](int element) {
    int const number = static_cast<int>(__umulhi(static_cast<unsigned>(element), args.slab_reciprocal));
    int const within = element - number * slab;
    int const column = static_cast<int>(__umulhi(static_cast<unsigned>(within), args.strip_reciprocal));
    return Place{number * strip, within - column * strip, slab - within};
  };
  for (int v = thread; v < vectors; v += kSlabThreads) {
    int const element = part.head + v * kPer;
    uint4 const held = dynamic[1 + v];
    Place at = place(element);
    Sum y[kPer];
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      y[i] = quotient(Numeric<T>::widen(held, i), scales[at.row + at.s]);
      if (--at.left == 0) {
        at = {at.row + strip, 0, slab};
      } else if (++at.s == strip) {
        at.s = 0;
      }
    }
    store16(out + element, Numeric<T>::pack(y));
  }
  if (has_edge) {
    Place const at = place(edge);
    out[edge] = Numeric<T>::narrow(quotient(Numeric<T>::widen(elements[edge]), scales[at.row + at.s]));
  }
}

}  // namespace l1norm
