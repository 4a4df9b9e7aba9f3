// ATen's addmm spends three to five dispatched calls around its one call of the BLAS. The BLAS inside libtorch exports its
// Fortran names on Linux and macOS; where it does not, the weak names below stay empty.
#include "fused_library.h"

#include <initializer_list>
#include <limits>

#if !defined(_WIN32)
extern "C" {
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*) __attribute__((weak));
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
            const double*, const int*, const double*, double*, const int*) __attribute__((weak));
}
#endif

namespace attnscope::fused {
namespace {

// One operand as Fortran sees it: column by column, `stride` apart, transposed or not.
struct Matrix {
  const void* data;
  std::int64_t stride;
  bool transposed;
};

template <class T, class Gemm>
bool call(
    Gemm gemm, const Matrix& left, const Matrix& right, std::int64_t m, std::int64_t n, std::int64_t k, bool add, void* c,
    std::int64_t c_stride) {
  if (gemm == nullptr) {
    return false;
  }
  for (const std::int64_t size : {m, n, k, left.stride, right.stride, c_stride}) {
    if (size < 1 || size > std::numeric_limits<int>::max()) {
      return false;
    }
  }
  const char* const as_is = "N";
  const char* const turned = "T";
  const int sizes[] = {static_cast<int>(m), static_cast<int>(n), static_cast<int>(k)};
  const int strides[] = {static_cast<int>(left.stride), static_cast<int>(right.stride), static_cast<int>(c_stride)};
  const T one = 1;
  const T beta = add ? 1 : 0;
  gemm(left.transposed ? turned : as_is, right.transposed ? turned : as_is, &sizes[0], &sizes[1], &sizes[2], &one,
       static_cast<const T*>(left.data), &strides[0], static_cast<const T*>(right.data), &strides[1], &beta,
       static_cast<T*>(c), &strides[2]);
  return true;
}

// In Fortran's order our c [m, n] is cᵀ [n, m], and so the operands change places.
bool call(
    Element element, const Matrix& a, const Matrix& b, std::int64_t rows, std::int64_t columns, std::int64_t depth,
    bool add, void* c, std::int64_t c_stride) {
#if defined(_WIN32)
  (void)element, (void)a, (void)b, (void)rows, (void)columns, (void)depth, (void)add, (void)c, (void)c_stride;
  return false;
#else
  if (element == Element::f32) {
    return call<float>(&sgemm_, b, a, columns, rows, depth, add, c, c_stride);
  }
  return element == Element::f64 && call<double>(&dgemm_, b, a, columns, rows, depth, add, c, c_stride);
#endif
}

}  // namespace

bool library_product(Element element, const ProductArgs& args, std::int64_t rows) {
  const bool upright = args.a_column == 1 && args.a_row >= args.depth;
  const bool turned = args.a_row == 1 && args.a_column >= rows;
  if ((!upright && !turned) || args.b_stride < args.columns) {
    return false;
  }
  return call(element, {args.a, upright ? args.a_row : args.a_column, !upright}, {args.b, args.b_stride, false}, rows,
              args.columns, args.depth, args.add, args.c, args.c_stride);
}

bool library_linear(Element element, const LinearArgs& args, std::int64_t columns, bool add) {
  if (args.x_stride < args.depth || args.weight_stride < args.depth) {
    return false;
  }
  return call(element, {args.x, args.x_stride, false}, {args.weight, args.weight_stride, true}, args.rows, columns,
              args.depth, add, args.y, args.y_stride);
}

}  // namespace attnscope::fused
