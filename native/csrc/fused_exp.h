// e^x for vectors: x = n ln 2 + r with |r| <= ln 2 / 2, then 2^n times the Taylor series of e^r. Its degree is the first
// whose remainder is well below half a rounding unit: r^8 / 8! = 5e-9 in float32, r^14 / 14! = 4e-18 in float64.
// ln 2 in two parts (Cody and Waite, 1980) keeps r exact: n times the first is, its last bits being zero.
#pragma once

#include "fused_vector_portable.h"

namespace attnscope::fused {
namespace {

template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr float log2e = 1.44269504F;
  static constexpr float ln2_high = 0.693359375F;
  static constexpr float ln2_low = -2.12194440e-4F;
  static constexpr int degree = 7;
};

template <>
struct ExpConstants<double> {
  static constexpr double log2e = 1.4426950408889634;
  static constexpr double ln2_high = 0.693147180369123816490;
  static constexpr double ln2_low = 1.90821492927058770002e-10;
  static constexpr int degree = 13;
};

constexpr double inverse_factorial(int n) {
  double result = 1;
  for (int i = 2; i <= n; ++i) {
    result /= i;
  }
  return result;
}

// The series by Horner's rule, from the highest power down.
template <class V, int Power>
ATTNSCOPE_INLINE V exp_series(const V& r, const V& above) {
  if constexpr (Power < 0) {
    return above;
  } else {
    constexpr auto factor = static_cast<typename V::Scalar>(inverse_factorial(Power));
    return exp_series<V, Power - 1>(r, fma(above, r, V::all(factor)));
  }
}

// e^(x - n ln 2), for n = the nearest integer to x / ln 2.
template <class V>
ATTNSCOPE_INLINE V exp_of_rest(const V& x, const V& n) {
  using C = ExpConstants<typename V::Scalar>;
  const V rest = fma(n, V::all(-C::ln2_low), fma(n, V::all(-C::ln2_high), x));
  constexpr auto highest = static_cast<typename V::Scalar>(inverse_factorial(C::degree));
  return exp_series<V, C::degree - 1>(rest, V::all(highest));
}

}  // namespace
}  // namespace attnscope::fused
