// The forward pass and the decoding step of level "aten": the layer's formulas, one ATen call after the other.
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
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

}  // namespace attnscope
