// Where a head lies, and the softmax of one row of scores, forward and backward.
#pragma once

#include <limits>

#include "fused_products.h"

namespace attnscope::fused {
namespace {

inline std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// Which rows of the projection, and which of its columns, belong to one head of one item.
struct Place {
  std::int64_t row;
  std::int64_t column;
};

inline Place place_of(const Layout& in, std::int64_t head) {
  return {head / in.num_heads * in.seq_len, head % in.num_heads * in.head_dim};
}

template <class X>
const X* at(const void* base, std::int64_t offset) {
  return static_cast<const X*>(base) + offset;
}

// One row of products q k, `valid` of them to be used: exp(scale * product - row_max) in place, zero up to `filled`, a
// multiple of the width; row_max and row_sum move on. Returns what earlier sums are to be multiplied by. The scale is
// applied where it costs no rounding of its own.
template <class V>
typename V::Scalar soften(
    typename V::Scalar* s, std::int64_t valid, std::int64_t filled, typename V::Scalar scale,
    typename V::Scalar& row_max, typename V::Scalar& row_sum) {
  using T = typename V::Scalar;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = valid; j < filled; ++j) {
    s[j] = lowest;
  }
  V largest = V::load(s);
  for (std::int64_t j = V::width; j < filled; j += V::width) {
    largest = max(largest, V::load(s + j));
  }
  const T found = largest.largest() * scale;
  const T now = row_max > found ? row_max : found;
  const V times = V::all(scale);
  const V shift = V::all(-now);
  V sum = V::all(T(0));
  for (std::int64_t j = 0; j < filled; j += V::width) {
    const V p = exp(fma(V::load(s + j), times, shift));
    p.store(s + j);
    sum = sum + p;
  }
  const T factor = row_max == now || row_sum == T(0) ? T(1) : static_cast<T>(std::exp(row_max - now));
  for (std::int64_t j = valid; j < filled; ++j) {
    s[j] = T(0);  // also where the maximum is infinite
  }
  row_sum = row_sum * factor + sum.sum();
  row_max = now;
  return factor;
}

// Products s = q k become weights p = exp(scale * s - row_max) / row_sum, zero from `valid` on. Returns their share of Σ_j p ∘ dp.
template <class V>
typename V::Scalar soften_again(
    typename V::Scalar* s, typename V::Scalar* dp, std::int64_t valid, std::int64_t filled,
    typename V::Scalar scale, typename V::Scalar row_max, typename V::Scalar row_sum) {
  using T = typename V::Scalar;
  for (std::int64_t j = valid; j < filled; ++j) {
    s[j] = -std::numeric_limits<T>::infinity();
    dp[j] = T(0);
  }
  const V times = V::all(scale);
  const V shift = V::all(-row_max);
  const V total = V::all(row_sum);
  V sum = V::all(T(0));
  for (std::int64_t j = 0; j < filled; j += V::width) {
    const V p = exp(fma(V::load(s + j), times, shift)) / total;
    p.store(s + j);
    sum = fma(p, V::load(dp + j), sum);
  }
  return sum.sum();
}

// dp becomes ds = p ∘ (dp - delta).
template <class V>
void subtract_delta(
    const typename V::Scalar* p, typename V::Scalar* dp, std::int64_t filled, typename V::Scalar delta) {
  const V less = V::all(delta);
  for (std::int64_t j = 0; j < filled; j += V::width) {
    (V::load(p + j) * (V::load(dp + j) - less)).store(dp + j);
  }
}

}  // namespace
}  // namespace attnscope::fused
