// One new position over a cache: its scores against all keys so far, a softmax, the weighted sum of the values. A product
// of a vector and a matrix reads each number once, so what counts is to read at the memory's speed: several rows are
// under way at a time, and nothing is packed or copied first. Long caches are taken in pieces, which are merged after.
#pragma once

#include "fused_few.h"

namespace attnscope::fused {
namespace {

constexpr std::int64_t step_block = 256;  // keys whose scores live at a time

// s[n] = q · rows[n] for Rows rows (a multiple of four).
template <class V, int Rows, class X>
ATTNSCOPE_INLINE void row_products(
    const X* q, const X* rows, std::int64_t stride, std::int64_t depth, typename V::Scalar* s) {
  V sum[Rows];
  unrolled<Rows>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { sum[n] = V::all(typename V::Scalar(0)); });
  std::int64_t p = 0;
  for (; p + V::width <= depth; p += V::width) {
    const V left = V::load(q + p);
    unrolled<Rows>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { sum[n] = fma(left, V::load(rows + n * stride + p), sum[n]); });
  }
  if (p < depth) {
    const V left = V::load_first(q + p, depth - p);
    unrolled<Rows>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      sum[n] = fma(left, V::load_first(rows + n * stride + p, depth - p), sum[n]);
    });
  }
  unrolled<Rows / 4>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { V::store_sums(sum + n * 4, nullptr, s + n * 4); });
}

template <class V, class X>
void products_of(
    const X* q, const X* rows, std::int64_t stride, std::int64_t count, std::int64_t depth, typename V::Scalar* s) {
  constexpr int wide = V::rows > 4 ? 8 : 4;
  std::int64_t j = 0;
  for (; j + wide <= count; j += wide) {
    row_products<V, wide>(q, rows + j * stride, stride, depth, s + j);
  }
  for (; j < count; ++j) {
    s[j] = dot<V>(q, rows + j * stride, depth);
  }
}

// o = (add ? factor * o : 0) + Σ_j s[j] rows[j], for Vectors vectors of columns (or, Partial, the first `columns` of one).
// Streams rows are summed apart, so that no addition waits for the one before it.
template <class V, int Vectors, int Streams, bool Partial, class X>
ATTNSCOPE_INLINE void weigh_columns(
    const typename V::Scalar* s, const X* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
    typename V::Scalar factor, bool add, typename V::Scalar* o) {
  const auto load = [&](const X* from) ATTNSCOPE_INLINE_LAMBDA {
    if constexpr (Partial) {
      return V::load_first(from, columns);
    } else {
      return V::load(from);
    }
  };
  V sum[Streams * Vectors];
  unrolled<Streams * Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { sum[n] = V::all(typename V::Scalar(0)); });
  std::int64_t j = 0;
  for (; j + Streams <= count; j += Streams) {
    unrolled<Streams * Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      const X* const row = rows + (j + n / Vectors) * stride;
      sum[n] = fma(V::all(s[j + n / Vectors]), load(row + n % Vectors * V::width), sum[n]);
    });
  }
  for (; j < count; ++j) {
    unrolled<Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      sum[n] = fma(V::all(s[j]), load(rows + j * stride + n * V::width), sum[n]);
    });
  }
  unrolled<Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
    V total = sum[n];
    unrolled<Streams - 1>([&](auto m) ATTNSCOPE_INLINE_LAMBDA { total = total + sum[(m + 1) * Vectors + n]; });
    typename V::Scalar* const to = o + n * V::width;
    (add ? fma(V::load(to), V::all(factor), total) : total).store(to);
  });
}

template <class V, class X>
void weigh(
    const typename V::Scalar* s, const X* rows, std::int64_t stride, std::int64_t count, std::int64_t depth,
    typename V::Scalar factor, bool add, typename V::Scalar* o) {
  std::int64_t p = 0;
  for (; p + 4 * V::width <= depth; p += 4 * V::width) {
    weigh_columns<V, 4, 2, false>(s, rows + p, stride, count, 0, factor, add, o + p);
  }
  for (; p + 2 * V::width <= depth; p += 2 * V::width) {
    weigh_columns<V, 2, 4, false>(s, rows + p, stride, count, 0, factor, add, o + p);
  }
  for (; p + V::width <= depth; p += V::width) {
    weigh_columns<V, 1, 8, false>(s, rows + p, stride, count, 0, factor, add, o + p);
  }
  if (p < depth) {
    weigh_columns<V, 1, 8, true>(s, rows + p, stride, count, depth - p, factor, add, o + p);
  }
}

// Where piece `piece` of a head leaves Σ exp(scale * (product - row_max)) v, then row_max, of the products before they
// are scaled, and Σ exp(scale * (product - row_max)).
template <class V>
typename V::Scalar* piece_of(const StepArgs& args, std::int64_t head, std::int64_t piece) {
  const std::int64_t padded = rounded_up(args.head_dim, V::width);
  return static_cast<typename V::Scalar*>(args.pieces) + (head * args.piece_count + piece) * (padded + 2);
}

template <class V, class X>
void step_attend(const StepArgs& args, std::int64_t head, std::int64_t piece) {
  using T = typename V::Scalar;
  const std::int64_t depth = args.head_dim;
  const std::int64_t item = head / args.num_heads;
  const std::int64_t of_item = head % args.num_heads;
  const X* const q = at<X>(args.q, item * args.q_stride + of_item * depth);
  const X* const keys = at<X>(args.keys.data, item * args.keys.item_stride + of_item * args.keys.head_stride);
  const X* const values = at<X>(args.values.data, item * args.values.item_stride + of_item * args.values.head_stride);
  const T scale = T(1) / std::sqrt(static_cast<T>(depth));
  T* const o = piece_of<V>(args, head, piece);
  T row_max = -std::numeric_limits<T>::infinity();
  T row_sum = T(0);
  const std::int64_t begin = piece * args.piece_length;
  const std::int64_t end = smaller(args.length, begin + args.piece_length);
  for (std::int64_t j = begin; j < end; j += step_block) {
    const std::int64_t count = smaller(step_block, end - j);
    alignas(64) T s[step_block];
    products_of<V>(q, keys + j * args.keys.row_stride, args.keys.row_stride, count, depth, s);
    const T factor = soften<V>(s, count, rounded_up(count, V::width), scale, row_max, row_sum);
    weigh<V>(s, values + j * args.values.row_stride, args.values.row_stride, count, depth, factor, j > begin, o);
  }
  T* const stats = o + rounded_up(depth, V::width);
  stats[0] = row_max;
  stats[1] = row_sum;
}

// The head's weighted values into its columns of c.
template <class V, class X>
void step_merge(const StepArgs& args, std::int64_t head) {
  using T = typename V::Scalar;
  const std::int64_t depth = args.head_dim;
  const std::int64_t padded = rounded_up(depth, V::width);
  const T scale = T(1) / std::sqrt(static_cast<T>(depth));
  T row_max = piece_of<V>(args, head, 0)[padded];
  for (std::int64_t i = 1; i < args.piece_count; ++i) {
    const T found = piece_of<V>(args, head, i)[padded];
    row_max = row_max > found ? row_max : found;
  }
  T* const o = piece_of<V>(args, head, 0);
  T row_sum = o[padded + 1];
  for (std::int64_t i = 0; i < args.piece_count && args.piece_count > 1; ++i) {
    const T* const other = piece_of<V>(args, head, i);
    const T factor = std::exp((other[padded] - row_max) * scale);
    row_sum = (i > 0 ? row_sum : T(0)) + other[padded + 1] * factor;
    const V times = V::all(factor);
    for (std::int64_t p = 0; p < padded; p += V::width) {
      const V scaled = V::load(other + p) * times;
      (i > 0 ? V::load(o + p) + scaled : scaled).store(o + p);
    }
  }
  X* const c = static_cast<X*>(args.c) + head / args.num_heads * args.c_stride + head % args.num_heads * depth;
  const V by = V::all(row_sum);
  std::int64_t p = 0;
  for (; p + V::width <= depth; p += V::width) {
    (V::load(o + p) / by).store(c + p);
  }
  if (p < depth) {
    (V::load(o + p) / by).store_first(c + p, depth - p);
  }
}

}  // namespace
}  // namespace attnscope::fused
