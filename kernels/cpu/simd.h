// Sixteen fp32 lanes (eight for fp64) as one value, and the way of each storage type into them and back.
//
// Promise: every function gives the same bits whatever instruction set it is compiled for, so that a result does not
// depend on the machine. The vectors are the compiler's own (GCC and Clang); it lowers one to AVX-512, two AVX, four
// NEON registers or to scalars. Intrinsics appear only where the compiler has no expression for the instruction: fp16
// conversion and masked access. "Partial" loads and stores touch exactly the elements asked for: nothing is read or
// written beyond them, and the lanes beyond them are zero.
//
// Includes nothing of torch. KERNELPROOF_PORTABLE turns the intrinsics off (the fall-back is tested that way).
#pragma once

#include <cstdint>
#include <cstring>

#if !defined(KERNELPROOF_PORTABLE)
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define KERNELPROOF_AVX512 1
#include <immintrin.h>
#elif defined(__F16C__)
#define KERNELPROOF_F16C 1
#include <immintrin.h>
#elif defined(__aarch64__)
#define KERNELPROOF_NEON 1
#include <arm_neon.h>
#endif
#endif

#define KERNELPROOF_INLINE inline __attribute__((always_inline))

// Internal linkage: two versions of this source in one process must not share a symbol.
namespace {

using F32 = float __attribute__((vector_size(64)));
using F64 = double __attribute__((vector_size(64)));
using U32 = uint32_t __attribute__((vector_size(64)));
using U64 = uint64_t __attribute__((vector_size(64)));
using U16 = uint16_t __attribute__((vector_size(32)));

// The same at an element's alignment, and allowed to alias the tensor's memory.
using F32Memory = float __attribute__((vector_size(64), aligned(4), may_alias));
using F64Memory = double __attribute__((vector_size(64), aligned(8), may_alias));
using U16Memory = uint16_t __attribute__((vector_size(32), aligned(2), may_alias));

KERNELPROOF_INLINE F32 magnitude(F32 v) { return (F32)((U32)v & 0x7fffffffu); }
KERNELPROOF_INLINE F64 magnitude(F64 v) { return (F64)((U64)v & 0x7fffffffffffffffull); }

// Sum over the lanes of one vector as a tree: lane i with lane i + 8, then + 4, + 2, + 1.
template <class Scalar, int lanes>
KERNELPROOF_INLINE Scalar tree(const Scalar* lane) {
  Scalar level[lanes / 2];
  for (int i = 0; i < lanes / 2; ++i) level[i] = lane[i] + lane[i + lanes / 2];
  if constexpr (lanes == 2) {
    return level[0];
  } else {
    return tree<Scalar, lanes / 2>(level);
  }
}

KERNELPROOF_INLINE float lane_sum(F32 v) {
  float lane[16];
  std::memcpy(lane, &v, sizeof v);
  return tree<float, 16>(lane);
}

KERNELPROOF_INLINE double lane_sum(F64 v) {
  double lane[8];
  std::memcpy(lane, &v, sizeof v);
  return tree<double, 8>(lane);
}

// fp16 <-> fp32, round to nearest even, by integer and fp32 arithmetic (the scheme of the FP16 library by M. Dukhan).
KERNELPROOF_INLINE F32 widen_half_portable(U16 bits) {
  const U32 word = __builtin_convertvector(bits, U32) << 16;
  const U32 sign = word & 0x80000000u;
  const U32 twice = word + word;
  // Normal: shift the exponent into place through one exact multiplication, which also keeps inf and NaN.
  const F32 normal = (F32)((twice >> 4) + (0xe0u << 23)) * 0x1.0p-112f;
  // Subnormal: place the digits under an exponent of 126 and take that half off again.
  const F32 subnormal = (F32)((twice >> 17) | (126u << 23)) - 0.5f;
  const U32 is_subnormal = (U32)(twice < (1u << 27));
  return (F32)(sign | (is_subnormal & (U32)subnormal) | (~is_subnormal & (U32)normal));
}

KERNELPROOF_INLINE U16 narrow_half_portable(F32 value) {
  const U32 word = (U32)value;
  const U32 twice = word + word;
  const U32 exponent = twice & 0xff000000u;
  const U32 low = (U32)(exponent < 0x71000000u);
  const U32 bias = (low & 0x71000000u) | (~low & exponent);
  // The first factor sends what overflows fp16 to inf; the addition then rounds at fp16's last digit.
  const F32 scaled = (magnitude(value) * 0x1.0p+112f) * 0x1.0p-110f;
  const U32 rounded = (U32)((F32)((bias >> 1) + 0x07800000u) + scaled);
  const U32 finite = ((rounded >> 13) & 0x7c00u) + (rounded & 0x0fffu);
  const U32 is_nan = (U32)(twice > 0xff000000u);
  return __builtin_convertvector((word >> 16 & 0x8000u) | (is_nan & 0x7e00u) | (~is_nan & finite), U16);
}

#if defined(KERNELPROOF_AVX512)
KERNELPROOF_INLINE F32 widen_half(U16 bits) { return (F32)_mm512_cvtph_ps((__m256i)bits); }
KERNELPROOF_INLINE U16 narrow_half(F32 v) {
  return (U16)_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif defined(KERNELPROOF_F16C)
KERNELPROOF_INLINE F32 widen_half(U16 bits) {
  __m128i half[2];
  std::memcpy(half, &bits, sizeof bits);
  const __m256 wide[2] = {_mm256_cvtph_ps(half[0]), _mm256_cvtph_ps(half[1])};
  F32 result;
  std::memcpy(&result, wide, sizeof result);
  return result;
}
KERNELPROOF_INLINE U16 narrow_half(F32 v) {
  __m256 wide[2];
  std::memcpy(wide, &v, sizeof v);
  const __m128i half[2] = {_mm256_cvtps_ph(wide[0], _MM_FROUND_TO_NEAREST_INT),
                           _mm256_cvtps_ph(wide[1], _MM_FROUND_TO_NEAREST_INT)};
  U16 result;
  std::memcpy(&result, half, sizeof result);
  return result;
}
#elif defined(KERNELPROOF_NEON)
KERNELPROOF_INLINE F32 widen_half(U16 bits) {
  float16x4_t half[4];
  std::memcpy(half, &bits, sizeof bits);
  float32x4_t wide[4];
  for (int i = 0; i < 4; ++i) wide[i] = vcvt_f32_f16(half[i]);
  F32 result;
  std::memcpy(&result, wide, sizeof result);
  return result;
}
KERNELPROOF_INLINE U16 narrow_half(F32 v) {
  float32x4_t wide[4];
  std::memcpy(wide, &v, sizeof v);
  float16x4_t half[4];
  for (int i = 0; i < 4; ++i) half[i] = vcvt_f16_f32(wide[i]);
  U16 result;
  std::memcpy(&result, half, sizeof result);
  return result;
}
#else
KERNELPROOF_INLINE F32 widen_half(U16 bits) { return widen_half_portable(bits); }
KERNELPROOF_INLINE U16 narrow_half(F32 v) { return narrow_half_portable(v); }
#endif

KERNELPROOF_INLINE F32 widen_bfloat(U16 bits) { return (F32)(__builtin_convertvector(bits, U32) << 16); }

KERNELPROOF_INLINE U16 narrow_bfloat(F32 v) {
  const U32 word = (U32)v;
  const U32 is_nan = (U32)((word & 0x7fffffffu) > 0x7f800000u);
  // Half of the last kept digit, less one, plus that digit: round to nearest, ties to even.
  const U32 rounded = (word + 0x7fffu + (word >> 16 & 1u)) >> 16;
  return __builtin_convertvector((is_nan & 0x7fc0u) | (~is_nan & rounded), U16);
}

// What the algorithm knows of a storage type: its element, the type it adds in, and `width` elements as one vector.
struct Float {
  using Element = float;
  using Scalar = float;
  using Vector = F32;
  static constexpr int width = 16;
  static KERNELPROOF_INLINE F32 load(const float* p) { return *(const F32Memory*)p; }
  static KERNELPROOF_INLINE void store(float* p, F32 v) { *(F32Memory*)p = v; }
#if defined(KERNELPROOF_AVX512)
  static KERNELPROOF_INLINE F32 load_partial(const float* p, int count) {
    return (F32)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), p);
  }
  static KERNELPROOF_INLINE void store_partial(float* p, F32 v, int count) {
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1), (__m512)v);
  }
#endif
};

struct Double {
  using Element = double;
  using Scalar = double;
  using Vector = F64;
  static constexpr int width = 8;
  static KERNELPROOF_INLINE F64 load(const double* p) { return *(const F64Memory*)p; }
  static KERNELPROOF_INLINE void store(double* p, F64 v) { *(F64Memory*)p = v; }
#if defined(KERNELPROOF_AVX512)
  static KERNELPROOF_INLINE F64 load_partial(const double* p, int count) {
    return (F64)_mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1), p);
  }
  static KERNELPROOF_INLINE void store_partial(double* p, F64 v, int count) {
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << count) - 1), (__m512d)v);
  }
#endif
};

template <F32 (*widen)(U16), U16 (*narrow)(F32)>
struct Sixteen {
  using Element = uint16_t;
  using Scalar = float;
  using Vector = F32;
  static constexpr int width = 16;
  static KERNELPROOF_INLINE F32 load(const uint16_t* p) { return widen((U16)*(const U16Memory*)p); }
  static KERNELPROOF_INLINE void store(uint16_t* p, F32 v) { *(U16Memory*)p = narrow(v); }
#if defined(KERNELPROOF_AVX512)
  static KERNELPROOF_INLINE F32 load_partial(const uint16_t* p, int count) {
    return widen((U16)_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), p));
  }
  static KERNELPROOF_INLINE void store_partial(uint16_t* p, F32 v, int count) {
    _mm256_mask_storeu_epi16(p, (__mmask16)((1u << count) - 1), (__m256i)narrow(v));
  }
#endif
};

using Half = Sixteen<widen_half, narrow_half>;
using Bfloat = Sixteen<widen_bfloat, narrow_bfloat>;

// The first `count` elements, 0 <= count <= width; the other lanes are zero.
template <class Type>
KERNELPROOF_INLINE typename Type::Vector load_partial(const typename Type::Element* p, int count) {
#if defined(KERNELPROOF_AVX512)
  return Type::load_partial(p, count);
#else
  typename Type::Element padded[Type::width] = {};
  for (int i = 0; i < count; ++i) padded[i] = p[i];
  return Type::load(padded);
#endif
}

template <class Type>
KERNELPROOF_INLINE void store_partial(typename Type::Element* p, typename Type::Vector v, int count) {
#if defined(KERNELPROOF_AVX512)
  Type::store_partial(p, v, count);
#else
  typename Type::Element padded[Type::width];
  Type::store(padded, v);
  for (int i = 0; i < count; ++i) p[i] = padded[i];
#endif
}

}  // namespace
