// The layer in differentiable ATen calls. A gradient of the gradient goes through here: what the forward pass kept has
// no history of its own, so the hand-derived formulas, differentiated once more, would be silently wrong. So do
// forward-mode differentiation and the transforms of torch.func, which know each of these calls.
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

#include "attention.h"

namespace attnscope {

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
