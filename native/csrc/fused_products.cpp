// The projections of level "fused": the library's product where it is worth its overhead, a kernel of our own for a few
// rows. Which kernels these are, the processor decides.
#include <ATen/Version.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/empty_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <cstring>
#include <string>

#include "fused.h"
#include "fused_library.h"
#include "fused_parallel.h"
#include "views.h"

namespace attnscope::fused {
namespace {

// Below this many multiplications, waking the other threads takes longer than the work.
constexpr int64_t parallel_work = 100'000;

Element element_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return Element::f64;
    case at::kBFloat16:
      return Element::bf16;
    case at::kHalf:
      return Element::f16;
    default:
      return Element::f32;
  }
}

using Tables = std::array<const Kernels*, 4>;

// ATen has found out what the processor and the system can do, and lets ATEN_CPU_CAPABILITY ask for less.
Tables choose() {
  const std::string capability = at::get_cpu_capability();
  Tables tables{};
  for (const Element element : {Element::f32, Element::f64, Element::bf16, Element::f16}) {
    const Kernels* found = nullptr;
    if (capability == "AVX512") {
      found = avx512_kernels(element);
    }
    if (found == nullptr && (capability == "AVX512" || capability == "AVX2")) {
      found = avx2_kernels(element);
    }
    tables[static_cast<size_t>(element)] = found != nullptr ? found : portable_kernels(element);
  }
  return tables;
}

bool dense_along_rows(const Tensor& t) {
  return t.stride(1) == 1 || t.size(1) == 1;
}

}  // namespace

const Kernels& kernels_for(at::ScalarType type) {
  static const Tables tables = choose();
  return *tables[static_cast<size_t>(element_of(type))];
}

at::ScalarType compute_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

Tensor allocate(at::IntArrayRef sizes, at::ScalarType type) {
  return at::cpu::empty(sizes, at::TensorOptions(type));
}

bool is_small(const Kernels& kernels, int64_t rows, int64_t embed_dim) {
  const bool narrow = kernels.product == nullptr;  // for 16-bit types the processor may have a product of its own
  return narrow ? rows <= narrow_rows && rows * embed_dim <= 2048 : rows <= 16 && embed_dim <= 1024;
}

// False where some operand's rows are not dense.
static bool dense_linear(
    const Tensor& y,       // [R, N]
    const Tensor& x,       // [R, E]
    const Tensor& weight,  // [N, E]
    const Tensor* bias,
    LinearArgs& args) {
  args = {x.const_data_ptr(), x.stride(0), weight.const_data_ptr(), weight.stride(0),
          bias != nullptr ? bias->const_data_ptr() : nullptr, y.data_ptr(), y.stride(0), x.size(0), x.size(1)};
  return dense_along_rows(x) && dense_along_rows(weight) && (bias == nullptr || bias->stride(0) == 1);
}

// The library's product adds to what is there: the bias, in every row.
static void fill_rows(const LinearArgs& args, int64_t columns, int64_t element_size) {
  const auto bytes = static_cast<size_t>(columns * element_size);
  const int64_t step = std::max<int64_t>(1, (args.rows + 7) / 8);
  for_each((args.rows + step - 1) / step, args.rows * columns > 30'000, [&](int64_t block) {
    for (int64_t i = block * step; i < std::min(args.rows, (block + 1) * step); ++i) {
      std::memcpy(static_cast<char*>(args.y) + i * args.y_stride * element_size, args.bias, bytes);
    }
  });
}

bool small_linear(
    const Kernels& kernels,
    const Tensor& y,       // [R, N]
    const Tensor& x,       // [R, E]
    const Tensor& weight,  // [N, E]
    const Tensor* bias,
    LinearArgs& args) {
  return dense_linear(y, x, weight, bias, args) && is_small(kernels, args.rows, args.depth);
}

void linear(
    const Kernels& kernels,
    Tensor& y,             // [R, N]
    const Tensor& x,       // [R, E]
    const Tensor& weight,  // [N, E]
    const Tensor* bias) {
  LinearArgs args;
  const bool dense = dense_linear(y, x, weight, bias, args);
  const int64_t columns = weight.size(0);
  const Element element = element_of(x.scalar_type());
  if (dense && is_small(kernels, args.rows, args.depth)) {
    const bool worth_it = args.rows * args.depth * columns > parallel_work;
    // No more pieces than threads: each of them brings x into its order anew.
    const int64_t chunk = worth_it ? std::max<int64_t>(64, (columns / threads_available() + 15) / 16 * 16) : columns;
    for_each((columns + chunk - 1) / chunk, worth_it, [&](int64_t i) {
      kernels.linear(args, i * chunk, std::min(columns, (i + 1) * chunk));
    });
    return;
  }
  if (dense && kernels.product != nullptr && bias != nullptr) {
    fill_rows(args, columns, static_cast<int64_t>(y.element_size()));
  }
  if (dense && kernels.product != nullptr && library_linear(element, args, columns, bias != nullptr)) {
    return;
  }
  if (bias != nullptr) {
    at::cpu::addmm_out(y, *bias, x, transposed(weight));
  } else {
    at::cpu::mm_out(y, x, transposed(weight));
  }
}

void product(
    const Kernels& kernels,
    Tensor& c,        // [M, N]
    const Tensor& a,  // [M, K]
    const Tensor& b,  // [K, N]
    bool add,
    bool small) {
  const bool dense = dense_along_rows(b) && kernels.product != nullptr;
  const ProductArgs args{a.const_data_ptr(), a.stride(0), a.stride(1), b.const_data_ptr(), b.stride(0),
                         c.data_ptr(),       c.stride(0), b.size(1),   a.size(1),          add};
  const int64_t rows = a.size(0);
  if (!dense || !small) {
    if (dense && library_product(element_of(a.scalar_type()), args, rows)) {
      return;
    }
    if (add) {
      at::cpu::addmm_(c, a, b);
    } else {
      at::cpu::mm_out(c, a, b);
    }
    return;
  }
  const bool worth_it = rows * args.depth * args.columns > parallel_work;
  const int64_t chunk = worth_it ? std::max<int64_t>(8, (rows + 31) / 32 * 8) : rows;
  for_each((rows + chunk - 1) / chunk, worth_it, [&](int64_t i) {
    kernels.product(args, i * chunk, std::min(rows, (i + 1) * chunk));
  });
}

Layout layout_of(const Tensor& x, const Tensor& qkv, int64_t num_heads, bool causal) {
  const int64_t embed_dim = x.size(2);
  const auto base = static_cast<const char*>(qkv.const_data_ptr());
  const auto step = embed_dim * static_cast<int64_t>(qkv.element_size());
  return {base, base + step, base + 2 * step, qkv.stride(0), x.size(0), x.size(1), num_heads, embed_dim / num_heads,
          causal};
}

}  // namespace attnscope::fused
