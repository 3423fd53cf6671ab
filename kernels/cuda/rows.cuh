// A row in memory, cut where 16-byte accesses can go: elements before the first aligned address, whole vectors,
// elements after.
//
// Promise: the three parts cover the row once, and no vector reaches outside of it. The few elements at the two ends
// (`edges`) are read one by one, each by a thread of its own, so a row that starts anywhere costs two short accesses
// more than an aligned one.
#pragma once

#include "layout.h"
#include "primitives.cuh"

namespace l1norm {

// What kernels over rows with neighbouring columns are told of the tensor.
template <int kDims> struct Rows {
  void const* in;
  void* out;
  std::int64_t count;
  std::int64_t columns;
  OuterDims<kDims> outer;
};

struct Offsets {
  std::int64_t in;
  std::int64_t out;
};

// Element offsets of row number `row`.
template <int kDims> __device__ inline Offsets offsets(OuterDims<kDims> const& outer, std::int64_t row) {
  if (kDims == 1 || outer.dims <= 1) return {row * outer.in[0], row * outer.out[0]};
  Offsets to{0, 0};
  for (int d = outer.dims - 1; d > 0; --d) {
    std::int64_t const rest = divide(row, outer.size[d]);
    std::int64_t const at = row - rest * outer.size[d];
    to.in += at * outer.in[d];
    to.out += at * outer.out[d];
    row = rest;
  }
  to.in += row * outer.in[0];
  to.out += row * outer.out[0];
  return to;
}

// `count` elements from `address` on, cut at 16-byte addresses.
struct Cut {
  int head;              // elements before the first vector
  int tail;              // elements after the last one
  std::int64_t vectors;  // whole vectors between
};

template <typename T> __device__ inline Cut cut(T const* address, std::int64_t count) {
  constexpr int kPer = kPerVector<T>;
  int const phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(address) / sizeof(T)) & (kPer - 1);
  Cut to;
  to.head = (kPer - phase) & (kPer - 1);
  if (to.head > count) to.head = static_cast<int>(count);
  to.vectors = (count - to.head) / kPer;
  to.tail = static_cast<int>(count - to.head - to.vectors * kPer);
  return to;
}

template <typename T> struct RowView {
  T const* in;
  T* out;
  Cut part;

  __device__ int edges() const { return part.head + part.tail; }
  // The column of edge number `i`: the head's elements, then the tail's.
  __device__ std::int64_t edge(int i, std::int64_t columns) const {
    return i < part.head ? i : columns - part.tail + (i - part.head);
  }
  __device__ T const* in_vector(std::int64_t v) const { return in + part.head + v * kPerVector<T>; }
  __device__ T* out_vector(std::int64_t v) const { return out + part.head + v * kPerVector<T>; }
  // May vectors of the input be stored as vectors of the output?
  __device__ bool same_phase() const {
    return ((reinterpret_cast<std::uintptr_t>(in) ^ reinterpret_cast<std::uintptr_t>(out)) & (kVectorBytes - 1)) == 0;
  }
};

template <typename T, int kDims> __device__ inline RowView<T> view(Rows<kDims> const& rows, std::int64_t row) {
  Offsets const at = offsets(rows.outer, row);
  RowView<T> to;
  to.in = static_cast<T const*>(rows.in) + at.in;
  to.out = static_cast<T*>(rows.out) + at.out;
  to.part = cut(to.in, rows.columns);
  return to;
}

// Store the quotients of one input vector as single elements: for rows whose output has another phase.
template <typename T> __device__ inline void store_elements(T* to, uint4 const& v, RowScale<SumOf<T>> scale) {
#pragma unroll
  for (int i = 0; i < kPerVector<T>; ++i) to[i] = Numeric<T>::narrow(quotient(Numeric<T>::widen(v, i), scale));
}

}  // namespace l1norm
