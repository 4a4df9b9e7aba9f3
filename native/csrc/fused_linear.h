// y = x weightᵀ + bias for a few rows of x, where the library's product is mostly overhead.
#pragma once

#include "fused_products.h"

namespace attnscope::fused {
namespace {

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

// Columns [j, j + Columns) of y: an element of the weight, where it lies, times a vector of as many rows of x. The sums
// go to `turned` [columns, Vectors * width].
template <class V, int Vectors, int Columns>
ATTNSCOPE_INLINE void column_tile(
    const typename V::Scalar* packed,  // [depth, Vectors * width]
    const typename V::Scalar* weight, std::int64_t weight_stride, std::int64_t depth, typename V::Scalar* turned) {
  using T = typename V::Scalar;
  V sum[Columns * Vectors];
  unrolled<Columns * Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { sum[n] = V::all(T(0)); });
  for (std::int64_t p = 0; p < depth; ++p, packed += Vectors * V::width) {
    V x[Vectors];
    unrolled<Vectors>([&](auto m) ATTNSCOPE_INLINE_LAMBDA { x[m] = V::load(packed + m * V::width); });
    unrolled<Columns>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      const V element = V::all(weight[n * weight_stride + p]);
      unrolled<Vectors>([&](auto m) ATTNSCOPE_INLINE_LAMBDA {
        sum[n * Vectors + m] = fma(element, x[m], sum[n * Vectors + m]);
      });
    });
  }
  unrolled<Columns * Vectors>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { sum[n].store(turned + n * V::width); });
}

// As many rows as fit a vector, or two: x is turned once, so that rows lie along the vectors, and the weight is read as
// it lies. Eight sums at a time: enough to hide their latency, and no more rows of the weight than a small cache can
// hold lines that fall into one set.
template <class V, int Vectors>
void linear_by_columns(const LinearArgs& o, std::int64_t begin, std::int64_t end) {
  using T = typename V::Scalar;
  constexpr std::int64_t depth = 256;
  constexpr std::int64_t lanes = Vectors * V::width;
  constexpr int columns = 8 / Vectors;
  alignas(64) T packed[depth * lanes];
  alignas(64) T turned[V::width * lanes];
  alignas(64) T square[V::width * V::width];
  const T* const bias = static_cast<const T*>(o.bias);
  for (std::int64_t p = 0; p < o.depth; p += depth) {
    const std::int64_t deep = o.depth - p < depth ? o.depth - p : depth;
    pack_transposed<V>(static_cast<const T*>(o.x) + p, o.x_stride, o.rows, deep, packed, lanes);
    for (std::int64_t j = begin; j < end; j += V::width) {
      const std::int64_t here = end - j < V::width ? end - j : V::width;
      const T* const weight = static_cast<const T*>(o.weight) + j * o.weight_stride + p;
      std::int64_t n = 0;
      for (; n + columns <= here; n += columns) {
        column_tile<V, Vectors, columns>(packed, weight + n * o.weight_stride, o.weight_stride, deep, turned + n * lanes);
      }
      for (; n < here; ++n) {
        column_tile<V, Vectors, 1>(packed, weight + n * o.weight_stride, o.weight_stride, deep, turned + n * lanes);
      }
      const bool whole = here == V::width;
      const auto load = [&](const T* from) { return whole ? V::load(from) : V::load_first(from, here); };
      const V start = bias != nullptr && p == 0 ? load(bias + j) : V::all(T(0));
      for (std::int64_t m = 0; m < Vectors; ++m) {
        V::transpose(turned + m * V::width, lanes, square, V::width);
        for (std::int64_t i = m * V::width; i < o.rows && i < (m + 1) * V::width; ++i) {
          T* const y = static_cast<T*>(o.y) + i * o.y_stride + j;
          const V sum = V::load(square + (i - m * V::width) * V::width) + (p == 0 ? start : load(y));
          whole ? sum.store(y) : sum.store_first(y, here);
        }
      }
    }
  }
}

template <class V>
void linear(const LinearArgs& o, std::int64_t begin, std::int64_t end) {
  if (o.rows < 6) {
    return linear_by_dots<V>(o, begin, end);
  }
  if constexpr (V::transposes) {
    using Short = typename V::Short;
    if (o.rows <= Short::width) {
      return linear_by_columns<Short, 1>(o, begin, end);
    }
    if (V::width == Short::width && o.rows <= 2 * V::width) {
      return linear_by_columns<V, 2>(o, begin, end);
    }
    if (V::width > Short::width && o.rows > V::width * 3 / 4 && o.rows <= V::width) {
      return linear_by_columns<V, 1>(o, begin, end);
    }
  }
  linear_by_tiles<V>(o, begin, end);
}

}  // namespace
}  // namespace attnscope::fused
