// The operator's pieces, level by level. Shapes: B batch, S sequence, E embedding, H heads, D = E / H, R = B * S.
//
// A projection from x to queries, keys and values is given either packed (one weight [3E, E], one bias [3E]) or
// separately (three weights [E, E], three biases [E]); biases may be absent altogether. `in_weights` and
// `in_biases` hold the one or the three of them, in the order q, k, v.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

struct Forward {
  Tensor y;    // [B, S, E]
  Tensor qkv;  // aten: [3, B*H, S, D], strided: see `split_heads`; fused: [R, 3E], as projected; others: see sdpa.h
  Tensor p;    // aten: [B*H, S, S], the attention weights after the softmax; fused: [2, B*H, S], see `fused_forward`;
               // others: see sdpa.h
  Tensor c;    // [R, E], the weighted values with their heads merged
};

// Which gradients are wanted, in the order in which they are returned.
struct Wanted {
  bool x = false;
  std::vector<bool> in_weights;  // one or three, as the weights themselves
  std::vector<bool> in_biases;   // as many
  bool out_weight = false;
  bool out_bias = false;

  // As the operator's schema carries it: bit i is the i-th of the fields above, counted flat.
  int64_t bits() const;
  static Wanted from_bits(int64_t bits, size_t parts);
};

// The levels the operator can run at; `kernel` in its schema names one. Raises ValueError on any other name. "auto" is
// "fused": on the CPU no shape was measured at which "aten" is faster, on CUDA it launches fewer kernels. The last three
// are not for callers: they are what "fused" stands for on CUDA, and their like on the CPU, see sdpa.h.
enum class Kernel { aten, fused, flash, efficient, flash_for_cpu };
Kernel kernel_named(std::string_view name);
std::string name_of(Kernel kernel);

// Level "aten": composed from ATen calls, for CPU and CUDA alike. Arguments have been checked.
Forward aten_forward(
    const Tensor& x,              // [B, S, E]
    at::TensorList in_weights,    // one [3E, E] or three [E, E]
    at::TensorList in_biases,     // none, one [3E] or three [E]
    const Tensor& out_weight,     // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal);

// The wanted gradients, in the order of `Wanted`'s fields; what is not wanted is not computed and takes no place.
std::vector<Tensor> aten_backward(
    const Tensor& grad_y,       // [B, S, E], any strides
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Tensor& out_weight,   // [E, E]
    const Tensor& qkv,          // [3, B*H, S, D]
    const Tensor& p,            // [B*H, S, S]
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    const Wanted& wanted);

// Level "fused", for CPU tensors. `keep`: whether to fill `p` with what the backward pass needs of the softmax, in the
// compute type: each row's largest product q k, and its sum of exponentials, which is its log-sum-exp in two
// parts (one number would lose digits where scores are large). Undefined otherwise.
Forward fused_forward(
    const Tensor& x,              // [B, S, E]
    at::TensorList in_weights,    // one [3E, E] or three [E, E]
    at::TensorList in_biases,     // none, one [3E] or three [E]
    const Tensor& out_weight,     // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal,
    bool keep);

// As `aten_backward`.
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
    const Wanted& wanted);

// Decoding at either level: the new position's keys and values go to row `position` of the caches, which it then attends
// to up to and including that row. Arguments have been checked.
Tensor aten_step(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    int64_t position,
    int64_t num_heads);

Tensor fused_step(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    int64_t position,
    int64_t num_heads);

// Of an empty x: all wanted gradients are zero, and no product is needed.
std::vector<Tensor> zero_gradients(
    const Tensor& x,            // [0, S, E] or [B, 0, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Wanted& wanted);

// The layer written with differentiable ATen calls, for the second derivative, forward mode and torch.func's transforms.
Tensor differentiable_forward(
    const Tensor& x,              // [B, S, E]
    at::TensorList in_weights,    // one [3E, E] or three [E, E]
    at::TensorList in_biases,     // none, one [3E] or three [E]
    const Tensor& out_weight,     // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal);

}  // namespace attnscope
