// Shapes and strides without arithmetic: for the meta device, torch.compile and torch.export. Sizes may be symbolic.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "checks.h"
#include "operators.h"
#include "sdpa.h"
#include "views.h"

namespace attnscope {
namespace {

using c10::SymInt;

Tensor like_x(const Tensor& x) {  // [B, S, E] -> [B, S, E], contiguous
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

Tensor self_attention_meta(
    const Tensor& x,                 // [B, S, E]
    const Tensor& q_weight,          // [E, E]
    const OptionalTensor& q_bias,    // [E]
    const Tensor& k_weight,          // [E, E]
    const OptionalTensor& k_bias,    // [E]
    const Tensor& v_weight,          // [E, E]
    const OptionalTensor& v_bias,    // [E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool /*causal*/,
    c10::string_view kernel) {
  check_arguments(x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias, num_heads);
  kernel_named(kernel);
  return like_x(x);
}

Tensor self_attention_packed_meta(
    const Tensor& x,                     // [B, S, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    int64_t num_heads,
    bool /*causal*/,
    c10::string_view kernel) {
  const at::TensorList biases = present(in_proj_bias) ? at::TensorList(*in_proj_bias) : at::TensorList();
  check_projections(x, in_proj_weight, biases, out_weight, out_bias, num_heads);
  kernel_named(kernel);
  return like_x(x);
}

ForwardTuple self_attention_forward_meta(
    const Tensor& x,                 // [B, S, E]
    at::TensorList in_weights,       // one [3E, E] or three [E, E]
    at::TensorList in_biases,        // none, one [3E] or three [E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool /*causal*/,
    c10::string_view kernel) {
  check_projections(x, in_weights, in_biases, out_weight, out_bias, num_heads);
  const Kernel level = kernel_named(kernel);
  const SymInt batch = x.sym_size(0);
  const SymInt seq_len = x.sym_size(1);
  const SymInt embed_dim = x.sym_size(2);
  const SymInt head_dim = embed_dim / num_heads;
  const SymInt items = batch * num_heads;
  if (level == Kernel::fused) {
    const auto stats = x.options().dtype(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    return {
        like_x(x), at::empty_symint({batch * seq_len, embed_dim * 3}, x.options()),
        at::empty_symint({2, items, seq_len}, stats), at::empty_symint({batch * seq_len, embed_dim}, x.options())};
  }
  if (is_sdpa(level)) {
    const auto kept = kept_by<SymInt>(level, batch, num_heads, seq_len);
    const auto type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const SymInt rows = batch * seq_len;
    const auto projected = in_weights.size() == 1 ? std::vector<SymInt>{rows, embed_dim * 3}
                                                  : std::vector<SymInt>{3, rows, embed_dim};
    return {
        like_x(x), at::empty_symint(projected, x.options()),
        at::empty_strided_symint(kept.sizes, kept.strides, x.options().dtype(type)),
        at::empty_symint({rows, embed_dim}, x.options())};
  }
  const std::vector<SymInt> sizes{3, items, seq_len, head_dim};
  // A single item is a view of the projection, without a copy: see `split_projection`.
  const Tensor qkv = batch == 1 && seq_len != 0
      ? at::empty_strided_symint(sizes, std::vector<SymInt>{embed_dim, head_dim, embed_dim * 3, 1}, x.options())
      : at::empty_symint(sizes, x.options());
  return {
      like_x(x), qkv, at::empty_symint({items, seq_len, seq_len}, x.options()),
      at::empty_symint({batch * seq_len, embed_dim}, x.options())};
}

std::vector<Tensor> self_attention_backward_meta(
    const Tensor& grad_y,       // [B, S, E]
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Tensor& out_weight,   // [E, E]
    const Tensor& qkv,          // see `Forward`
    const Tensor& p,            // see `Forward`
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    bool /*causal*/,
    int64_t wanted_bits,        // see `Wanted`
    c10::string_view kernel) {
  const Kernel level = kernel_named(kernel);
  check_backward(grad_y, x, in_weights, out_weight, qkv, p, c, num_heads, wanted_bits, level);
  const Wanted wanted = Wanted::from_bits(wanted_bits, in_weights.size());
  const SymInt embed_dim = x.sym_size(2);
  std::vector<Tensor> grads;
  const auto add = [&](bool is_wanted, c10::SymIntArrayRef sizes) {
    if (is_wanted) {
      grads.push_back(at::empty_symint(sizes, x.options()));
    }
  };
  add(wanted.x, x.sym_sizes());
  for (size_t i = 0; i < wanted.in_weights.size(); ++i) {
    add(wanted.in_weights[i], in_weights[i].sym_sizes());
  }
  for (size_t i = 0; i < wanted.in_biases.size(); ++i) {
    add(wanted.in_biases[i], in_weights[i].sym_sizes().slice(0, 1));
  }
  add(wanted.out_weight, out_weight.sym_sizes());
  add(wanted.out_bias, {embed_dim});
  return grads;
}

}  // namespace attnscope
