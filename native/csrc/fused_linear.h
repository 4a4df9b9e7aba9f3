// y = x weightᵀ + bias for a few rows of x, where the library's product is mostly overhead.
#pragma once

#include "fused_products.h"

namespace attnscope::fused {
namespace {

// Rows x Columns of y = x weightᵀ + bias: products of rows, which both lie along the vectors.
template <class V, class X, int Rows, int Columns>
ATTNSCOPE_INLINE void dot_tile(
    const X* x, std::int64_t x_stride, const X* weight, std::int64_t weight_stride, std::int64_t depth,
    const typename V::Scalar* bias, typename V::Scalar* y, std::int64_t y_stride) {
  using T = typename V::Scalar;
  V sum[Rows * Columns];
  unrolled<Rows * Columns>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { sum[n] = V::all(T(0)); });
  const auto step = [&](const auto& load) ATTNSCOPE_INLINE_LAMBDA {
    V left[Rows];
    unrolled<Rows>([&](auto m) ATTNSCOPE_INLINE_LAMBDA { left[m] = load(x + m * x_stride); });
    unrolled<Columns>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      const V right = load(weight + n * weight_stride);
      unrolled<Rows>([&](auto m) ATTNSCOPE_INLINE_LAMBDA {
        sum[m * Columns + n] = fma(left[m], right, sum[m * Columns + n]);
      });
    });
  };
  std::int64_t p = 0;
  for (; p + V::width <= depth; p += V::width) {
    step([&](const X* from) ATTNSCOPE_INLINE_LAMBDA { return V::load(from + p); });
  }
  if (p < depth) {
    step([&](const X* from) ATTNSCOPE_INLINE_LAMBDA { return V::load_first(from + p, depth - p); });
  }
  if constexpr (Columns % 4 == 0) {
    unrolled<Rows * Columns / 4>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      constexpr int column = n * 4 % Columns;
      V::store_sums(sum + n * 4, bias != nullptr ? bias + column : nullptr, y + n * 4 / Columns * y_stride + column);
    });
  } else {
    unrolled<Rows * Columns>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      y[(n / Columns) * y_stride + n % Columns] = sum[n].sum() + (bias != nullptr ? bias[n % Columns] : T(0));
    });
  }
}

// A few rows: the weight is read once, as it lies. Columns [begin, end), which go to y [rows, end - begin].
template <class V, class X>
void linear_by_dots(
    const LinearArgs& o, std::int64_t begin, std::int64_t end, const typename V::Scalar* bias, typename V::Scalar* y,
    std::int64_t y_stride) {
  constexpr int wide = V::rows > 4 ? 8 : 4;
  const X* x = static_cast<const X*>(o.x);
  for (std::int64_t i = 0; i < o.rows;) {
    const bool two = i + 2 <= o.rows;
    const X* weight = static_cast<const X*>(o.weight) + begin * o.weight_stride;
    const auto tiles = [&](auto columns, std::int64_t j) ATTNSCOPE_INLINE_LAMBDA {
      const typename V::Scalar* const add = bias != nullptr ? bias + j : nullptr;
      two ? dot_tile<V, X, 2, columns>(x, o.x_stride, weight, o.weight_stride, o.depth, add, y + j, y_stride)
          : dot_tile<V, X, 1, columns>(x, o.x_stride, weight, o.weight_stride, o.depth, add, y + j, y_stride);
      weight += columns * o.weight_stride;
    };
    std::int64_t j = 0;
    for (; j + wide <= end - begin; j += wide) {
      tiles(std::integral_constant<int, wide>(), j);
    }
    for (; j < end - begin; ++j) {
      tiles(std::integral_constant<int, 1>(), j);
    }
    i += two ? 2 : 1;
    x += (two ? 2 : 1) * o.x_stride;
    y += (two ? 2 : 1) * y_stride;
  }
}

// The same for 16-bit types: the sums of some columns are kept, and rounded together with their bias.
template <class V, class X>
void linear_narrow(const LinearArgs& o, std::int64_t begin, std::int64_t end) {
  using T = typename V::Scalar;
  constexpr std::int64_t columns = 64;
  alignas(64) T sums[narrow_rows * columns];
  const X* const bias = static_cast<const X*>(o.bias);
  for (std::int64_t j = begin; j < end; j += columns) {
    const std::int64_t here = end - j < columns ? end - j : columns;
    linear_by_dots<V, X>(o, j, j + here, nullptr, sums, columns);
    for (std::int64_t i = 0; i < o.rows; ++i) {
      const T* const row = sums + i * columns;
      X* const y = static_cast<X*>(o.y) + i * o.y_stride + j;
      for (std::int64_t n = 0; n < here; n += V::width) {
        const bool whole = n + V::width <= here;
        V sum = whole ? V::load(row + n) : V::load_first(row + n, here - n);
        if (bias != nullptr) {
          sum = sum + (whole ? V::load(bias + j + n) : V::load_first(bias + j + n, here - n));
        }
        whole ? sum.store(y + n) : sum.store_first(y + n, here - n);
      }
    }
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

// Some columns of y: an element of the weight, where it lies, times a vector of as many rows of x. Where registers allow
// in two chains of additions, each half as long, for their rounding errors. To `turned` [Columns, Vectors * width].
template <class V, int Vectors, int Columns, int Chains>
ATTNSCOPE_INLINE void column_tile(
    const typename V::Scalar* packed,  // [depth, Vectors * width]
    const typename V::Scalar* weight, std::int64_t weight_stride, std::int64_t depth, typename V::Scalar* turned) {
  using T = typename V::Scalar;
  constexpr int count = Columns * Vectors;
  V sum[Chains * count];
  unrolled<Chains * count>([&](auto n) ATTNSCOPE_INLINE_LAMBDA { sum[n] = V::all(T(0)); });
  const auto step = [&](std::int64_t p, auto chain) ATTNSCOPE_INLINE_LAMBDA {
    V x[Vectors];
    unrolled<Vectors>([&](auto m) ATTNSCOPE_INLINE_LAMBDA { x[m] = V::load(packed + (p * Vectors + m) * V::width); });
    unrolled<Columns>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
      const V element = V::all(weight[n * weight_stride + p]);
      unrolled<Vectors>([&](auto m) ATTNSCOPE_INLINE_LAMBDA {
        constexpr int at = chain * count + n * Vectors + m;
        sum[at] = fma(element, x[m], sum[at]);
      });
    });
  };
  std::int64_t p = 0;
  for (; p + Chains <= depth; p += Chains) {
    unrolled<Chains>([&](auto chain) ATTNSCOPE_INLINE_LAMBDA { step(p + chain, chain); });
  }
  if (p < depth) {
    step(p, std::integral_constant<int, 0>());
  }
  unrolled<count>([&](auto n) ATTNSCOPE_INLINE_LAMBDA {
    if constexpr (Chains == 2) {
      sum[n] = sum[n] + sum[count + n];
    }
    sum[n].store(turned + n * V::width);
  });
}

// As many rows as fit a vector, or two: x is turned once, so that rows lie along the vectors, and the weight is read as
// it lies. `Sums`: enough of them to hide the latency of an addition, few enough to stay in registers. No more than
// eight columns at a time, whose lines a small cache can hold even where all of them fall into one set.
template <class V, int Vectors, int Sums>
void linear_by_columns(const LinearArgs& o, std::int64_t begin, std::int64_t end) {
  using T = typename V::Scalar;
  constexpr std::int64_t depth = 128;
  constexpr std::int64_t lanes = Vectors * V::width;
  constexpr int chains = Sums >= 16 ? 2 : 1;
  constexpr int columns = Sums / Vectors / chains;
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
        column_tile<V, Vectors, columns, chains>(packed, weight + n * o.weight_stride, o.weight_stride, deep, turned + n * lanes);
      }
      for (; n < here; ++n) {
        column_tile<V, Vectors, 1, chains>(packed, weight + n * o.weight_stride, o.weight_stride, deep, turned + n * lanes);
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
  using T = typename V::Scalar;
  if (o.rows < 6) {
    return linear_by_dots<V, T>(o, begin, end, o.bias != nullptr ? static_cast<const T*>(o.bias) + begin : nullptr,
                                static_cast<T*>(o.y) + begin, o.y_stride);
  }
  if constexpr (V::transposes) {
    using Short = typename V::Short;
    constexpr int sums = V::width > Short::width ? 16 : 8;  // of 32 or 16 registers
    if (o.rows <= Short::width) {
      return linear_by_columns<Short, 1, sums>(o, begin, end);
    }
    if (V::width == Short::width && o.rows <= 2 * V::width) {
      return linear_by_columns<V, 2, sums>(o, begin, end);
    }
    if (V::width > Short::width && o.rows > V::width * 3 / 4 && o.rows <= V::width) {
      return linear_by_columns<V, 1, sums>(o, begin, end);
    }
  }
  linear_by_tiles<V>(o, begin, end);
}

}  // namespace
}  // namespace attnscope::fused
