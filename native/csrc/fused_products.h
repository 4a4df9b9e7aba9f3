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
    const V zero = V::all(T(0));
    for (std::int64_t p = 0; p < depth; ++p) {
      zero.store(to + p * to_stride + i);
      for (std::int64_t n = i; n < count; ++n) {
        to[p * to_stride + n] = rows[n * stride + p];
      }
    }
  }
}

// Rows x Columns of y = x weightᵀ + bias: products of rows, which both lie along the vectors.
template <class V, int Rows, int Columns>
ATTNSCOPE_INLINE void dot_tile(const LinearArgs& o, std::int64_t i, std::int64_t j) {
  using T = typename V::Scalar;
  const T* const x = static_cast<const T*>(o.x) + i * o.x_stride;
  const T* const weight = static_cast<const T*>(o.weight) + j * o.weight_stride;
  V sum[Rows * Columns];
  unrolled<Rows * Columns>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { sum[n] = V::all(T(0)); });
  const auto step = [&](const auto& load) ATTNSCOPE_INLINE_LAMBDA {
    V left[Rows];
    unrolled<Rows>([&](auto m) ATTNSCOPE_INLINE_LAMBDA { left[m] = load(x + m * o.x_stride); });
    unrolled<Columns>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      const V right = load(weight + n * o.weight_stride);
      unrolled<Rows>([&](auto m) ATTNSCOPE_INLINE_LAMBDA {
        sum[m * Columns + n] = fma(left[m], right, sum[m * Columns + n]);
      });
    });
  };
  std::int64_t p = 0;
  for (; p + V::width <= o.depth; p += V::width) {
    step([&](const T* from) ATTNSCOPE_INLINE_LAMBDA { return V::load(from + p); });
  }
  if (p < o.depth) {
    step([&](const T* from) ATTNSCOPE_INLINE_LAMBDA { return V::load_first(from + p, o.depth - p); });
  }
  T* const y = static_cast<T*>(o.y) + i * o.y_stride + j;
  const T* const bias = o.bias != nullptr ? static_cast<const T*>(o.bias) + j : nullptr;
  if constexpr (Columns % 4 == 0) {
    unrolled<Rows * Columns / 4>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      constexpr int column = n * 4 % Columns;
      V::store_sums(sum + n * 4, bias != nullptr ? bias + column : nullptr,
                    y + n * 4 / Columns * o.y_stride + column);
    });
  } else {
    unrolled<Rows * Columns>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      y[(n / Columns) * o.y_stride + n % Columns] = sum[n].sum() + (bias != nullptr ? bias[n % Columns] : T(0));
    });
  }
}

// A few rows: the weight is read once, as it lies.
template <class V>
void linear_by_dots(const LinearArgs& o, std::int64_t begin, std::int64_t end) {
  constexpr int wide = V::rows > 4 ? 8 : 4;
  for (std::int64_t i = 0; i < o.rows;) {
    const bool two = i + 2 <= o.rows;
    std::int64_t j = begin;
    for (; j + wide <= end; j += wide) {
      two ? dot_tile<V, 2, wide>(o, i, j) : dot_tile<V, 1, wide>(o, i, j);
    }
    for (; j < end; ++j) {
      two ? dot_tile<V, 2, 1>(o, i, j) : dot_tile<V, 1, 1>(o, i, j);
    }
    i += two ? 2 : 1;
  }
}

// More rows: pieces of the weight are transposed first, which sums up along the vectors instead of across them.
template <class V>
void linear_by_tiles(const LinearArgs& o, std::int64_t begin, std::int64_t end) {
  using T = typename V::Scalar;
  constexpr std::int64_t columns = 2 * V::width;
  constexpr std::int64_t depth = 128;
  alignas(64) T packed[depth * columns];
  const T* const bias = static_cast<const T*>(o.bias);
  T* const y = static_cast<T*>(o.y);
  for (std::int64_t j = begin; j < end; j += columns) {
    const std::int64_t here = end - j < columns ? end - j : columns;
    for (std::int64_t i = 0; bias != nullptr && i < o.rows; ++i) {
      for (std::int64_t n = 0; n < here; ++n) {
        y[i * o.y_stride + j + n] = bias[j + n];
      }
    }
    for (std::int64_t p = 0; p < o.depth; p += depth) {
      const std::int64_t deep = o.depth - p < depth ? o.depth - p : depth;
      pack_transposed<V>(static_cast<const T*>(o.weight) + j * o.weight_stride + p, o.weight_stride, here, deep, packed,
                         columns);
      multiply<V>({static_cast<const T*>(o.x) + p, o.x_stride, 1, packed, columns, y + j, o.y_stride, deep,
                   bias != nullptr || p > 0},
                  0, o.rows, here);
    }
  }
}

template <class V>
void linear(const LinearArgs& o, std::int64_t begin, std::int64_t end) {
  o.rows < 6 ? linear_by_dots<V>(o, begin, end) : linear_by_tiles<V>(o, begin, end);
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
