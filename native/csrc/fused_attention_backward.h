// The backward pass of the attention part, one head of one item at a time: for each block of queries, scores and weights
// again, and from them all three gradients. The block's weights are kept for all keys it sees, so that Σ_j p ∘ dp sums the
// very terms it is subtracted from; as Σ_d dc ∘ c it would cost less memory, but a row's ds would no longer sum to zero.
//
// Scores are formed with the queries along the vectors, so that only blocks of queries are turned, and keys and values
// read row by row. These are copied all the same, once for each head: where they lie each row is on a page of its own, and
// looking pages up takes as long as a good part of the arithmetic. For the same reason dk and dv are summed up apart.
#pragma once

#include "fused_attention.h"

namespace attnscope::fused {
namespace {

constexpr std::int64_t query_rows = key_block;  // equal, so that a causal block of queries ends with a block of keys

template <class V>
struct BackwardMemory {
  using T = typename V::Scalar;
  T* q;    // [query_rows, padded]; likewise the next two
  T* dc;
  T* dq;
  T* qt;   // [D, query_rows]
  T* dct;
  T* k;    // [S, padded]; likewise the next three
  T* v;
  T* dk;
  T* dv;
  T* p;    // [S, query_rows]
  T* ds;
  std::size_t bytes;

  BackwardMemory(const Layout& in, void* memory) {
    Scratch<T> scratch(memory);
    const std::int64_t padded = rounded_up(in.head_dim, V::width);
    q = scratch.take(query_rows * padded);
    dc = scratch.take(query_rows * padded);
    dq = scratch.take(query_rows * padded);
    qt = scratch.take(in.head_dim * query_rows);
    dct = scratch.take(in.head_dim * query_rows);
    k = scratch.take(in.seq_len * padded);
    v = scratch.take(in.seq_len * padded);
    dk = scratch.take(in.seq_len * padded);
    dv = scratch.take(in.seq_len * padded);
    p = scratch.take(in.seq_len * query_rows);
    ds = scratch.take(in.seq_len * query_rows);
    bytes = scratch.bytes();
  }
};

template <class V>
std::size_t backward_scratch(const Layout& in) {
  return in.seq_len <= few ? 0 : BackwardMemory<V>(in, nullptr).bytes;
}

template <class V, class X>
void unpack_rows(
    const typename V::Scalar* from, std::int64_t padded, std::int64_t count, std::int64_t depth,
    typename V::Scalar factor, X* rows, std::int64_t stride) {
  const V times = V::all(factor);
  for (std::int64_t i = 0; i < count; ++i, from += padded, rows += stride) {
    std::int64_t p = 0;
    for (; p + V::width <= depth; p += V::width) {
      (V::load(from + p) * times).store(rows + p);
    }
    if (p < depth) {
      (V::load(from + p) * times).store_first(rows + p, depth - p);
    }
  }
}

// What a block of queries keeps of its softmax; queries there are not have a sum of one.
template <class T>
struct alignas(64) QueryStats {
  T row_max[query_rows] = {};
  T row_sum[query_rows];
  T delta[query_rows] = {};  // Σ_j p ∘ dp
};

// For every key of a block, f(key, how many queries of the vector from `query` on come too early to see it, which of eight
// sums it may add to: long chains of additions lose digits). Query r sees the keys up to `diagonal + r`; all of them where not causal.
template <class V, bool Causal, class F>
ATTNSCOPE_INLINE void each_key(std::int64_t keys, std::int64_t query, std::int64_t diagonal, const F& f) {
  const auto hidden = [&](std::int64_t n) ATTNSCOPE_INLINE_LAMBDA { return Causal ? n - diagonal - query : 0; };
  std::int64_t n = 0;
  for (; n + 8 <= keys; n += 8) {
    unrolled<8>([&](auto m) ATTNSCOPE_INLINE_LAMBDA { f(n + m, hidden(n + m), m); });
  }
  unrolled<7>([&](auto m) ATTNSCOPE_INLINE_LAMBDA {
    if (n + m < keys) {
      f(n + m, hidden(n + m), m);
    }
  });
}

// Products s = k q become weights p = exp(scale * (s - row_max)) / row_sum, zero where a query does not see the key, and
// their share of Σ_j p ∘ dp joins delta: 0 * dp counts too where dp is not finite.
template <class V, bool Causal>
void soften_keys(
    typename V::Scalar* s, const typename V::Scalar* dp, std::int64_t keys, std::int64_t queries, std::int64_t diagonal,
    typename V::Scalar scale, QueryStats<typename V::Scalar>& stats) {
  using T = typename V::Scalar;
  const V times = V::all(scale);
  const V unseen = V::all(-std::numeric_limits<T>::infinity());
  for (std::int64_t r = 0; r < queries; r += V::width) {
    const V shift = V::load(stats.row_max + r);
    const V total = V::load(stats.row_sum + r);
    V sum[8];
    unrolled<8>([&](auto m) ATTNSCOPE_INLINE_LAMBDA { sum[m] = V::all(T(0)); });
    each_key<V, Causal>(keys, r, diagonal, [&](std::int64_t n, std::int64_t hidden, auto m) ATTNSCOPE_INLINE_LAMBDA {
      T* const at = s + n * query_rows + r;
      V products = V::load(at);
      if constexpr (Causal) {
        products = unseen.first_or(hidden, products);
      }
      const V p = exp((products - shift) * times) / total;
      p.store(at);
      sum[m] = fma(p, V::load(dp + n * query_rows + r), sum[m]);
    });
    const V left = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    const V right = (sum[4] + sum[5]) + (sum[6] + sum[7]);
    (V::load(stats.delta + r) + (left + right)).store(stats.delta + r);
  }
}

// dp becomes ds = p ∘ (dp - delta), zero where a query does not see the key, whatever delta is.
template <class V, bool Causal>
void subtract_deltas(
    const typename V::Scalar* p, typename V::Scalar* dp, std::int64_t keys, std::int64_t queries, std::int64_t diagonal,
    const QueryStats<typename V::Scalar>& stats) {
  using T = typename V::Scalar;
  for (std::int64_t r = 0; r < queries; r += V::width) {
    const V delta = V::load(stats.delta + r);
    each_key<V, Causal>(keys, r, diagonal, [&](std::int64_t n, std::int64_t hidden, auto) ATTNSCOPE_INLINE_LAMBDA {
      T* const at = dp + n * query_rows + r;
      V ds = V::load(p + n * query_rows + r) * (V::load(at) - delta);
      if constexpr (Causal) {
        ds = V::all(T(0)).first_or(hidden, ds);
      }
      ds.store(at);
    });
  }
}

template <class V, class X>
void backward(const BackwardArgs& args, std::int64_t head, void* scratch) {
  using T = typename V::Scalar;
  const Layout& in = args.in;
  if (in.seq_len <= few) {
    backward_few<V, X>(args, head);
    return;
  }
  const BackwardMemory<V> memory(in, scratch);
  const std::int64_t seq_len = in.seq_len;
  const std::int64_t depth = in.head_dim;
  const std::int64_t padded = rounded_up(depth, V::width);
  const Place place = place_of(in, head);
  const std::int64_t base = place.row * in.row_stride + place.column;
  const std::int64_t merged = place.row * args.dc_stride + place.column;
  const std::int64_t gradient = place.row * args.grad_stride + place.column;
  const T scale = T(1) / std::sqrt(static_cast<T>(depth));
  const T* const row_max = at<T>(args.row_max, head * seq_len);
  const T* const row_sum = at<T>(args.row_sum, head * seq_len);
  const bool skip = may_skip<V, X>(args, head);

  pack_rows<V>(at<X>(in.k, base), in.row_stride, seq_len, depth, padded, memory.k);
  pack_rows<V>(at<X>(in.v, base), in.row_stride, seq_len, depth, padded, memory.v);
  for (std::int64_t i = 0; i < seq_len; i += query_rows) {
    const std::int64_t rows = smaller(query_rows, seq_len - i);
    const std::int64_t filled = rounded_up(rows, V::width);
    pack_rows<V>(at<X>(in.q, base + i * in.row_stride), in.row_stride, rows, depth, padded, memory.q);
    pack_transposed<V>(memory.q, padded, rows, depth, memory.qt, query_rows);
    pack_rows<V>(at<X>(args.dc, merged + i * args.dc_stride), args.dc_stride, rows, depth, padded, memory.dc);
    pack_transposed<V>(memory.dc, padded, rows, depth, memory.dct, query_rows);
    QueryStats<T> stats;
    for (std::int64_t r = 0; r < query_rows; ++r) {
      stats.row_max[r] = r < rows ? row_max[i + r] : T(0);
      stats.row_sum[r] = r < rows ? row_sum[i + r] : T(1);
    }
    const std::int64_t end = skip ? i + rows : seq_len;
    for (std::int64_t j = 0; j < end; j += key_block) {
      T* const p = memory.p + j * query_rows;
      T* const ds = memory.ds + j * query_rows;
      const std::int64_t keys = smaller(key_block, end - j);
      multiply<V>({memory.k + j * padded, padded, 1, memory.qt, query_rows, p, query_rows, depth, false}, 0, keys, filled);
      multiply<V>({memory.v + j * padded, padded, 1, memory.dct, query_rows, ds, query_rows, depth, false}, 0, keys, filled);
      in.causal && j >= i ? soften_keys<V, true>(p, ds, keys, filled, i - j, scale, stats)
                          : soften_keys<V, false>(p, ds, keys, filled, 0, scale, stats);
    }
    for (std::int64_t j = 0; j < end; j += key_block) {
      T* const p = memory.p + j * query_rows;
      T* const ds = memory.ds + j * query_rows;
      const std::int64_t keys = smaller(key_block, end - j);
      const bool later = skip ? i > j : i > 0;
      in.causal && j >= i ? subtract_deltas<V, true>(p, ds, keys, filled, i - j, stats)
                          : subtract_deltas<V, false>(p, ds, keys, filled, 0, stats);
      if (args.dq != nullptr) {
        multiply<V>({ds, 1, query_rows, memory.k + j * padded, padded, memory.dq, padded, keys, j > 0}, 0, rows, padded);
      }
      if (args.dk != nullptr) {
        multiply<V>({ds, query_rows, 1, memory.q, padded, memory.dk + j * padded, padded, rows, later}, 0, keys, padded);
      }
      if (args.dv != nullptr) {
        multiply<V>({p, query_rows, 1, memory.dc, padded, memory.dv + j * padded, padded, rows, later}, 0, keys, padded);
      }
    }
    if (args.dq != nullptr) {
      unpack_rows<V>(memory.dq, padded, rows, depth, scale, static_cast<X*>(args.dq) + gradient + i * args.grad_stride,
                     args.grad_stride);
    }
  }
  if (args.dk != nullptr) {
    unpack_rows<V>(memory.dk, padded, seq_len, depth, scale, static_cast<X*>(args.dk) + gradient, args.grad_stride);
  }
  if (args.dv != nullptr) {
    unpack_rows<V>(memory.dv, padded, seq_len, depth, T(1), static_cast<X*>(args.dv) + gradient, args.grad_stride);
  }
}

}  // namespace
}  // namespace attnscope::fused
