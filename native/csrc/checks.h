// What the operator refuses, with a sentence that names the argument, its shape and what was expected.
// ATen does not check all of this itself: a matrix product of tensors on two devices can return garbage.
#pragma once

#include "attention.h"

namespace attnscope {

// The nine tensors of `self_attention`. Makes no ATen call; sizes may be symbolic.
void check_arguments(
    const Tensor& x,                 // [B, S, E]
    const Tensor& q_weight,          // [E, E]
    const OptionalTensor& q_bias,    // [E]
    const Tensor& k_weight,          // [E, E]
    const OptionalTensor& k_bias,    // [E]
    const Tensor& v_weight,          // [E, E]
    const OptionalTensor& v_bias,    // [E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads);

// The same for the packed form and for lists of one or three projections.
void check_projections(
    const Tensor& x,                 // [B, S, E]
    at::TensorList in_weights,       // one [3E, E] or three [E, E]
    at::TensorList in_biases,        // none, one [3E] or three [E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads);

// What a backward pass is given, which nobody but autograd should call: shapes, devices and types agree.
void check_backward(
    const Tensor& grad_y,       // [B, S, E]
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Tensor& out_weight,   // [E, E]
    const Tensor& qkv,          // see `Forward`
    const Tensor& p,            // see `Forward`
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    int64_t wanted,  // bits
    Kernel kernel);

// A step's arguments: as `check_projections`, and the position is one that the caches have room for.
void check_step(
    const Tensor& x_t,               // [B, 1, E]
    const Tensor& in_proj_weight,    // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    const Tensor& key_cache,         // [B, H, max_len, D]
    const Tensor& value_cache,       // [B, H, max_len, D]
    const c10::SymInt& position,
    int64_t num_heads);

}  // namespace attnscope
