// Matrix products in registers. A tile of c stays in registers while b streams by, one row of vectors at a time, and
// each element of a is spread over a vector (Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008). b is read where it lies; the callers see to it that what is read often is small.
#pragma once

#include <type_traits>
#include <utility>

#include "fused_vector_portable.h"

namespace attnscope::fused {
namespace {

template <class F, int... I>
ATTNSCOPE_INLINE void unrolled(F&& f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>()), ...);
}

// f(0), f(1), ..., f(Count - 1), written out: arrays indexed by it can live in registers.
template <int Count, class F>
ATTNSCOPE_INLINE void unrolled(F&& f) {
  unrolled(std::forward<F>(f), std::make_integer_sequence<int, Count>());
}

template <class V>
struct Operands {
  using T = typename V::Scalar;
  const T* a;  // element (i, p) at i * a_row + p * a_column
  std::int64_t a_row;
  std::int64_t a_column;
  const T* b;  // [depth, columns]
  std::int64_t b_stride;
  T* c;
  std::int64_t c_stride;
  std::int64_t depth;
  bool add;
};

// Rows x (Vectors * width) of c from (i, j) on. With `Partial` the one vector holds only `count` columns.
template <class V, int Rows, int Vectors, bool Partial>
ATTNSCOPE_INLINE void tile(const Operands<V>& o, std::int64_t i, std::int64_t j, std::int64_t count) {
  using T = typename V::Scalar;
  V sum[Rows * Vectors];
  T* const c = o.c + i * o.c_stride + j;
  const auto load = [&](const T* from) ATTNSCOPE_INLINE_LAMBDA {
    if constexpr (Partial) {
      return V::load_first(from, count);
    } else {
      return V::load(from);
    }
  };
  unrolled<Rows * Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { sum[n] = V::all(T(0)); });
  const T* a = o.a + i * o.a_row;
  const T* b = o.b + j;
  for (std::int64_t p = 0; p < o.depth; ++p, a += o.a_column, b += o.b_stride) {
    V row[Vectors];
    unrolled<Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { row[n] = load(b + n * V::width); });
    unrolled<Rows>([&](auto m) ATTNSCOPE_INLINE_LAMBDA {
      const V element = V::all(a[m * o.a_row]);
      unrolled<Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
        sum[m * Vectors + n] = fma(element, row[n], sum[m * Vectors + n]);
      });
    });
  }
  if (o.add) {  // at the end: the shorter the chains of additions, the smaller the rounding errors
    unrolled<Rows * Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      sum[n] = sum[n] + load(c + (n / Vectors) * o.c_stride + (n % Vectors) * V::width);
    });
  }
  unrolled<Rows * Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
    T* const to = c + (n / Vectors) * o.c_stride + (n % Vectors) * V::width;
    if constexpr (Partial) {
      sum[n].store_first(to, count);
    } else {
      sum[n].store(to);
    }
  });
}

template <class V, int Rows>
void row_of_tiles(const Operands<V>& o, std::int64_t i, std::int64_t columns) {
  std::int64_t j = 0;
  for (; j + 2 * V::width <= columns; j += 2 * V::width) {
    tile<V, Rows, 2, false>(o, i, j, 0);
  }
  if (j + V::width <= columns) {
    tile<V, Rows, 1, false>(o, i, j, 0);
    j += V::width;
  }
  if (j < columns) {
    tile<V, Rows, 1, true>(o, i, j, columns - j);
  }
}

// Rows [begin, end) of c.
template <class V>
void multiply(const Operands<V>& o, std::int64_t begin, std::int64_t end, std::int64_t columns) {
  std::int64_t i = begin;
  for (; i + V::rows <= end; i += V::rows) {
    row_of_tiles<V, V::rows>(o, i, columns);
  }
  if constexpr (V::rows > 4) {
    if (i + 4 <= end) {
      row_of_tiles<V, 4>(o, i, columns);
      i += 4;
    }
  }
  for (; i + 2 <= end; i += 2) {
    row_of_tiles<V, 2>(o, i, columns);
  }
  if (i < end) {
    row_of_tiles<V, 1>(o, i, columns);
  }
}

// rows [count, depth] -> [depth, to_stride]; columns from `count` to the next multiple of the width are zero.
template <class V>
void pack_transposed(
    const typename V::Scalar* rows, std::int64_t stride, std::int64_t count, std::int64_t depth,
    typename V::Scalar* to, std::int64_t to_stride) {
  using T = typename V::Scalar;
  std::int64_t i = 0;
  for (; i + V::width <= count; i += V::width) {
    std::int64_t p = 0;
    if constexpr (V::transposes) {
      for (; p + V::width <= depth; p += V::width) {
        V::transpose(rows + i * stride + p, stride, to + p * to_stride + i, to_stride);
      }
    }
    for (; p < depth; ++p) {
      for (std::int64_t n = i; n < i + V::width; ++n) {
        to[p * to_stride + n] = rows[n * stride + p];
      }
    }
  }
  if (i < count) {
    std::int64_t p = 0;
    if constexpr (V::transposes) {
      alignas(64) T square[V::width * V::width] = {};
      for (; p + V::width <= depth; p += V::width) {
        for (std::int64_t n = i; n < count; ++n) {
          V::load(rows + n * stride + p).store(square + (n - i) * V::width);
        }
        V::transpose(square, V::width, to + p * to_stride + i, to_stride);
      }
    }
    const V zero = V::all(T(0));
    for (; p < depth; ++p) {
      zero.store(to + p * to_stride + i);
      for (std::int64_t n = i; n < count; ++n) {
        to[p * to_stride + n] = rows[n * stride + p];
      }
    }
  }
}

template <class V>
void product(const ProductArgs& o, std::int64_t begin, std::int64_t end) {
  using T = typename V::Scalar;
  multiply<V>(
      {static_cast<const T*>(o.a), o.a_row, o.a_column, static_cast<const T*>(o.b), o.b_stride, static_cast<T*>(o.c),
       o.c_stride, o.depth, o.add},
      begin, end, o.columns);
}

// In blocks of rows, and the blocks' sums summed: rounding errors grow with the length of a chain of additions.
template <class V, class X>
void column_sums(
    const void* rows, std::int64_t stride, std::int64_t count, void* sums, std::int64_t begin, std::int64_t end) {
  using T = typename V::Scalar;
  constexpr std::int64_t block = 32;
  const auto from = static_cast<const X*>(rows);
  const auto to = static_cast<X*>(sums);
  for (std::int64_t j = begin; j < end; j += V::width) {
    const std::int64_t here = end - j < V::width ? end - j : V::width;
    V total = V::all(T(0));
    for (std::int64_t i = 0; i < count; i += block) {
      const std::int64_t last = count - i < block ? count : i + block;
      V part = V::all(T(0));
      for (std::int64_t r = i; r < last; ++r) {
        const X* const at = from + r * stride + j;
        part = part + (here == V::width ? V::load(at) : V::load_first(at, here));
      }
      total = total + part;
    }
    total.store_first(to + j, here);
  }
}

}  // namespace
}  // namespace attnscope::fused
