// Attention without a score matrix: keys and values are taken in blocks, and a block's scores live only until they have
// been used. The forward pass keeps a running maximum and sum for each row (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao et al., "FlashAttention", 2022); the backward pass forms the scores again.
#pragma once

#include "fused_few.h"

namespace attnscope::fused {
namespace {

constexpr std::int64_t key_block = 64;
constexpr std::int64_t query_block = 128;

// Hands out pieces of a task's scratch memory, each aligned to 64 bytes. Without memory it only counts.
template <class T>
class Scratch {
 public:
  explicit Scratch(void* memory) : next_(static_cast<T*>(memory)) {}
  T* take(std::int64_t count) {
    T* const result = next_;
    const std::int64_t step = rounded_up(count, static_cast<std::int64_t>(64 / sizeof(T)));
    next_ = next_ == nullptr ? nullptr : next_ + step;
    used_ += step;
    return result;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(used_) * sizeof(T); }

 private:
  T* next_;
  std::int64_t used_ = 0;
};

// rows [count, depth] -> [count, padded] of the compute type; what lies between is zero.
template <class V, class X>
void pack_rows(
    const X* rows, std::int64_t stride, std::int64_t count, std::int64_t depth, std::int64_t padded,
    typename V::Scalar* to) {
  for (std::int64_t i = 0; i < count; ++i, rows += stride, to += padded) {
    std::int64_t p = 0;
    for (; p + V::width <= depth; p += V::width) {
      V::load(rows + p).store(to + p);
    }
    if (p < depth) {
      V::load_first(rows + p, depth - p).store(to + p);
    }
  }
}

template <class V>
struct ForwardMemory {
  using T = typename V::Scalar;
  T* q;       // [query_block, padded]
  T* o;       // [query_block, padded]: Σ exp(score - row_max) v so far
  T* row_max; // [query_block]
  T* row_sum;
  T* kt;      // [D, key_block]
  T* v;       // [key_block, padded]
  T* s;       // [V::rows, key_block]
  std::size_t bytes;

  ForwardMemory(const Layout& in, void* memory) {
    Scratch<T> scratch(memory);
    const std::int64_t padded = rounded_up(in.head_dim, V::width);
    const std::int64_t queries = smaller(query_block, in.seq_len);
    q = scratch.take(queries * padded);
    o = scratch.take(queries * padded);
    row_max = scratch.take(queries);
    row_sum = scratch.take(queries);
    kt = scratch.take(in.head_dim * key_block);
    v = scratch.take(key_block * padded);
    s = scratch.take(V::rows * key_block);
    bytes = scratch.bytes();
  }
};

template <class V>
std::size_t forward_scratch(const Layout& in) {
  return ForwardMemory<V>(in, nullptr).bytes;
}

template <class V, class X>
void forward(const ForwardArgs& args, std::int64_t head, std::int64_t block, void* scratch) {
  using T = typename V::Scalar;
  const Layout& in = args.in;
  if (in.seq_len <= few) {
    forward_few<V, X>(args, head);
    return;
  }
  const ForwardMemory<V> memory(in, scratch);
  const std::int64_t depth = in.head_dim;
  const std::int64_t padded = rounded_up(depth, V::width);
  const Place place = place_of(in, head);
  const std::int64_t first = block * query_block;
  const std::int64_t count = smaller(query_block, in.seq_len - first);
  const std::int64_t base = place.row * in.row_stride + place.column;
  const T scale = T(1) / std::sqrt(static_cast<T>(depth));
  pack_rows<V>(at<X>(in.q, base + first * in.row_stride), in.row_stride, count, depth, padded, memory.q);
  for (std::int64_t i = 0; i < count; ++i) {
    memory.row_max[i] = -std::numeric_limits<T>::infinity();
    memory.row_sum[i] = T(0);
  }
  const bool skip = may_skip<V, X>(args, head, first);
  const std::int64_t end = skip ? first + count : in.seq_len;
  for (std::int64_t k0 = 0; k0 < end; k0 += key_block) {
    const std::int64_t keys = smaller(key_block, end - k0);
    const X* const k = at<X>(in.k, base + k0 * in.row_stride);
    if constexpr (std::is_same_v<X, T>) {
      pack_transposed<V>(k, in.row_stride, keys, depth, memory.kt, key_block);
    } else {
      pack_rows<V>(k, in.row_stride, keys, depth, padded, memory.v);
      pack_transposed<V>(memory.v, padded, keys, depth, memory.kt, key_block);
    }
    pack_rows<V>(at<X>(in.v, base + k0 * in.row_stride), in.row_stride, keys, depth, padded, memory.v);
    for (std::int64_t i = 0; i < count; i += V::rows) {
      const std::int64_t rows = smaller(V::rows, count - i);
      // Position of the group's first query among this block's keys: what lies beyond the last one is never formed.
      const std::int64_t diagonal = first + i - k0;
      const std::int64_t used = skip ? smaller(keys, diagonal + rows) : keys;
      if (used <= 0) {
        continue;
      }
      const std::int64_t filled = rounded_up(used, V::width);
      multiply<V>({memory.q + i * padded, padded, 1, memory.kt, key_block, memory.s, key_block, depth, false}, 0, rows,
                  filled);
      T* const o = memory.o + i * padded;
      for (std::int64_t r = 0; r < rows; ++r) {
        T* const s = memory.s + r * key_block;
        const std::int64_t valid = in.causal ? smaller(used, diagonal + r + 1) : used;
        if (valid <= 0) {
          for (std::int64_t j = 0; j < filled; ++j) {
            s[j] = T(0);
          }
          continue;
        }
        const T factor = soften<V>(s, valid, filled, scale, memory.row_max[i + r], memory.row_sum[i + r]);
        if (k0 > 0 && factor != T(1)) {
          const V times = V::all(factor);
          for (std::int64_t p = 0; p < padded; p += V::width) {
            (V::load(o + r * padded + p) * times).store(o + r * padded + p);
          }
        }
      }
      multiply<V>({memory.s, key_block, 1, memory.v, padded, o, padded, used, k0 > 0}, 0, rows, padded);
    }
  }
  const std::int64_t embed_dim = in.num_heads * depth;
  X* const c = static_cast<X*>(args.c) + (place.row + first) * embed_dim + place.column;
  for (std::int64_t i = 0; i < count; ++i) {
    const V sum = V::all(memory.row_sum[i]);
    const T* const o = memory.o + i * padded;
    std::int64_t p = 0;
    for (; p + V::width <= depth; p += V::width) {
      (V::load(o + p) / sum).store(c + i * embed_dim + p);
    }
    if (p < depth) {
      (V::load(o + p) / sum).store_first(c + i * embed_dim + p, depth - p);
    }
  }
  if (args.row_max != nullptr) {
    T* const row_max = static_cast<T*>(args.row_max) + head * in.seq_len + first;
    T* const row_sum = static_cast<T*>(args.row_sum) + head * in.seq_len + first;
    for (std::int64_t i = 0; i < count; ++i) {
      row_max[i] = memory.row_max[i];
      row_sum[i] = memory.row_sum[i];
    }
  }
}

}  // namespace
}  // namespace attnscope::fused
