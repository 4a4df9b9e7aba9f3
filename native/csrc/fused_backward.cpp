// The backward pass of level "fused" on the CPU. Sums run in an order that depends on shapes alone: the same call gives
// the same bits, whatever the threads do.
#include <ATen/ops/zeros.h>

#include "fused.h"
#include "fused_parallel.h"
#include "views.h"

namespace attnscope {
namespace {

using fused::allocate;
using fused::Kernels;

Tensor dense_rows(const Tensor& t) {  // [B, S, E] -> [R, E], dense along E and no row twice in one place
  const Tensor rows = as_rows(t);
  const bool dense = (rows.stride(1) == 1 || rows.size(1) == 1) && (rows.stride(0) >= rows.size(1) || rows.size(0) == 1);
  return dense ? rows : at::clone(rows, at::MemoryFormat::Contiguous);
}

Tensor column_sums(const Kernels& kernels, const Tensor& rows) {  // [R, N] -> [N]
  const int64_t count = rows.size(0);
  const int64_t columns = rows.size(1);
  Tensor sums = allocate({columns}, rows.scalar_type());
  constexpr int64_t step = 64;
  const bool worth_it = count * columns > 100'000;
  const int64_t chunk = worth_it ? step : columns;
  fused::for_each((columns + chunk - 1) / chunk, worth_it, [&](int64_t i) {
    kernels.column_sums(rows.const_data_ptr(), rows.stride(0), count, sums.data_ptr(), i * chunk,
                        std::min(columns, (i + 1) * chunk));
  });
  return sums;
}

// Which of q, k, v need a gradient: for x all, for a weight or bias those it belongs to.
std::array<bool, 3> needed_parts(const Wanted& wanted) {
  std::array<bool, 3> needed{wanted.x, wanted.x, wanted.x};
  for (const auto* flags : {&wanted.in_weights, &wanted.in_biases}) {
    for (size_t i = 0; i < flags->size(); ++i) {
      for (size_t j = 0; j < 3; ++j) {
        needed[j] = needed[j] || ((*flags)[i] && (flags->size() == 1 || i == j));
      }
    }
  }
  return needed;
}

// dq, dk, dv side by side [R, 3E]; the columns of a part not needed are left unset.
Tensor attention_gradients(
    const Kernels& kernels,
    const Tensor& x,      // [B, S, E]
    const Tensor& dc,     // [R, E]
    const Tensor& qkv,    // [R, 3E]
    const Tensor& stats,  // [2, B*H, S]
    int64_t num_heads,
    bool causal,
    const std::array<bool, 3>& needed) {
  Tensor grad = allocate({qkv.size(0), qkv.size(1)}, qkv.scalar_type());
  const int64_t heads = x.size(0) * num_heads;
  const auto base = static_cast<char*>(grad.data_ptr());
  const auto step = x.size(2) * static_cast<int64_t>(grad.element_size());
  const auto row_max = static_cast<const char*>(stats.const_data_ptr());
  const fused::BackwardArgs args{
      fused::layout_of(x, qkv, num_heads, causal),
      dc.const_data_ptr(),
      row_max,
      row_max + heads * x.size(1) * static_cast<int64_t>(stats.element_size()),
      needed[0] ? base : nullptr,
      needed[1] ? base + step : nullptr,
      needed[2] ? base + 2 * step : nullptr,
      grad.stride(0)};
  const size_t scratch = kernels.backward_scratch(args.in);
  fused::for_each(heads, qkv.size(0) * x.size(1) * x.size(2) > 10'000, [&](int64_t head) {
    kernels.backward(args, head, fused::thread_memory(scratch));
  });
  return grad;
}

}  // namespace

std::vector<Tensor> fused_backward(
    const Tensor& grad_y,       // [B, S, E], any strides
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Tensor& out_weight,   // [E, E]
    const Tensor& qkv,          // [R, 3E]
    const Tensor& stats,        // [2, B*H, S]
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    bool causal,
    const Wanted& wanted) {
  const int64_t embed_dim = x.size(2);
  const int64_t count = x.size(0) * x.size(1);
  if (count == 0) {
    return zero_gradients(x, in_weights, wanted);
  }
  const auto type = x.scalar_type();
  const Kernels& kernels = fused::kernels_for(type);
  const bool small = fused::is_small(kernels, count, embed_dim);
  std::vector<Tensor> grads;
  grads.reserve(9);
  const Tensor dy = dense_rows(grad_y);
  const auto needed = needed_parts(wanted);
  if (needed[0] || needed[1] || needed[2]) {
    Tensor dc = allocate({count, embed_dim}, type);
    fused::product(kernels, dc, dy, out_weight, false, small);
    const Tensor dqkv =
        attention_gradients(kernels, x, dc, qkv.stride(1) == 1 ? qkv : qkv.contiguous(), stats.contiguous(),
                            num_heads, causal, needed);
    const auto parts = static_cast<int64_t>(in_weights.size());
    const int64_t width = 3 * embed_dim / parts;
    const auto columns = [&](size_t i) {  // [R, width]
      return parts == 1 ? dqkv
                        : strided_view(dqkv, {count, width}, {3 * embed_dim, 1}, static_cast<int64_t>(i) * width);
    };
    if (wanted.x) {
      grads.push_back(allocate(x.sizes(), type));
      Tensor dx = strided_view(grads.back(), {count, embed_dim}, {embed_dim, 1}, 0);
      for (size_t i = 0; i < in_weights.size(); ++i) {
        fused::product(kernels, dx, columns(i), in_weights[i], i > 0, small);
      }
    }
    const Tensor rows = dense_rows(x);
    for (size_t i = 0; i < wanted.in_weights.size(); ++i) {
      if (wanted.in_weights[i]) {
        grads.push_back(allocate({width, embed_dim}, type));
        fused::product(kernels, grads.back(), transposed(columns(i)), rows, false, small);
      }
    }
    for (size_t i = 0; i < wanted.in_biases.size(); ++i) {
      if (wanted.in_biases[i]) {
        grads.push_back(column_sums(kernels, columns(i)));
      }
    }
  }
  if (wanted.out_weight) {
    grads.push_back(allocate({embed_dim, embed_dim}, type));
    fused::product(kernels, grads.back(), transposed(dy), c, false, small);
  }
  if (wanted.out_bias) {
    grads.push_back(column_sums(kernels, dy));
  }
  return grads;
}

}  // namespace attnscope
