// The backward pass of the attention part, one head of one item at a time: for each block of queries, scores and weights
// again, and from them all three gradients. The block's weights are kept for all keys it sees, so that Σ_j p ∘ dp sums the
// very terms it is subtracted from; as Σ_d dc ∘ c it would cost less memory, but a row's ds would no longer sum to zero.
#pragma once

#include "fused_attention.h"

namespace attnscope::fused {
namespace {

constexpr std::int64_t query_rows = key_block;  // equal, so that a causal block of queries ends with a block of keys

template <class V>
struct BackwardMemory {
  using T = typename V::Scalar;
  T* q;   // [query_rows, padded]; likewise the next two
  T* dc;
  T* dq;
  T* kt;  // [blocks, D, key_block]
  T* vt;
  T* k;   // [S, padded]; likewise the next two
  T* dk;
  T* dv;
  T* p;   // [blocks, query_rows, key_block]
  T* ds;
  std::size_t bytes;

  BackwardMemory(const Layout& in, void* memory) {
    Scratch<T> scratch(memory);
    const std::int64_t padded = rounded_up(in.head_dim, V::width);
    const std::int64_t keys = rounded_up(in.seq_len, key_block);
    q = scratch.take(query_rows * padded);
    dc = scratch.take(query_rows * padded);
    dq = scratch.take(query_rows * padded);
    kt = scratch.take(in.head_dim * keys);
    vt = scratch.take(in.head_dim * keys);
    k = scratch.take(in.seq_len * padded);
    dk = scratch.take(in.seq_len * padded);
    dv = scratch.take(in.seq_len * padded);
    p = scratch.take(query_rows * keys);
    ds = scratch.take(query_rows * keys);
    bytes = scratch.bytes();
  }
};

template <class V>
std::size_t backward_scratch(const Layout& in) {
  return BackwardMemory<V>(in, nullptr).bytes;
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
  const std::int64_t embed_dim = in.num_heads * depth;
  const std::int64_t merged = place.row * embed_dim + place.column;
  const std::int64_t gradient = place.row * args.grad_stride + place.column;
  const T scale = T(1) / std::sqrt(static_cast<T>(depth));
  const T* const row_max = at<T>(args.row_max, head * seq_len);
  const T* const row_sum = at<T>(args.row_sum, head * seq_len);
  const bool skip = may_skip<V, X>(args, head);

  for (std::int64_t j = 0; j < seq_len; j += key_block) {
    const std::int64_t keys = smaller(key_block, seq_len - j);
    // dv's memory holds the values on their way into their transposed place.
    pack_rows<V>(at<X>(in.v, base + j * in.row_stride), in.row_stride, keys, depth, padded, memory.dv + j * padded);
    pack_transposed<V>(memory.dv + j * padded, padded, keys, depth, memory.vt + j * depth, key_block);
    pack_rows<V>(at<X>(in.k, base + j * in.row_stride), in.row_stride, keys, depth, padded, memory.k + j * padded);
    pack_transposed<V>(memory.k + j * padded, padded, keys, depth, memory.kt + j * depth, key_block);
  }
  for (std::int64_t i = 0; i < seq_len; i += query_rows) {
    const std::int64_t rows = smaller(query_rows, seq_len - i);
    pack_rows<V>(at<X>(in.q, base + i * in.row_stride), in.row_stride, rows, depth, padded, memory.q);
    pack_rows<V>(at<X>(args.dc, merged + i * embed_dim), embed_dim, rows, depth, padded, memory.dc);
    const std::int64_t end = skip ? i + rows : seq_len;
    // How many of a block's keys the r-th query sees.
    const auto seen = [&](std::int64_t r, std::int64_t j, std::int64_t keys) {
      return in.causal ? larger(0, smaller(keys, i + r - j + 1)) : keys;
    };
    T delta[query_rows] = {};
    for (std::int64_t j = 0; j < end; j += key_block) {
      T* const p = memory.p + j * query_rows;
      T* const ds = memory.ds + j * query_rows;
      const std::int64_t keys = smaller(key_block, end - j);
      const std::int64_t filled = rounded_up(keys, V::width);
      multiply<V>({memory.q, padded, 1, memory.kt + j * depth, key_block, p, key_block, depth, false}, 0, rows, filled);
      multiply<V>({memory.dc, padded, 1, memory.vt + j * depth, key_block, ds, key_block, depth, false}, 0, rows, filled);
      for (std::int64_t r = 0; r < rows; ++r) {
        delta[r] += soften_again<V>(p + r * key_block, ds + r * key_block, seen(r, j, keys), keys, filled, scale,
                                    row_max[i + r], row_sum[i + r]);
      }
    }
    for (std::int64_t j = 0; j < end; j += key_block) {
      T* const p = memory.p + j * query_rows;
      T* const ds = memory.ds + j * query_rows;
      const std::int64_t keys = smaller(key_block, end - j);
      const std::int64_t filled = rounded_up(keys, V::width);
      const bool later = skip ? i > j : i > 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        subtract_delta<V>(p + r * key_block, ds + r * key_block, seen(r, j, keys), filled, delta[r]);
      }
      if (args.dq != nullptr) {
        multiply<V>({ds, key_block, 1, memory.k + j * padded, padded, memory.dq, padded, keys, j > 0}, 0, rows, padded);
      }
      if (args.dk != nullptr) {
        multiply<V>({ds, 1, key_block, memory.q, padded, memory.dk + j * padded, padded, rows, later}, 0, keys, padded);
      }
      if (args.dv != nullptr) {
        multiply<V>({p, 1, key_block, memory.dc, padded, memory.dv + j * padded, padded, rows, later}, 0, keys, padded);
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
