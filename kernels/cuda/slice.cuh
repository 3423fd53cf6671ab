// A row cut into one slice per block, at 128-byte addresses of the input rather than at columns / blocks: that is what
// lets odd rows be split.
//
// Promise: the slices of a team hold every whole vector of the row once; the row's few edge elements belong to
// one block of it.
#pragma once

#include "rows.cuh"

namespace l1norm {

// One block's part of one row. Places are counted from the slice's start, which is a 128-byte line of the input.
template <typename T> struct Slice {
  T const* in;  // place 0, which may lie before the row: places [begin, end) hold vectors of the row
  T* out;
  int begin;  // 0 to 7
  int end;
  RowView<T> row;
};

// The places of a slice that shared memory holds: all of them, or the first `most`.
struct Places {
  int begin;
  int end;

  __device__ bool has(int place) const {
    return static_cast<unsigned>(place - begin) < static_cast<unsigned>(end - begin);
  }
};

template <typename T> __device__ inline Places held_places(Slice<T> const& slice, int most) {
  return {slice.begin, slice.end < most ? slice.end : most};
}

// Start copying these places into shared memory, each thread its own.
template <Keep kRead, typename T>
__device__ inline void fetch(Slice<T> const& slice, Places const& places, uint4* held) {
  for (int i = static_cast<int>(threadIdx.x); i < places.end; i += static_cast<int>(blockDim.x)) {
    if (places.has(i)) copy16_async<kRead>(&held[i], slice.in + i * kPerVector<T>);
  }
}

constexpr int kUnroll = 4;  // places a thread works on at once

// The sum of magnitudes over the places that this thread fetched.
template <typename T> __device__ inline SumOf<T> abs_sum_held(Places const& places, uint4 const* held) {
  int const threads = static_cast<int>(blockDim.x);
  SumOf<T> sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < places.end; i += kUnroll * threads) {
    SumOf<T> part[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k)
      part[k] = places.has(i + k * threads) ? abs_sum<T>(held[i + k * threads]) : SumOf<T>(0);
    sum += tree_sum<kUnroll>(part);
  }
  return sum;
}

// The vectors between a row's first whole vector and the 128-byte line it lies in.
template <typename T> __device__ inline int lead_of(RowView<T> const& row) {
  constexpr int kLineVectors = kLineBytes / kVectorBytes;
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(row.in_vector(0)) / kVectorBytes) & (kLineVectors - 1);
}

// Part number `rank` of row number `row`, in slices of `length` vectors.
template <typename T, int kDims>
__device__ inline Slice<T> slice_of(Rows<kDims> const& rows, std::int64_t row, std::int64_t rank, int length) {
  Slice<T> to;
  to.row = view<T>(rows, row);
  std::int64_t const origin = rank * length - lead_of(to.row);  // the row's vector number at place 0
  to.in = to.row.in_vector(origin);
  to.out = to.row.out_vector(origin);
  to.begin = origin < 0 ? static_cast<int>(-origin) : 0;
  std::int64_t const end = to.row.part.vectors - origin;
  to.end = end > length ? length : end < to.begin ? to.begin : static_cast<int>(end);  // a short row ends before it
  return to;
}

// Store the quotients of the vector at `place`.
template <typename T, Keep kKeep = Keep::kUsual>
__device__ inline void store_vector(Slice<T> const& slice, int place, uint4 const& v, RowScale<SumOf<T>> scale) {
  T* const to = slice.out + place * kPerVector<T>;
  if (slice.row.same_phase()) {
    store16<kKeep>(to, quotient16<T>(v, scale));
  } else {
    store_elements<T>(to, v, scale);
  }
}

// The places of a slice beyond the first `held`, each thread its own, in registers. kThreads: of every block; 0 where
// their number is not fixed, and the whole slice may lie in registers (`held` is 0).
template <typename T, int kCount, int kThreads> struct Kept {
  uint4 vector[kCount];

  static __device__ int place(int k, int held) {
    return held + static_cast<int>(threadIdx.x) + k * (kThreads > 0 ? kThreads : static_cast<int>(blockDim.x));
  }

  static __device__ bool has(Slice<T> const& slice, int place) {
    return kThreads > 0 ? place < slice.end : Places{slice.begin, slice.end}.has(place);
  }

  template <Keep kRead> __device__ void load(Slice<T> const& slice, int held) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      vector[k] = load16_if<kRead>(has(slice, place(k, held)), slice.in + place(k, held) * kPerVector<T>);
    }
  }

  __device__ SumOf<T> sum() const {
    SumOf<T> sum = 0;
#pragma unroll
    for (int k = 0; k < kCount; ++k) sum += abs_sum<T>(vector[k]);
    return sum;
  }

  // kSamePhase: is it known that vectors of the input may be stored as vectors of the output?
  template <bool kSamePhase = false>
  __device__ void store(Slice<T> const& slice, int held, RowScale<SumOf<T>> scale) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      int const at = place(k, held);
      if constexpr (kSamePhase) {
        store16_if(has(slice, at), slice.out + at * kPerVector<T>, quotient16<T>(found_again(vector[k]), scale));
      } else {
        if (has(slice, at)) store_vector<T>(slice, at, vector[k], scale);
      }
    }
  }
};

// The output has another phase than the input: whole vectors of the output are gathered from the slice in shared
// memory.
template <typename T>
__device__ inline void store_gathered(T const* held, T* out, int count, RowScale<SumOf<T>> scale) {
  Cut const to = cut(out, count);
  int const thread = static_cast<int>(threadIdx.x);
  for (int v = thread; v < static_cast<int>(to.vectors); v += static_cast<int>(blockDim.x)) {
    SumOf<T> y[kPerVector<T>];
    T const* const from = held + to.head + v * kPerVector<T>;
#pragma unroll
    for (int i = 0; i < kPerVector<T>; ++i) y[i] = quotient(Numeric<T>::widen(from[i]), scale);
    store16(out + to.head + v * kPerVector<T>, Numeric<T>::pack(y));
  }
  if (thread < to.head + to.tail) {
    int const i = thread < to.head ? thread : count - to.tail + (thread - to.head);
    out[i] = Numeric<T>::narrow(quotient(Numeric<T>::widen(held[i]), scale));
  }
}

}  // namespace l1norm
