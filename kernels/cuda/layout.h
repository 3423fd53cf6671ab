// Where the rows of a tensor lie: the geometry that the choice of kernel and the kernels share.
//
// Promise: plain C++17, no CUDA and no torch header, so that a test can compile it with the host compiler and ask it
// anything. `lay_out` turns sizes and strides of any rank into rows (every dimension but dim 1) and columns (dim 1):
// dimensions of size 1 go, rows that can be walked with one stride are merged, and the order is that of the output's
// memory. No element is skipped or named twice.
#pragma once

#include <cstdint>

namespace l1norm {

constexpr int kMaxOuter = 63;  // dimensions beside dim 1: torch allows 64 in all
constexpr int kFewOuter =
    4;  // what the fast kernels carry; more stays after merging only in tensors sliced in many dimensions

enum class Kind : int { kFloat16 = 0, kBFloat16 = 1, kFloat32 = 2, kFloat64 = 3 };

constexpr int element_bytes(Kind kind) {
  return kind == Kind::kFloat64 ? 8 : kind == Kind::kFloat32 ? 4 : 2;
}

// One call, as the binding sees it. Strides are in elements.
struct Call {
  Kind kind;
  int dims;
  std::int64_t const* sizes;
  std::int64_t const* in_strides;
  std::int64_t const* out_strides;
  void const* in;
  void* out;
};

// The outer dimensions, slowest first in the output's memory; strides in elements.
template <int kDims> struct OuterDims {
  int dims;
  std::int64_t size[kDims];
  std::int64_t in[kDims];
  std::int64_t out[kDims];
};

struct Layout {
  Kind kind;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t column_in;
  std::int64_t column_out;
  OuterDims<kMaxOuter> outer;
  void const* in;
  void* out;
};

inline Layout lay_out(Call const& call) {
  Layout to{};
  to.kind = call.kind;
  to.in = call.in;
  to.out = call.out;
  to.columns = call.sizes[1];
  // A single column has no stride: call it a contiguous row, so that its kernels apply.
  to.column_in = to.columns == 1 ? 1 : call.in_strides[1];
  to.column_out = to.columns == 1 ? 1 : call.out_strides[1];
  to.rows = 1;
  OuterDims<kMaxOuter>& outer = to.outer;
  for (int d = 0; d < call.dims; ++d) {
    if (d == 1) continue;
    to.rows *= call.sizes[d];
    if (call.sizes[d] == 1) continue;
    int at = outer.dims++;
    for (; at > 0 && outer.out[at - 1] < call.out_strides[d]; --at) {  // insertion sort: there are few
      outer.size[at] = outer.size[at - 1];
      outer.in[at] = outer.in[at - 1];
      outer.out[at] = outer.out[at - 1];
    }
    outer.size[at] = call.sizes[d];
    outer.in[at] = call.in_strides[d];
    outer.out[at] = call.out_strides[d];
  }
  int kept = 0;
  for (int d = 1; d < outer.dims; ++d) {
    if (outer.in[kept] == outer.in[d] * outer.size[d] && outer.out[kept] == outer.out[d] * outer.size[d]) {
      outer.size[kept] *= outer.size[d];
    } else {
      outer.size[++kept] = outer.size[d];
    }
    outer.in[kept] = outer.in[d];
    outer.out[kept] = outer.out[d];
  }
  outer.dims = outer.dims > 0 ? kept + 1 : 0;
  return to;
}

template <int kDims> OuterDims<kDims> shortened(OuterDims<kMaxOuter> const& outer) {
  OuterDims<kDims> few{};
  few.dims = outer.dims;
  for (int d = 0; d < outer.dims && d < kDims; ++d) {
    few.size[d] = outer.size[d];
    few.in[d] = outer.in[d];
    few.out[d] = outer.out[d];
  }
  return few;
}

}  // namespace l1norm
