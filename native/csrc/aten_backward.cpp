// The backward pass of level "aten", derived by hand. The softmax's rows need rowsum(dp ∘ p), and p was kept by the
// forward pass: composed from ATen calls, reading it is cheaper than forming the scores a second time.
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "attention.h"
#include "products.h"
#include "views.h"

namespace attnscope {

std::array<bool, 3> needed_parts(const Wanted& wanted) {
  std::array<bool, 3> needed{wanted.x, wanted.x, wanted.x};
  for (const auto* flags : {&wanted.in_weights, &wanted.in_biases}) {
    for (size_t i = 0; i < flags->size(); ++i) {
      if ((*flags)[i]) {
        for (size_t j = 0; j < 3; ++j) {
          needed[j] = needed[j] || flags->size() == 1 || i == j;
        }
      }
    }
  }
  return needed;
}

void append_projection_gradients(
    std::vector<Tensor>& grads,
    at::TensorList parts,       // one [R, 3E] or three [R, E], rows may lie apart
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Wanted& wanted) {
  if (wanted.x) {
    Tensor dx = at::mm(parts[0], in_weights[0]);
    for (size_t i = 1; i < parts.size(); ++i) {
      dx.addmm_(parts[i], in_weights[i]);
    }
    grads.push_back(strided_view(dx, x.sizes(), {x.size(1) * x.size(2), x.size(2), 1}, 0));
  }
  const Tensor rows = as_rows(x);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (wanted.in_weights[i]) {
      grads.push_back(at::mm(transposed(parts[i]), rows));
    }
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (wanted.in_biases[i]) {
      grads.push_back(at::sum(parts[i], 0));
    }
  }
}

void append_output_gradients(
    std::vector<Tensor>& grads,
    const Tensor& dy,  // [R, E]
    const Tensor& c,   // [R, E]
    const Wanted& wanted) {
  if (wanted.out_weight) {
    grads.push_back(at::mm(transposed(dy), c));
  }
  if (wanted.out_bias) {
    grads.push_back(at::sum(dy, 0));
  }
}

namespace {

// dq, dk, dv [3, B*H, S, D], contiguous; parts not needed are left unset.
Tensor attention_backward(
    const Tensor& dc,   // [B*H, S, D]
    const Tensor& qkv,  // [3, B*H, S, D]
    const Tensor& p,    // [B*H, S, S]
    const std::array<bool, 3>& needed) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(qkv.size(3)));
  const Tensor grad = at::empty(qkv.sizes(), qkv.options());
  if (needed[2]) {
    Tensor dv = part(grad, 2);
    at::bmm_out(dv, batch_transposed(p), dc);
  }
  if (needed[0] || needed[1]) {
    Tensor ds = at::bmm(dc, batch_transposed(part(qkv, 2)));
    // In place: ds = p ∘ (dp − rowsum(dp ∘ p)), each row summed before it is written.
    at::_softmax_backward_data_out(ds, ds, p, -1, p.scalar_type());
    if (needed[0]) {
      part(grad, 0).baddbmm_(ds, part(qkv, 1), 0, scale);
    }
    if (needed[1]) {
      part(grad, 1).baddbmm_(batch_transposed(ds), part(qkv, 0), 0, scale);
    }
  }
  return grad;
}

// [3, B*H, S, D] contiguous -> [R, 3E]: the gradients of q, k, v side by side, as the projection made them.
Tensor merge_projection(const Tensor& grad, int64_t batch, int64_t seq_len, int64_t num_heads) {
  const int64_t head_dim = grad.size(3);
  const int64_t embed_dim = num_heads * head_dim;
  const Tensor by_position = strided_view(
      grad, {batch, seq_len, 3, num_heads, head_dim},
      {seq_len * embed_dim, head_dim, grad.stride(0), seq_len * head_dim, 1}, 0);
  const Tensor dense = at::clone(by_position, at::MemoryFormat::Contiguous);
  return strided_view(dense, {batch * seq_len, 3 * embed_dim}, {3 * embed_dim, 1}, 0);
}

}  // namespace

std::vector<Tensor> zero_gradients(
    const Tensor& x,            // [0, S, E] or [B, 0, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Wanted& wanted) {
  const int64_t embed_dim = x.size(2);
  std::vector<Tensor> grads;
  const auto add = [&](bool is_wanted, at::IntArrayRef sizes) {
    if (is_wanted) {
      grads.push_back(at::zeros(sizes, x.options()));
    }
  };
  add(wanted.x, x.sizes());
  for (size_t i = 0; i < wanted.in_weights.size(); ++i) {
    add(wanted.in_weights[i], in_weights[i].sizes());
  }
  for (size_t i = 0; i < wanted.in_biases.size(); ++i) {
    add(wanted.in_biases[i], in_weights[i].sizes().slice(0, 1));
  }
  add(wanted.out_weight, {embed_dim, embed_dim});
  add(wanted.out_bias, {embed_dim});
  return grads;
}

std::vector<Tensor> aten_backward(
    const Tensor& grad_y,       // [B, S, E], any strides
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Tensor& out_weight,   // [E, E]
    const Tensor& qkv,          // [3, B*H, S, D]
    const Tensor& p,            // [B*H, S, S]
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    const Wanted& wanted) {
  const int64_t batch = x.size(0);
  const int64_t seq_len = x.size(1);
  const int64_t embed_dim = x.size(2);
  const int64_t count = batch * seq_len;
  if (count == 0) {
    return zero_gradients(x, in_weights, wanted);
  }
  std::vector<Tensor> grads;
  grads.reserve(9);
  const Tensor dy = as_rows(grad_y);
  const auto needed = needed_parts(wanted);
  if (needed[0] || needed[1] || needed[2]) {
    const Tensor dc = split_heads(at::mm(dy, out_weight), batch, seq_len, num_heads);
    const Tensor dqkv = merge_projection(attention_backward(dc, qkv, p, needed), batch, seq_len, num_heads);
    std::vector<Tensor> parts{dqkv};
    if (in_weights.size() == 3) {
      parts.clear();
      for (int64_t i = 0; i < 3; ++i) {
        parts.push_back(strided_view(dqkv, {count, embed_dim}, {3 * embed_dim, 1}, i * embed_dim));
      }
    }
    append_projection_gradients(grads, parts, x, in_weights, wanted);
  }
  append_output_gradients(grads, dy, c, wanted);
  return grads;
}

}  // namespace attnscope
