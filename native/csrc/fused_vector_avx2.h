// Vectors of 256 bits. Include under the compiler's switches for AVX2, FMA and F16C.
#pragma once

#include <immintrin.h>

#include "fused_exp.h"

namespace attnscope::fused {
namespace {

struct Float256 {
  using Scalar = float;
  using Short = Float256;
  static constexpr std::int64_t width = 8;
  static constexpr int rows = 4;
  __m256 v;

  static ATTNSCOPE_INLINE __m256i first(std::int64_t count) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), index);
  }
  static ATTNSCOPE_INLINE Float256 all(float value) { return {_mm256_set1_ps(value)}; }
  static ATTNSCOPE_INLINE Float256 load(const float* from) { return {_mm256_loadu_ps(from)}; }
  static ATTNSCOPE_INLINE Float256 load_first(const float* from, std::int64_t count) {
    return {_mm256_maskload_ps(from, first(count))};
  }
  static ATTNSCOPE_INLINE Float256 load(const BFloat16* from) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
  }
  static ATTNSCOPE_INLINE Float256 load(const Half* from) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
  }
  template <class Narrow>
  static ATTNSCOPE_INLINE Float256 load_first(const Narrow* from, std::int64_t count) {
    Narrow padded[8] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      padded[i] = from[i];
    }
    return load(padded);
  }
  ATTNSCOPE_INLINE void store(float* to) const { _mm256_storeu_ps(to, v); }
  ATTNSCOPE_INLINE void store_first(float* to, std::int64_t count) const {
    _mm256_maskstore_ps(to, first(count), v);
  }
  ATTNSCOPE_INLINE void store(BFloat16* to) const {  // as narrow_bfloat16
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
    const __m256i result = _mm256_blendv_epi8(
        rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1)));
  }
  ATTNSCOPE_INLINE void store(Half* to) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  ATTNSCOPE_INLINE void store_first(BFloat16* to, std::int64_t count) const {
    BFloat16 lane[8];
    store(lane);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = lane[i];
    }
  }
  ATTNSCOPE_INLINE void store_first(Half* to, std::int64_t count) const {
    Half lane[8];
    store(lane);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = lane[i];
    }
  }
  friend ATTNSCOPE_INLINE Float256 operator+(Float256 a, Float256 b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Float256 operator-(Float256 a, Float256 b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Float256 operator*(Float256 a, Float256 b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Float256 operator/(Float256 a, Float256 b) { return {_mm256_div_ps(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Float256 fma(Float256 a, Float256 b, Float256 c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
  }
  friend ATTNSCOPE_INLINE Float256 max(Float256 a, Float256 b) { return {_mm256_max_ps(a.v, b.v)}; }
  ATTNSCOPE_INLINE Float256 first_or(std::int64_t count, Float256 other) const {
    return {_mm256_blendv_ps(other.v, v, _mm256_castsi256_ps(first(count)))};
  }
  // The sums of four vectors, next to each other.
  static ATTNSCOPE_INLINE void store_sums(const Float256* four, const float* bias, float* to) {
    const __m256 sums =
        _mm256_hadd_ps(_mm256_hadd_ps(four[0].v, four[1].v), _mm256_hadd_ps(four[2].v, four[3].v));
    const __m128 total = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
    _mm_storeu_ps(to, bias != nullptr ? _mm_add_ps(total, _mm_loadu_ps(bias)) : total);
  }
  static constexpr bool transposes = true;
  // 8 x 8: pairs of numbers, then fours, then the halves of the registers change places.
  static ATTNSCOPE_INLINE void transpose(
      const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
    __m256 a[8];
    __m256 b[8];
    for (int i = 0; i < 8; i += 2) {
      const __m256 r0 = _mm256_loadu_ps(from + i * from_stride);
      const __m256 r1 = _mm256_loadu_ps(from + (i + 1) * from_stride);
      a[i] = _mm256_unpacklo_ps(r0, r1);
      a[i + 1] = _mm256_unpackhi_ps(r0, r1);
    }
    for (int i = 0; i < 8; i += 4) {
      for (int j = 0; j < 2; ++j) {
        const __m256d upper = _mm256_castps_pd(a[i + j]);
        const __m256d lower = _mm256_castps_pd(a[i + j + 2]);
        b[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(upper, lower));
        b[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(upper, lower));
      }
    }
    for (int c = 0; c < 4; ++c) {
      _mm256_storeu_ps(to + c * to_stride, _mm256_permute2f128_ps(b[c], b[4 + c], 0x20));
      _mm256_storeu_ps(to + (4 + c) * to_stride, _mm256_permute2f128_ps(b[c], b[4 + c], 0x31));
    }
  }
  ATTNSCOPE_INLINE float sum() const {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  ATTNSCOPE_INLINE float largest() const {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  friend ATTNSCOPE_INLINE Float256 exp(Float256 x) {
    const Float256 n{_mm256_round_ps(
        _mm256_mul_ps(x.v, _mm256_set1_ps(ExpConstants<float>::log2e)),
        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
    const __m256 power = _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
    const __m256 result = _mm256_mul_ps(exp_of_rest(x, n).v, power);
    // Below the smallest normal number: zero. A NaN compares false and passes through.
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.v, _mm256_set1_ps(-87.3F), _CMP_LT_OQ), result)};
  }
};

struct Double256 {
  using Scalar = double;
  static constexpr std::int64_t width = 4;
  static constexpr int rows = 4;
  __m256d v;

  static ATTNSCOPE_INLINE __m256i first(std::int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static ATTNSCOPE_INLINE Double256 all(double value) { return {_mm256_set1_pd(value)}; }
  static ATTNSCOPE_INLINE Double256 load(const double* from) { return {_mm256_loadu_pd(from)}; }
  static ATTNSCOPE_INLINE Double256 load_first(const double* from, std::int64_t count) {
    return {_mm256_maskload_pd(from, first(count))};
  }
  ATTNSCOPE_INLINE void store(double* to) const { _mm256_storeu_pd(to, v); }
  ATTNSCOPE_INLINE void store_first(double* to, std::int64_t count) const {
    _mm256_maskstore_pd(to, first(count), v);
  }
  friend ATTNSCOPE_INLINE Double256 operator+(Double256 a, Double256 b) { return {_mm256_add_pd(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Double256 operator-(Double256 a, Double256 b) { return {_mm256_sub_pd(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Double256 operator*(Double256 a, Double256 b) { return {_mm256_mul_pd(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Double256 operator/(Double256 a, Double256 b) { return {_mm256_div_pd(a.v, b.v)}; }
  friend ATTNSCOPE_INLINE Double256 fma(Double256 a, Double256 b, Double256 c) {
    return {_mm256_fmadd_pd(a.v, b.v, c.v)};
  }
  friend ATTNSCOPE_INLINE Double256 max(Double256 a, Double256 b) { return {_mm256_max_pd(a.v, b.v)}; }
  ATTNSCOPE_INLINE Double256 first_or(std::int64_t count, Double256 other) const {
    return {_mm256_blendv_pd(other.v, v, _mm256_castsi256_pd(first(count)))};
  }
  static ATTNSCOPE_INLINE void store_sums(const Double256* four, const double* bias, double* to) {
    for (int i = 0; i < 4; ++i) {
      to[i] = four[i].sum() + (bias != nullptr ? bias[i] : 0);
    }
  }
  static constexpr bool transposes = false;
  ATTNSCOPE_INLINE double sum() const {
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
  ATTNSCOPE_INLINE double largest() const {
    const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
  }
  friend ATTNSCOPE_INLINE Double256 exp(Double256 x) {
    const Double256 n{_mm256_round_pd(
        _mm256_mul_pd(x.v, _mm256_set1_pd(ExpConstants<double>::log2e)),
        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
    const __m256i exponent = _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n.v)), _mm256_set1_epi64x(1023));
    const __m256d power = _mm256_castsi256_pd(_mm256_slli_epi64(exponent, 52));
    const __m256d result = _mm256_mul_pd(exp_of_rest(x, n).v, power);
    return {_mm256_andnot_pd(_mm256_cmp_pd(x.v, _mm256_set1_pd(-708.0), _CMP_LT_OQ), result)};
  }
};

}  // namespace
}  // namespace attnscope::fused
