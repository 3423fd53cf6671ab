// What a thread moves at once where neighbours in memory belong to different rows.
#pragma once

#include "primitives.cuh"

namespace l1norm {

// A vector of neighbouring rows' elements, or one element.
template <typename T, bool kVector> struct Unit;

template <typename T> struct Unit<T, true> {
  using Type = uint4;
  static constexpr int kRows = kPerVector<T>;
  static __device__ SumOf<T> widen(uint4 const& unit, int i) { return Numeric<T>::widen(unit, i); }
  template <Keep kRead> static __device__ uint4 load(T const* from) { return load16<kRead>(from); }
  static __device__ uint4 pack(SumOf<T> const* y) { return Numeric<T>::pack(y); }
  static __device__ void store(T* to, SumOf<T> const* y) { store16(to, Numeric<T>::pack(y)); }
  template <Keep kRead> static __device__ void fetch(uint4* to, T const* from) { copy16_async<kRead>(to, from); }
};

template <typename T> struct Unit<T, false> {
  using Type = T;
  static constexpr int kRows = 1;
  static __device__ SumOf<T> widen(T unit, int) { return Numeric<T>::widen(unit); }
  template <Keep> static __device__ T load(T const* from) { return *from; }
  static __device__ T pack(SumOf<T> const* y) { return Numeric<T>::narrow(y[0]); }
  static __device__ void store(T* to, SumOf<T> const* y) { *to = Numeric<T>::narrow(y[0]); }
  template <Keep> static __device__ void fetch(T* to, T const* from) { copy_element_async(to, from); }
};

}  // namespace l1norm
