// Attention over a handful of positions, where packing would take longer than the work: row by row, each product of a
// query and a key summed across a vector.
#pragma once

#include "fused_softmax.h"

namespace attnscope::fused {
namespace {

constexpr std::int64_t few = 8;
constexpr std::int64_t few_filled = 16;  // rounded up to any width

// Σ_p a[p] b[p]. Both passes form scores by it, so that the backward pass finds the very numbers the forward pass had.
template <class V, class X>
ATTNSCOPE_INLINE typename V::Scalar dot(const X* a, const X* b, std::int64_t depth) {
  V sum = V::all(typename V::Scalar(0));
  std::int64_t p = 0;
  for (; p + V::width <= depth; p += V::width) {
    sum = fma(V::load(a + p), V::load(b + p), sum);
  }
  if (p < depth) {
    sum = fma(V::load_first(a + p, depth - p), V::load_first(b + p, depth - p), sum);
  }
  return sum.sum();
}

// to[p] = Σ_n factors[n * step] rows[n * stride + p] / divisor, for n in [begin, end).
template <class V, class X>
ATTNSCOPE_INLINE void combine(
    const typename V::Scalar* factors, std::int64_t step, const X* rows, std::int64_t stride, std::int64_t begin,
    std::int64_t end, std::int64_t depth, typename V::Scalar divisor, X* to) {
  using T = typename V::Scalar;
  const V by = V::all(divisor);
  for (std::int64_t p = 0; p < depth; p += V::width) {
    const bool whole = p + V::width <= depth;
    V sum = V::all(T(0));
    for (std::int64_t n = begin; n < end; ++n) {
      const X* const row = rows + n * stride + p;
      sum = fma(V::all(factors[n * step]), whole ? V::load(row) : V::load_first(row, depth - p), sum);
    }
    whole ? (sum / by).store(to + p) : (sum / by).store_first(to + p, depth - p);
  }
}

template <class V, class X>
void forward_few(const ForwardArgs& args, std::int64_t head) {
  using T = typename V::Scalar;
  const Layout& in = args.in;
  const std::int64_t depth = in.head_dim;
  const Place place = place_of(in, head);
  const std::int64_t base = place.row * in.row_stride + place.column;
  const std::int64_t embed_dim = in.num_heads * depth;
  const T scale = T(1) / std::sqrt(static_cast<T>(depth));
  const bool skip = may_skip<V, X>(args, head, 0);
  for (std::int64_t i = 0; i < in.seq_len; ++i) {
    const std::int64_t keys = in.causal ? i + 1 : in.seq_len;
    const std::int64_t used = skip ? keys : in.seq_len;
    const X* const q = at<X>(in.q, base + i * in.row_stride);
    T s[few_filled];
    for (std::int64_t j = 0; j < keys; ++j) {
      s[j] = dot<V>(q, at<X>(in.k, base + j * in.row_stride), depth);
    }
    T row_max = -std::numeric_limits<T>::infinity();
    T row_sum = T(0);
    soften<V>(s, keys, rounded_up(used, V::width), scale, row_max, row_sum);
    X* const c = static_cast<X*>(args.c) + (place.row + i) * embed_dim + place.column;
    combine<V>(s, 1, at<X>(in.v, base), in.row_stride, 0, used, depth, row_sum, c);
    if (args.row_max != nullptr) {
      static_cast<T*>(args.row_max)[head * in.seq_len + i] = row_max;
      static_cast<T*>(args.row_sum)[head * in.seq_len + i] = row_sum;
    }
  }
}

template <class V, class X>
void backward_few(const BackwardArgs& args, std::int64_t head) {
  using T = typename V::Scalar;
  const Layout& in = args.in;
  const std::int64_t depth = in.head_dim;
  const Place place = place_of(in, head);
  const std::int64_t base = place.row * in.row_stride + place.column;
  const std::int64_t gradient = place.row * args.grad_stride + place.column;
  const T scale = T(1) / std::sqrt(static_cast<T>(depth));
  const X* const dc = at<X>(args.dc, place.row * args.dc_stride + place.column);
  T p[few * few_filled];
  T ds[few * few_filled];
  const bool skip = may_skip<V, X>(args, head);
  for (std::int64_t i = 0; i < in.seq_len; ++i) {
    const std::int64_t keys = in.causal ? i + 1 : in.seq_len;
    const std::int64_t used = skip ? keys : in.seq_len;
    const std::int64_t filled = rounded_up(used, V::width);
    T* const row = p + i * few_filled;
    T* const row_ds = ds + i * few_filled;
    for (std::int64_t j = 0; j < used; ++j) {
      row[j] = dot<V>(at<X>(in.q, base + i * in.row_stride), at<X>(in.k, base + j * in.row_stride), depth);
      row_ds[j] = dot<V>(dc + i * args.dc_stride, at<X>(in.v, base + j * in.row_stride), depth);
    }
    const T delta = soften_again<V>(row, row_ds, keys, used, filled, scale, at<T>(args.row_max, head * in.seq_len)[i],
                                    at<T>(args.row_sum, head * in.seq_len)[i]);
    subtract_delta<V>(row, row_ds, keys, filled, delta);
    if (args.dq != nullptr) {
      combine<V>(row_ds, 1, at<X>(in.k, base), in.row_stride, 0, used, depth, std::sqrt(static_cast<T>(depth)),
                 static_cast<X*>(args.dq) + gradient + i * args.grad_stride);
    }
  }
  for (std::int64_t j = 0; j < in.seq_len; ++j) {
    const std::int64_t first = skip ? j : 0;
    const std::int64_t to = gradient + j * args.grad_stride;
    if (args.dk != nullptr) {
      combine<V>(ds + j, few_filled, at<X>(in.q, base), in.row_stride, first, in.seq_len, depth, std::sqrt(static_cast<T>(depth)),
                 static_cast<X*>(args.dk) + to);
    }
    if (args.dv != nullptr) {
      combine<V>(p + j, few_filled, dc, args.dc_stride, first, in.seq_len, depth, T(1), static_cast<X*>(args.dv) + to);
    }
  }
}

}  // namespace
}  // namespace attnscope::fused
