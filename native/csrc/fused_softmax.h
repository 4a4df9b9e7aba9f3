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

inline std::int64_t larger(std::int64_t a, std::int64_t b) {
  return a < b ? b : a;
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

// One row of products q k, `valid` of them to be used: exp(scale * (product - row_max)) in place, zero up to `filled`, a
// multiple of the width (NaN where a row is); row_max and row_sum move on. Returns what earlier sums are to be multiplied by. The largest
// product is subtracted before the scale is applied: of two large scaled numbers the difference would be their rounding.
template <class V>
typename V::Scalar soften(
    typename V::Scalar* s, std::int64_t valid, std::int64_t filled, typename V::Scalar scale,
    typename V::Scalar& row_max, typename V::Scalar& row_sum) {
  using T = typename V::Scalar;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  V largest = V::all(lowest);
  std::int64_t j = 0;
  for (; j + V::width <= valid; j += V::width) {
    largest = max(largest, V::load(s + j));
  }
  for (; j < filled; j += V::width) {
    const V masked = V::load(s + j).first_or(valid - j, V::all(lowest));
    masked.store(s + j);
    largest = max(largest, masked);
  }
  const T found = largest.largest();
  const T now = row_max > found ? row_max : found;
  const V times = V::all(scale);
  const V shift = V::all(now == lowest ? T(0) : now);  // -inf so far: no weight yet, and later keys may bring some
  V sum = V::all(T(0));
  for (j = 0; j < filled; j += V::width) {
    const V p = exp((V::load(s + j) - shift) * times);
    p.store(s + j);
    sum = sum + p;
  }
  const T factor = row_max == now || row_sum == T(0) ? T(1) : static_cast<T>(std::exp((row_max - now) * scale));
  row_sum = row_sum * factor + sum.sum();
  row_max = now;
  return factor;
}

// Products s = q k become weights p = exp(scale * (s - row_max)) / row_sum, zero from `valid` on. Returns their share of
// Σ_j p ∘ dp, over the `keys` there are: 0 * dp counts where dp is not finite.
template <class V>
typename V::Scalar soften_again(
    typename V::Scalar* s, typename V::Scalar* dp, std::int64_t valid, std::int64_t keys, std::int64_t filled,
    typename V::Scalar scale, typename V::Scalar row_max, typename V::Scalar row_sum) {
  using T = typename V::Scalar;
  const V times = V::all(scale);
  const V shift = V::all(row_max);
  const V total = V::all(row_sum);
  V sum = V::all(T(0));
  const auto weights = [&](std::int64_t j, const V& products) ATTNSCOPE_INLINE_LAMBDA {
    const V p = exp((products - shift) * times) / total;
    p.store(s + j);
    sum = fma(p, V::load(dp + j), sum);
  };
  std::int64_t j = 0;
  for (; j + V::width <= valid; j += V::width) {
    weights(j, V::load(s + j));
  }
  for (; j < filled; j += V::width) {
    V::load(dp + j).first_or(keys - j, V::all(T(0))).store(dp + j);
    weights(j, V::load(s + j).first_or(valid - j, V::all(-std::numeric_limits<T>::infinity())));
  }
  return sum.sum();
}

// dp becomes ds = p ∘ (dp - delta), zero from `valid` on whatever delta is.
template <class V>
void subtract_delta(
    const typename V::Scalar* p, typename V::Scalar* dp, std::int64_t valid, std::int64_t filled,
    typename V::Scalar delta) {
  using T = typename V::Scalar;
  const V less = V::all(delta);
  std::int64_t j = 0;
  for (; j + V::width <= valid; j += V::width) {
    (V::load(p + j) * (V::load(dp + j) - less)).store(dp + j);
  }
  for (; j < filled; j += V::width) {
    (V::load(p + j) * (V::load(dp + j) - less)).first_or(valid - j, V::all(T(0))).store(dp + j);
  }
}

// Whether every element of rows [count, depth] is finite: 0 * x is zero only then.
template <class V, class X>
bool all_finite(const X* rows, std::int64_t stride, std::int64_t count, std::int64_t depth) {
  using T = typename V::Scalar;
  const V zero = V::all(T(0));
  V sum[4] = {zero, zero, zero, zero};
  for (std::int64_t i = 0; i < count; ++i, rows += stride) {
    std::int64_t p = 0;
    for (; p + 4 * V::width <= depth; p += 4 * V::width) {
      unrolled<4>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
        sum[n] = fma(V::load(rows + p + n * V::width), zero, sum[n]);
      });
    }
    for (; p + V::width <= depth; p += V::width) {
      sum[0] = fma(V::load(rows + p), zero, sum[0]);
    }
    if (p < depth) {
      sum[1] = fma(V::load_first(rows + p, depth - p), zero, sum[1]);
    }
  }
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])).sum() == T(0);
}

// Native multiplies the zero weights of later positions too, which makes a NaN of what is not finite. Only where all is
// finite may a causal pass leave out what it knows to be zero.
template <class V, class X>
bool may_skip(const ForwardArgs& args, std::int64_t head, std::int64_t first) {
  const Layout& in = args.in;
  const Place place = place_of(in, head);
  return in.causal && all_finite<V>(at<X>(in.v, (place.row + first) * in.row_stride + place.column), in.row_stride,
                                    in.seq_len - first, in.head_dim);
}

template <class V, class X>
bool may_skip(const BackwardArgs& args, std::int64_t head) {
  const Layout& in = args.in;
  const Place place = place_of(in, head);
  const std::int64_t base = place.row * in.row_stride + place.column;
  return in.causal && all_finite<V>(at<X>(in.q, base), in.row_stride, in.seq_len, in.head_dim) &&
         all_finite<V>(at<X>(in.k, base), in.row_stride, in.seq_len, in.head_dim) &&
         all_finite<V>(at<X>(in.v, base), in.row_stride, in.seq_len, in.head_dim) &&
         all_finite<V>(at<X>(args.dc, place.row * args.dc_stride + place.column), args.dc_stride, in.seq_len, in.head_dim);
}

}  // namespace
}  // namespace attnscope::fused
