// The dispatcher's side of the operator: signatures as the schemas in operators.cpp spell them, and how one kernel
// calls the next one down.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/string_view.h>

#include "attention.h"

namespace attnscope {

using ForwardTuple = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // y, qkv, p, c: as in `Forward`

using SelfAttentionSignature = Tensor(
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
    bool causal,
    c10::string_view kernel);

using PackedSignature = Tensor(
    const Tensor& x,                     // [B, S, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    int64_t num_heads,
    bool causal,
    c10::string_view kernel);

using ForwardSignature = ForwardTuple(
    const Tensor& x,                 // [B, S, E]
    at::TensorList in_weights,       // one [3E, E] or three [E, E]
    at::TensorList in_biases,        // none, one [3E] or three [E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal,
    c10::string_view kernel);

using BackwardSignature = std::vector<Tensor>(
    const Tensor& grad_y,       // [B, S, E]
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Tensor& out_weight,   // [E, E]
    const Tensor& qkv,          // see `Forward`
    const Tensor& p,            // see `Forward`
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    bool causal,
    int64_t wanted,             // bits: see `Wanted`
    c10::string_view kernel);

using StepSignature = Tensor(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D], written to
    const Tensor& value_cache,           // [B, H, max_len, D], written to
    c10::SymInt position,
    int64_t num_heads,
    c10::string_view kernel);

// One implementation of the same signature for each key. All are registered in operators.cpp: what the dispatcher needs
// to know of a signature is costly to compile, and so compiled once.
SelfAttentionSignature self_attention_autograd;
PackedSignature self_attention_packed_autograd;

SelfAttentionSignature self_attention_composed;  // in ATen calls that every transform knows: see aten_level.cpp
PackedSignature self_attention_packed_composed;

SelfAttentionSignature self_attention_autocast_cpu;
PackedSignature self_attention_packed_autocast_cpu;
SelfAttentionSignature self_attention_autocast_cuda;
PackedSignature self_attention_packed_autocast_cuda;

StepSignature self_attention_step_autograd;
StepSignature self_attention_step_autocast_cpu;
StepSignature self_attention_step_autocast_cuda;
StepSignature self_attention_step_meta;
StepSignature self_attention_step;
StepSignature self_attention_step_elsewhere;

SelfAttentionSignature self_attention_meta;
PackedSignature self_attention_packed_meta;
ForwardSignature self_attention_forward_meta;
BackwardSignature self_attention_backward_meta;

// The kernel below autograd, through the dispatcher, so that tracing sees the call.
template <class Signature>
c10::TypedOperatorHandle<Signature> operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace attnscope
