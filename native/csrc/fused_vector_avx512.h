// Vectors of 512 bits. Include under the compiler's switch for AVX-512 F.
#pragma once

#include <immintrin.h>

#include "fused_vector_avx2.h"

namespace attnscope::fused {
namespace {

struct Float512 {
  using Scalar = float;
  using Short = Float256;  // for what would leave more than half of the lanes empty
  static constexpr std::int64_t width = 16;
  static constexpr int rows = 8;
  __m512 v;

  static ATTNSCOPE_INLINE __mmask16 first(std::int64_t count) {
    return static_cast<__mmask16>((1 << count) - 1);
  }
  static ATTNSCOPE_INLINE Float512 all(float value) { return {_mm512_set1_ps(value)}; }
  static ATTNSCOPE_INLINE Float512 load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static ATTNSCOPE_INLINE Float512 load_first(const float* from, std::int64_t count) {
    return {_mm512_maskz_loadu_ps(first(count), from)};
  }
  static ATTNSCOPE_INLINE Float512 load(const BFloat16* from) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  static ATTNSCOPE_INLINE Float512 load(const Half* from) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
  }
  template <class Narrow>
  static ATTNSCOPE_INLINE Float512 load_first(const Narrow* from, std::int64_t count) {
    Narrow padded[16] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      padded[i] = from[i];
    }
    return load(padded);
  }
  ATTNSCOPE_INLINE void store(float* to) const { _mm512_storeu_ps(to, v); }
  ATTNSCOPE_INLINE void store_first(float* to, std::int64_t count) const {
    _mm512_mask_storeu_ps(to, first(count), v);
  }
  ATTNSCOPE_INLINE void store(BFloat16* to) const {  // as narrow_bfloat16
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
    const __m512i result = _mm512_mask_or_epi32(
        rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(result));
  }
  ATTNSCOPE_INLINE void store(Half* to) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  ATTNSCOPE_INLINE void store_first(BFloat16* to, std::int64_t count) const {
    BFloat16 lane[16];
    store(lane);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = lane[i];
    }
  }
  ATTNSCOPE_INLINE void store_first(Half* to, std::int64_t count) const {
    Half lane[16];
    store(lane);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = lane[i];
    }
  }
  friend ATTNSCOPE_INLINE Float512 operator+(Float512 a, Float512 b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Float512 operator-(Float512 a, Float512 b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Float512 operator*(Float512 a, Float512 b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Float512 operator/(Float512 a, Float512 b) { return {_mm512_div_ps(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Float512 fma(Float512 a, Float512 b, Float512 c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }
  friend ATTNSCOPE_INLINE Float512 max(Float512 a, Float512 b) { return {_mm512_max_ps(a.v, b.v)}; }
  ATTNSCOPE_INLINE Float512 first_or(std::int64_t count, Float512 other) const {
    return {_mm512_mask_blend_ps(first(count < 0 ? 0 : count > width ? width : count), other.v, v)};
  }
  ATTNSCOPE_INLINE float sum() const { return _mm512_reduce_add_ps(v); }
  // The sums of four vectors, next to each other.
  static ATTNSCOPE_INLINE void store_sums(const Float512* four, const float* bias, float* to) {
    __m256 half[4];
    for (int i = 0; i < 4; ++i) {
      half[i] = _mm256_add_ps(_mm512_castps512_ps256(four[i].v), _mm512_extractf32x8_ps(four[i].v, 1));
    }
    const __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(half[0], half[1]), _mm256_hadd_ps(half[2], half[3]));
    const __m128 total = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
    _mm_storeu_ps(to, bias != nullptr ? _mm_add_ps(total, _mm_loadu_ps(bias)) : total);
  }
  static constexpr bool transposes = true;
  // 16 x 16: pairs of numbers, then fours, then the quarters of the registers change places.
  static ATTNSCOPE_INLINE void transpose(
      const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
    __m512 a[16];
    __m512 b[16];
    for (int i = 0; i < 16; i += 2) {
      const __m512 r0 = _mm512_loadu_ps(from + i * from_stride);
      const __m512 r1 = _mm512_loadu_ps(from + (i + 1) * from_stride);
      a[i] = _mm512_unpacklo_ps(r0, r1);
      a[i + 1] = _mm512_unpackhi_ps(r0, r1);
    }
    for (int i = 0; i < 16; i += 4) {
      for (int j = 0; j < 2; ++j) {
        const __m512d upper = _mm512_castps_pd(a[i + j]);
        const __m512d lower = _mm512_castps_pd(a[i + j + 2]);
        b[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(upper, lower));
        b[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(upper, lower));
      }
    }
    for (int c = 0; c < 4; ++c) {
      const __m512 even_upper = _mm512_shuffle_f32x4(b[c], b[4 + c], 0x88);
      const __m512 odd_upper = _mm512_shuffle_f32x4(b[c], b[4 + c], 0xdd);
      const __m512 even_lower = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0x88);
      const __m512 odd_lower = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0xdd);
      _mm512_storeu_ps(to + c * to_stride, _mm512_shuffle_f32x4(even_upper, even_lower, 0x88));
      _mm512_storeu_ps(to + (4 + c) * to_stride, _mm512_shuffle_f32x4(odd_upper, odd_lower, 0x88));
      _mm512_storeu_ps(to + (8 + c) * to_stride, _mm512_shuffle_f32x4(even_upper, even_lower, 0xdd));
      _mm512_storeu_ps(to + (12 + c) * to_stride, _mm512_shuffle_f32x4(odd_upper, odd_lower, 0xdd));
    }
  }
  ATTNSCOPE_INLINE float largest() const { return _mm512_reduce_max_ps(v); }
  friend ATTNSCOPE_INLINE Float512 exp(Float512 x) {
    // Below -104 the result is zero. The second operand is the one returned for a NaN, which so passes through.
    const Float512 bounded{_mm512_max_ps(_mm512_set1_ps(-104.0F), x.v)};
    const Float512 n{_mm512_roundscale_ps(
        _mm512_mul_ps(bounded.v, _mm512_set1_ps(ExpConstants<float>::log2e)),
        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
    return {_mm512_scalef_ps(exp_of_rest(bounded, n).v, n.v)};
  }
};

struct Double512 {
  using Scalar = double;
  static constexpr std::int64_t width = 8;
  static constexpr int rows = 8;
  __m512d v;

  static ATTNSCOPE_INLINE __mmask8 first(std::int64_t count) {
    return static_cast<__mmask8>((1 << count) - 1);
  }
  static ATTNSCOPE_INLINE Double512 all(double value) { return {_mm512_set1_pd(value)}; }
  static ATTNSCOPE_INLINE Double512 load(const double* from) { return {_mm512_loadu_pd(from)}; }
  static ATTNSCOPE_INLINE Double512 load_first(const double* from, std::int64_t count) {
    return {_mm512_maskz_loadu_pd(first(count), from)};
  }
  ATTNSCOPE_INLINE void store(double* to) const { _mm512_storeu_pd(to, v); }
  ATTNSCOPE_INLINE void store_first(double* to, std::int64_t count) const {
    _mm512_mask_storeu_pd(to, first(count), v);
  }
  friend ATTNSCOPE_INLINE Double512 operator+(Double512 a, Double512 b) { return {_mm512_add_pd(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Double512 operator-(Double512 a, Double512 b) { return {_mm512_sub_pd(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Double512 operator*(Double512 a, Double512 b) { return {_mm512_mul_pd(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Double512 operator/(Double512 a, Double512 b) { return {_mm512_div_pd(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Double512 fma(Double512 a, Double512 b, Double512 c) {
    return {_mm512_fmadd_pd(a.v, b.v, c.v)};
  }
  friend ATTNSCOPE_INLINE Double512 max(Double512 a, Double512 b) { return {_mm512_max_pd(a.v, b.v)}; }
  ATTNSCOPE_INLINE Double512 first_or(std::int64_t count, Double512 other) const {
    return {_mm512_mask_blend_pd(first(count < 0 ? 0 : count > width ? width : count), other.v, v)};
  }
  ATTNSCOPE_INLINE double sum() const { return _mm512_reduce_add_pd(v); }
  static ATTNSCOPE_INLINE void store_sums(const Double512* four, const double* bias, double* to) {
    for (int i = 0; i < 4; ++i) {
      to[i] = four[i].sum() + (bias != nullptr ? bias[i] : 0);
    }
  }
  static constexpr bool transposes = false;
  ATTNSCOPE_INLINE double largest() const { return _mm512_reduce_max_pd(v); }
  friend ATTNSCOPE_INLINE Double512 exp(Double512 x) {
    const Double512 bounded{_mm512_max_pd(_mm512_set1_pd(-746.0), x.v)};
    const Double512 n{_mm512_roundscale_pd(
        _mm512_mul_pd(bounded.v, _mm512_set1_pd(ExpConstants<double>::log2e)),
        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
    return {_mm512_scalef_pd(exp_of_rest(bounded, n).v, n.v)};
  }
};

}  // namespace
}  // namespace attnscope::fused
