// The forward pass of level "aten": operator.md's formulas, one ATen call after the other.
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/triu.h>

#include <cmath>
#include <limits>

#include "attention.h"
#include "products.h"
#include "views.h"

namespace attnscope {

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

// p = softmax(q kᵀ / sqrt(D)), causal or not: [B*H, S, S]. Scale and mask ride along in the batched product.
Tensor attention_weights(const Tensor& q, const Tensor& k, bool causal) {  // [B*H, S, D] each
  const int64_t seq_len = q.size(1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(2)));
  Tensor scores;
  if (causal && seq_len > 1) {
    Tensor mask = at::full({seq_len, seq_len}, -std::numeric_limits<double>::infinity(), q.options());
    mask.triu_(1);
    scores = at::baddbmm(mask, q, batch_transposed(k), 1, scale);
  } else {
    scores = at::empty({q.size(0), seq_len, seq_len}, q.options());
    scores.baddbmm_(q, batch_transposed(k), 0, scale);
  }
  // In place: each row is read in full before it is written, and the scores are not needed again.
  at::_softmax_out(scores, scores, -1, false);
  return scores;
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

}  // namespace attnscope
