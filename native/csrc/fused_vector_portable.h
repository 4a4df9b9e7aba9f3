// Vectors as short arrays: right on every machine, and simple enough for a compiler to turn into what it has.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "fused_kernels.h"

#if defined(_MSC_VER)
#define ATTNSCOPE_INLINE __forceinline
#define ATTNSCOPE_INLINE_LAMBDA
#else
#define ATTNSCOPE_INLINE inline __attribute__((always_inline))
#define ATTNSCOPE_INLINE_LAMBDA __attribute__((always_inline))
#endif

namespace attnscope::fused {
namespace {

inline float widen(BFloat16 value) {
  const std::uint32_t bits = std::uint32_t{value.bits} << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

inline BFloat16 narrow_bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};  // keep it a NaN
  }
  return {static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};  // to nearest, ties to even
}

// By exact scaling rather than by cases: a float16's exponent and mantissa, moved into a float's, are 2^112 too small.
inline float widen(Half value) {
  const std::uint32_t magnitude = std::uint32_t{value.bits} & 0x7FFF;
  std::uint32_t bits = magnitude << 13;
  float result;
  if (magnitude >= 0x7C00) {  // infinity or NaN
    bits |= 0x7F800000;
    std::memcpy(&result, &bits, sizeof result);
  } else {
    std::memcpy(&result, &bits, sizeof result);
    result *= 5.192296858534828e33F;  // 2^112
  }
  return (value.bits & 0x8000) != 0 ? -result : result;
}

inline Half narrow_half(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7FFFFFFF;
  std::uint32_t result;
  if (bits > 0x7F800000) {
    result = 0x7E00;
  } else if (bits >= 0x477FF000) {  // 65520 and more round to infinity
    result = 0x7C00;
  } else if (bits < 0x38800000) {  // subnormal in float16: adding 0.5 leaves its 10 bits at the end, rounded
    float magnitude;
    std::memcpy(&magnitude, &bits, sizeof magnitude);
    magnitude += 0.5F;
    std::memcpy(&result, &magnitude, sizeof result);
    result -= 0x3F000000;
  } else {
    result = (bits + 0xFFF + ((bits >> 13) & 1) - 0x38000000) >> 13;
  }
  return {static_cast<std::uint16_t>(result | sign)};
}

template <class T, int Width>
struct ArrayVector {
  using Scalar = T;
  static constexpr std::int64_t width = Width;
  static constexpr int rows = 4;  // of a register tile
  T lane[Width];

  template <class F>
  static ATTNSCOPE_INLINE ArrayVector make(F f) {
    ArrayVector result;
    for (int i = 0; i < Width; ++i) {
      result.lane[i] = f(i);
    }
    return result;
  }
  static ATTNSCOPE_INLINE ArrayVector all(T value) {
    return make([&](int) { return value; });
  }
  static ATTNSCOPE_INLINE ArrayVector load(const T* from) {
    return make([&](int i) { return from[i]; });
  }
  static ATTNSCOPE_INLINE ArrayVector load_first(const T* from, std::int64_t count) {
    return make([&](int i) { return i < count ? from[i] : T(0); });
  }
  template <class Narrow>
  static ATTNSCOPE_INLINE ArrayVector load(const Narrow* from) {
    return make([&](int i) { return widen(from[i]); });
  }
  template <class Narrow>
  static ATTNSCOPE_INLINE ArrayVector load_first(const Narrow* from, std::int64_t count) {
    return make([&](int i) { return i < count ? widen(from[i]) : T(0); });
  }
  ATTNSCOPE_INLINE void store(T* to) const { store_first(to, Width); }
  ATTNSCOPE_INLINE void store_first(T* to, std::int64_t count) const {
    for (int i = 0; i < Width && i < count; ++i) {
      to[i] = lane[i];
    }
  }
  ATTNSCOPE_INLINE void store(BFloat16* to) const { store_first(to, Width); }
  ATTNSCOPE_INLINE void store_first(BFloat16* to, std::int64_t count) const {
    for (int i = 0; i < Width && i < count; ++i) {
      to[i] = narrow_bfloat16(static_cast<float>(lane[i]));
    }
  }
  ATTNSCOPE_INLINE void store(Half* to) const { store_first(to, Width); }
  ATTNSCOPE_INLINE void store_first(Half* to, std::int64_t count) const {
    for (int i = 0; i < Width && i < count; ++i) {
      to[i] = narrow_half(static_cast<float>(lane[i]));
    }
  }
  friend ATTNSCOPE_INLINE ArrayVector operator+(const ArrayVector& a, const ArrayVector& b) {
    return make([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  friend ATTNSCOPE_INLINE ArrayVector operator-(const ArrayVector& a, const ArrayVector& b) {
    return make([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  friend ATTNSCOPE_INLINE ArrayVector operator*(const ArrayVector& a, const ArrayVector& b) {
    return make([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  friend ATTNSCOPE_INLINE ArrayVector operator/(const ArrayVector& a, const ArrayVector& b) {
    return make([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  friend ATTNSCOPE_INLINE ArrayVector fma(const ArrayVector& a, const ArrayVector& b, const ArrayVector& c) {
    return make([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
  }
  friend ATTNSCOPE_INLINE ArrayVector max(const ArrayVector& a, const ArrayVector& b) {
    return make([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  // The first `count` lanes, and another's from there on. Here as in `first`, `count` may lie outside of [0, width].
  ATTNSCOPE_INLINE ArrayVector first_or(std::int64_t count, const ArrayVector& other) const {
    return make([&](int i) { return i < count ? lane[i] : other.lane[i]; });
  }
  // The sums of four vectors, next to each other.
  static ATTNSCOPE_INLINE void store_sums(const ArrayVector* four, const T* bias, T* to) {
    for (int i = 0; i < 4; ++i) {
      to[i] = four[i].sum() + (bias != nullptr ? bias[i] : T(0));
    }
  }
  static constexpr bool transposes = false;  // whether there is a function for a square of them
  ATTNSCOPE_INLINE T sum() const {
    T result = lane[0];
    for (int i = 1; i < Width; ++i) {
      result += lane[i];
    }
    return result;
  }
  ATTNSCOPE_INLINE T largest() const {
    T result = lane[0];
    for (int i = 1; i < Width; ++i) {
      result = lane[i] > result ? lane[i] : result;
    }
    return result;
  }
  // e^x for x <= 0, or thereabouts.
  friend ATTNSCOPE_INLINE ArrayVector exp(const ArrayVector& x) {
    return make([&](int i) { return std::exp(x.lane[i]); });
  }
};

}  // namespace
}  // namespace attnscope::fused
