// What the kernels compute: how values are widened and rounded, what a sum is, and the quotient.
//
// Promise: nothing here touches memory, or another thread. Sums are trees of fixed shape: the same call gives the same
// bits. It is plain C++ but for one instruction that rounds two 16-bit values, so a host compiler takes it, too.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace l1norm {

constexpr int kVectorBytes = 16;  // the widest access of one thread on every architecture we build for

// How a storage type is widened to the type it is summed in, and rounded back. 16-bit types are summed in float.
template <typename T> struct Numeric;

template <> struct Numeric<float> {
  using Sum = float;
  static __device__ float widen(uint4 const& v, int i) { return __uint_as_float((&v.x)[i]); }
  static __device__ float widen(float x) { return x; }
  static __device__ float narrow(float y) { return y; }
  static __device__ uint4 pack(float const* y) {
    return make_uint4(__float_as_uint(y[0]), __float_as_uint(y[1]), __float_as_uint(y[2]), __float_as_uint(y[3]));
  }
};

template <> struct Numeric<double> {
  using Sum = double;
  static __device__ double widen(uint4 const& v, int i) {
    return i == 0 ? __hiloint2double(static_cast<int>(v.y), static_cast<int>(v.x))
                  : __hiloint2double(static_cast<int>(v.w), static_cast<int>(v.z));
  }
  static __device__ double widen(double x) { return x; }
  static __device__ double narrow(double y) { return y; }
  static __device__ uint4 pack(double const* y) {
    return make_uint4(static_cast<unsigned>(__double2loint(y[0])), static_cast<unsigned>(__double2hiint(y[0])),
                      static_cast<unsigned>(__double2loint(y[1])), static_cast<unsigned>(__double2hiint(y[1])));
  }
};

// Two 16-bit values share a word, the lower element in the lower half.
template <typename T> struct Numeric16 {
  static __device__ unsigned half_word(uint4 const& v, int i) { return ((&v.x)[i / 2] >> (16 * (i % 2))) & 0xffffu; }
  // `word(lower, upper)` rounds two and puts them into a word, which is one instruction.
  template <typename Word> static __device__ uint4 pack(float const* y, Word word) {
    return make_uint4(word(y[0], y[1]), word(y[2], y[3]), word(y[4], y[5]), word(y[6], y[7]));
  }
};

template <> struct Numeric<__half> : Numeric16<__half> {
  using Sum = float;
  static __device__ float widen(__half x) { return __half2float(x); }
  static __device__ float widen(uint4 const& v, int i) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(half_word(v, i))));
  }
  static __device__ __half narrow(float y) { return __float2half_rn(y); }
  static __device__ uint4 pack(float const* y) {
    return Numeric16::pack(y, [](float lower, float upper) {
      unsigned word;
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
      return word;
    });
  }
};

template <> struct Numeric<__nv_bfloat16> : Numeric16<__nv_bfloat16> {
  using Sum = float;
  static __device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __device__ float widen(uint4 const& v, int i) { return __uint_as_float(half_word(v, i) << 16); }
  static __device__ __nv_bfloat16 narrow(float y) { return __float2bfloat16_rn(y); }
  static __device__ uint4 pack(float const* y) {
    return Numeric16::pack(y, [](float lower, float upper) {
      unsigned word;
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
      return word;
    });
  }
};

template <typename T> using SumOf = typename Numeric<T>::Sum;
template <typename T> constexpr int kPerVector = kVectorBytes / static_cast<int>(sizeof(T));

// a / b for a, b >= 0, by the short division where both fit it: the long one takes ten times as many instructions.
__device__ inline std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<unsigned>(a) / static_cast<unsigned>(b);
  return a / b;
}

// ---- sums -----------------------------------------------------------------------------------------------------------

__device__ inline float magnitude(float x) {
  return fabsf(x);
}
__device__ inline double magnitude(double x) {
  return fabs(x);
}

// The sum of kCount values, a power of two, as a tree over halves.
template <int kCount, typename Sum> __device__ inline Sum tree_sum(Sum const* part) {
  if constexpr (kCount == 1) {
    return part[0];
  } else {
    return tree_sum<kCount / 2>(part) + tree_sum<kCount / 2>(part + kCount / 2);
  }
}

// The sum of values that are looked up, by fours: of so many one by one, each would be rounded too often for the grade.
template <typename Sum, typename LookUp> __device__ inline Sum sum_by_fours(int count, LookUp const& value) {
  Sum sum = 0;
  Sum four = 0;
  for (int i = 0; i < count; ++i) {
    four += value(i);
    if (i % 4 == 3) {
      sum += four;
      four = 0;
    }
  }
  return sum + four;
}

// Sum of magnitudes of one vector.
template <typename T> __device__ inline SumOf<T> abs_sum(uint4 const& v) {
  SumOf<T> part[kPerVector<T>];
#pragma unroll
  for (int i = 0; i < kPerVector<T>; ++i) part[i] = magnitude(Numeric<T>::widen(v, i));
  return tree_sum<kPerVector<T>>(part);
}

// ---- the quotient ---------------------------------------------------------------------------------------------------

// y = (x * pre) * factor for a whole row, where pre * factor = n / sum.
//
// factor alone would leave the normal numbers for rows whose sum is very small or very large, and then be inf or
// imprecise where the quotient is ordinary. `pre` is a power of two that brings the sum back: multiplying by it is
// exact below kSmall, and above kLarge it loses only elements whose quotient is far below the smallest subnormal. So
// there is one rounding per element beside that of the factor, no division per element, and no second path. A row of
// zeros gives factor = inf and 0 * inf = NaN; a sum of inf gives zeros, and inf * 0 = NaN; NaN stays NaN: what x / mean
// gives.
template <typename Sum> struct RowScale {
  Sum pre;
  Sum factor;
};

template <typename Sum> struct ScaleLimits;
// With n <= 2^40: between the limits factor lies in [2^-100, 2^104]; below, sum * pre in [2^-85, 1) and factor in [1,
// 2^125]; above, sum * pre in (2^68, 2^96].
template <> struct ScaleLimits<float> {
  static constexpr float kSmall = 0x1p-64f, kRaise = 0x1p64f, kLarge = 0x1p100f, kLower = 0x1p-32f;
};
// Likewise within the exponents of double: factor stays in [2^-900, 2^602].
template <> struct ScaleLimits<double> {
  static constexpr double kSmall = 0x1p-512, kRaise = 0x1p512, kLarge = 0x1p900, kLower = 0x1p-200;
};

template <typename Sum> __device__ inline RowScale<Sum> row_scale(Sum sum, Sum columns) {
  using Limit = ScaleLimits<Sum>;
  Sum pre = 1;
  if (sum < Limit::kSmall) pre = Limit::kRaise;
  if (sum > Limit::kLarge) pre = Limit::kLower;
  return {pre, columns / (sum * pre)};
}

template <typename Sum> __device__ inline Sum quotient(Sum x, RowScale<Sum> scale) {
  return x * scale.pre * scale.factor;
}

template <typename T> __device__ inline uint4 quotient16(uint4 const& v, RowScale<SumOf<T>> scale) {
  SumOf<T> y[kPerVector<T>];
#pragma unroll
  for (int i = 0; i < kPerVector<T>; ++i) y[i] = quotient(Numeric<T>::widen(v, i), scale);
  return Numeric<T>::pack(y);
}

}  // namespace l1norm
