// Level "aten", in one file because ATen's headers take longer to compile than what uses them: the forward pass and the
// decoding step, the backward pass, and the layer in differentiable calls.
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "attention.h"
#include "products.h"
#include "views.h"

namespace attnscope {

// The forward pass and the decoding step of level "aten": the layer's formulas, one ATen call after the other.

Tensor linear(const Tensor& rows, const Tensor& weight, const Tensor* bias) {  // [R, E], [N, E], [N]
  return bias ? at::addmm(*bias, rows, transposed(weight)) : at::mm(rows, transposed(weight));
}

namespace {

// q, k and v side by side: [R, 3E]. A packed weight needs one product, separate ones write into its columns.
Tensor project(
    const Tensor& rows,         // [R, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    at::TensorList in_biases) { // none, one [3E] or three [E]
  if (in_weights.size() == 1) {
    return linear(rows, in_weights[0], in_biases.empty() ? nullptr : &in_biases[0]);
  }
  const int64_t count = rows.size(0);
  const int64_t embed_dim = rows.size(1);
  const Tensor qkv = at::empty({count, 3 * embed_dim}, rows.options());
  for (int64_t i = 0; i < 3; ++i) {
    Tensor columns = strided_view(qkv, {count, embed_dim}, {3 * embed_dim, 1}, i * embed_dim);
    const auto index = static_cast<size_t>(i);
    if (in_biases.empty()) {
      at::mm_out(columns, rows, transposed(in_weights[index]));
    } else {
      at::addmm_out(columns, in_biases[index], rows, transposed(in_weights[index]));
    }
  }
  return qkv;
}

// [R, 3E] -> [3, B*H, S, D]. A single item needs no copy: its heads already lie at an even distance.
Tensor split_projection(const Tensor& rows, int64_t batch, int64_t seq_len, int64_t num_heads) {
  const int64_t width = rows.size(1);
  const int64_t embed_dim = width / 3;
  const int64_t head_dim = embed_dim / num_heads;
  const int64_t items = batch * num_heads;
  if (batch == 1) {
    return strided_view(rows, {3, items, seq_len, head_dim}, {embed_dim, head_dim, width, 1}, rows.storage_offset());
  }
  const Tensor heads = strided_view(
      rows, {3, batch, num_heads, seq_len, head_dim}, {embed_dim, seq_len * width, head_dim, width, 1},
      rows.storage_offset());
  const Tensor dense = at::clone(heads, at::MemoryFormat::Contiguous);
  return strided_view(
      dense, {3, items, seq_len, head_dim}, {items * seq_len * head_dim, seq_len * head_dim, head_dim, 1}, 0);
}

// p = softmax(q kᵀ / sqrt(D)), causal or not: [B*H, S, S]. The scale rides along in the batched product. The mask does
// not, though -inf could be added there: a later position's score may be infinite or NaN, and the sum would be NaN.
Tensor attention_weights(const Tensor& q, const Tensor& k, bool causal) {  // [B*H, S, D] each
  const int64_t seq_len = q.size(1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(2)));
  Tensor scores = at::empty({q.size(0), seq_len, seq_len}, q.options());
  scores.baddbmm_(q, batch_transposed(k), 0, scale);
  if (causal && seq_len > 1) {
    const Tensor later = at::ones({seq_len, seq_len}, q.options().dtype(at::kBool)).triu_(1);
    scores.masked_fill_(later, -std::numeric_limits<double>::infinity());
  }
  // In place: each row is read in full before it is written, and the scores are not needed again.
  at::_softmax_out(scores, scores, -1, false);
  return scores;
}

// The first `length` positions of every head: [B*H, length, D], a view wherever the heads lie at an even distance.
Tensor filled_part(const Tensor& cache, int64_t length) {  // [B, H, max_len, D]
  const int64_t heads = cache.size(0) * cache.size(1);
  const Tensor part = strided_view(
      cache, {cache.size(0), cache.size(1), length, cache.size(3)}, cache.strides(), cache.storage_offset());
  if (cache.size(0) == 1 || cache.size(1) == 1 || cache.stride(0) == cache.size(1) * cache.stride(1)) {
    const int64_t step = cache.size(1) == 1 ? cache.stride(0) : cache.stride(1);
    return strided_view(
        part, {heads, length, cache.size(3)}, {step, cache.stride(2), cache.stride(3)}, cache.storage_offset());
  }
  return part.reshape({heads, length, cache.size(3)});
}

// Row `position` of every head: [B, H, D].
Tensor row_at(const Tensor& cache, int64_t position) {  // [B, H, max_len, D]
  return strided_view(
      cache, {cache.size(0), cache.size(1), cache.size(3)}, {cache.stride(0), cache.stride(1), cache.stride(3)},
      cache.storage_offset() + position * cache.stride(2));
}

}  // namespace

Forward aten_forward(
    const Tensor& x,              // [B, S, E]
    at::TensorList in_weights,    // one [3E, E] or three [E, E]
    at::TensorList in_biases,     // none, one [3E] or three [E]
    const Tensor& out_weight,     // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal) {
  const int64_t batch = x.size(0);
  const int64_t seq_len = x.size(1);
  const int64_t embed_dim = x.size(2);
  const int64_t items = batch * num_heads;
  if (batch == 0 || seq_len == 0) {
    const auto options = x.options();
    return {
        at::empty({batch, seq_len, embed_dim}, options),
        at::empty({3, items, seq_len, embed_dim / num_heads}, options),
        at::empty({items, seq_len, seq_len}, options),
        at::empty({batch * seq_len, embed_dim}, options)};
  }
  const Tensor qkv = split_projection(project(as_rows(x), in_weights, in_biases), batch, seq_len, num_heads);
  const Tensor p = attention_weights(part(qkv, 0), part(qkv, 1), causal);
  const Tensor c = merge_heads(at::bmm(p, part(qkv, 2)), batch, seq_len, num_heads);
  const Tensor rows = linear(c, out_weight, present(out_bias) ? &*out_bias : nullptr);
  return {strided_view(rows, {batch, seq_len, embed_dim}, {seq_len * embed_dim, embed_dim, 1}, 0), qkv, p, c};
}

Tensor aten_step(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    int64_t position,
    int64_t num_heads) {
  const int64_t batch = x_t.size(0);
  const int64_t embed_dim = x_t.size(2);
  if (batch == 0) {
    return at::empty({0, 1, embed_dim}, x_t.options());
  }
  const int64_t head_dim = embed_dim / num_heads;
  const int64_t heads = batch * num_heads;
  const Tensor qkv = linear(as_rows(x_t), in_proj_weight, present(in_proj_bias) ? &*in_proj_bias : nullptr);
  const auto part_of = [&](int64_t index) {  // [B, H, D]
    return strided_view(qkv, {batch, num_heads, head_dim}, {3 * embed_dim, head_dim, 1}, index * embed_dim);
  };
  row_at(key_cache, position).copy_(part_of(1));
  row_at(value_cache, position).copy_(part_of(2));
  Tensor q = part_of(0);
  q = batch == 1 ? strided_view(qkv, {heads, 1, head_dim}, {head_dim, head_dim, 1}, 0)
                 : q.reshape({heads, 1, head_dim});
  const int64_t length = position + 1;
  Tensor scores = at::empty({heads, 1, length}, x_t.options());
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  scores.baddbmm_(q, batch_transposed(filled_part(key_cache, length)), 0, scale);
  at::_softmax_out(scores, scores, -1, false);
  const Tensor c = at::bmm(scores, filled_part(value_cache, length));  // [B*H, 1, D]
  const Tensor y = linear(
      strided_view(c, {batch, embed_dim}, {embed_dim, 1}, 0), out_weight, present(out_bias) ? &*out_bias : nullptr);
  return strided_view(y, {batch, 1, embed_dim}, {embed_dim, embed_dim, 1}, y.storage_offset());
}

// The backward pass of level "aten", derived by hand. The softmax's rows need rowsum(dp ∘ p), and p was kept by the
// forward pass: composed from ATen calls, reading it is cheaper than forming the scores a second time.

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

// The layer in differentiable ATen calls. A gradient of the gradient goes through here: what the forward pass kept has
// no history of its own, so the hand-derived formulas, differentiated once more, would be silently wrong. So do
// forward-mode differentiation and the transforms of torch.func, which know each of these calls.

Tensor differentiable_forward(
    const Tensor& x,              // [B, S, E]
    at::TensorList in_weights,    // one [3E, E] or three [E, E]
    at::TensorList in_biases,     // none, one [3E] or three [E]
    const Tensor& out_weight,     // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal) {
  const c10::SymInt batch = x.sym_size(0);
  const c10::SymInt seq_len = x.sym_size(1);
  const c10::SymInt embed_dim = x.sym_size(2);
  const c10::SymInt head_dim = embed_dim / num_heads;
  const OptionalTensor bias = in_biases.empty() ? OptionalTensor() : at::cat(in_biases);
  const Tensor qkv = at::linear(x, at::cat(in_weights), bias)
                         .reshape_symint({batch, seq_len, 3, num_heads, head_dim})
                         .permute({2, 0, 3, 1, 4});  // [3, B, H, S, D]
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim.guard_int(__FILE__, __LINE__)));
  Tensor s = at::matmul(qkv.select(0, 0), qkv.select(0, 1).transpose(-2, -1)).mul(scale);
  if (causal) {
    const Tensor later = at::ones_symint({seq_len, seq_len}, x.options().dtype(at::kBool)).triu(1);
    s = s.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  const Tensor c = at::matmul(at::softmax(s, -1), qkv.select(0, 2))
                       .transpose(1, 2)
                       .reshape_symint({batch, seq_len, embed_dim});
  return at::linear(c, out_weight, out_bias);
}

}  // namespace attnscope
