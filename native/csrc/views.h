// Views made without going through the dispatcher. The kernels run below autograd, on plain CPU and CUDA tensors,
// where a view is a handful of integers; through the dispatcher it costs as much as a small product.
#pragma once

#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/clone.h>
#include <c10/core/MemoryFormat.h>

#include "attention.h"

namespace attnscope {

inline Tensor strided_view(const Tensor& t, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  return at::native::as_strided_tensorimpl(t, sizes, strides, offset);
}

// [M, N] -> [N, M]
inline Tensor transposed(const Tensor& t) {
  return strided_view(t, {t.size(1), t.size(0)}, {t.stride(1), t.stride(0)}, t.storage_offset());
}

// [N, M, K] -> [N, K, M]
inline Tensor batch_transposed(const Tensor& t) {
  return strided_view(
      t, {t.size(0), t.size(2), t.size(1)}, {t.stride(0), t.stride(2), t.stride(1)}, t.storage_offset());
}

// [3, N, S, D] -> [N, S, D]: queries (0), keys (1) or values (2).
inline Tensor part(const Tensor& qkv, int64_t index) {
  return strided_view(
      qkv, qkv.sizes().slice(1), qkv.strides().slice(1), qkv.storage_offset() + index * qkv.stride(0));
}

// [B, S, E] with any strides -> [B*S, E]; a copy only where the rows are not evenly spaced.
inline Tensor as_rows(const Tensor& t) {
  const int64_t rows = t.size(0) * t.size(1);
  if (t.size(0) == 1) {
    return strided_view(t, {rows, t.size(2)}, {t.stride(1), t.stride(2)}, t.storage_offset());
  }
  if (t.size(1) == 1) {
    return strided_view(t, {rows, t.size(2)}, {t.stride(0), t.stride(2)}, t.storage_offset());
  }
  if (t.stride(0) == t.size(1) * t.stride(1)) {
    return strided_view(t, {rows, t.size(2)}, {t.stride(1), t.stride(2)}, t.storage_offset());
  }
  const Tensor dense = at::clone(t, at::MemoryFormat::Contiguous);
  return strided_view(dense, {rows, t.size(2)}, {t.size(2), 1}, 0);
}

// [B*S, E] in rows -> [B*H, S, D]. One item (or one position) needs no copy: its heads lie at an even distance.
inline Tensor split_heads(const Tensor& rows, int64_t batch, int64_t seq_len, int64_t num_heads) {
  const int64_t head_dim = rows.size(1) / num_heads;
  const int64_t items = batch * num_heads;
  if (batch == 1) {
    return strided_view(
        rows, {items, seq_len, head_dim}, {head_dim * rows.stride(1), rows.stride(0), rows.stride(1)},
        rows.storage_offset());
  }
  const Tensor heads = strided_view(
      rows, {batch, num_heads, seq_len, head_dim},
      {seq_len * rows.stride(0), head_dim * rows.stride(1), rows.stride(0), rows.stride(1)}, rows.storage_offset());
  const bool in_place = heads.is_contiguous();
  const Tensor dense = in_place ? heads : at::clone(heads, at::MemoryFormat::Contiguous);
  return strided_view(
      dense, {items, seq_len, head_dim}, {seq_len * head_dim, head_dim, 1}, dense.storage_offset());
}

// [B*H, S, D] contiguous -> [B*S, E] contiguous.
inline Tensor merge_heads(const Tensor& heads, int64_t batch, int64_t seq_len, int64_t num_heads) {
  const int64_t head_dim = heads.size(2);
  const int64_t embed_dim = num_heads * head_dim;
  const Tensor by_position = strided_view(
      heads, {batch, seq_len, num_heads, head_dim}, {seq_len * embed_dim, head_dim, seq_len * head_dim, 1},
      heads.storage_offset());
  const Tensor dense = seq_len == 1 || num_heads == 1 ? by_position : at::clone(by_position, at::MemoryFormat::Contiguous);
  return strided_view(dense, {batch * seq_len, embed_dim}, {embed_dim, 1}, dense.storage_offset());
}

inline bool present(const OptionalTensor& t) {
  return t.has_value() && t->defined();
}

}  // namespace attnscope
