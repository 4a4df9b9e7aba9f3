// Autocast: every floating tensor goes to the region's type first, as it would for the products of the native layer.
#include <ATen/autocast_mode.h>

#include "operators.h"

namespace attnscope {
namespace {

template <class T>
T cast(const T& tensor, c10::DeviceType device) {
  return at::autocast::cached_cast(at::autocast::get_autocast_dtype(device), tensor, device);
}

Tensor separate(
    c10::DeviceType device,
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
    c10::string_view kernel) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  static const auto op = operator_named<SelfAttentionSignature>("attnscope::self_attention");
  return op.call(
      cast(x, device), cast(q_weight, device), cast(q_bias, device), cast(k_weight, device), cast(k_bias, device),
      cast(v_weight, device), cast(v_bias, device), cast(out_weight, device), cast(out_bias, device), num_heads,
      causal, kernel);
}

Tensor packed(
    c10::DeviceType device,
    const Tensor& x,                     // [B, S, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    int64_t num_heads,
    bool causal,
    c10::string_view kernel) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  static const auto op = operator_named<PackedSignature>("attnscope::self_attention_packed");
  return op.call(
      cast(x, device), cast(in_proj_weight, device), cast(in_proj_bias, device), cast(out_weight, device),
      cast(out_bias, device), num_heads, causal, kernel);
}

Tensor step(
    c10::DeviceType device,
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    c10::SymInt position,
    int64_t num_heads,
    c10::string_view kernel) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  static const auto op = operator_named<StepSignature>("attnscope::self_attention_step");
  // The caches are written to, and so stay what they are: one of another type is refused by name.
  return op.call(
      cast(x_t, device), cast(in_proj_weight, device), cast(in_proj_bias, device), cast(out_weight, device),
      cast(out_bias, device), key_cache, value_cache, std::move(position), num_heads, kernel);
}

}  // namespace

Tensor self_attention_autocast_cpu(
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
    c10::string_view kernel) {
  return separate(
      at::kCPU, x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias, num_heads, causal,
      kernel);
}

Tensor self_attention_autocast_cuda(
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
    c10::string_view kernel) {
  return separate(
      at::kCUDA, x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias, num_heads, causal,
      kernel);
}

Tensor self_attention_packed_autocast_cpu(
    const Tensor& x,                     // [B, S, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    int64_t num_heads,
    bool causal,
    c10::string_view kernel) {
  return packed(at::kCPU, x, in_proj_weight, in_proj_bias, out_weight, out_bias, num_heads, causal, kernel);
}

Tensor self_attention_packed_autocast_cuda(
    const Tensor& x,                     // [B, S, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    int64_t num_heads,
    bool causal,
    c10::string_view kernel) {
  return packed(at::kCUDA, x, in_proj_weight, in_proj_bias, out_weight, out_bias, num_heads, causal, kernel);
}

Tensor self_attention_step_autocast_cpu(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    c10::SymInt position,
    int64_t num_heads,
    c10::string_view kernel) {
  return step(
      at::kCPU, x_t, in_proj_weight, in_proj_bias, out_weight, out_bias, key_cache, value_cache,
      std::move(position), num_heads, kernel);
}

Tensor self_attention_step_autocast_cuda(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    c10::SymInt position,
    int64_t num_heads,
    c10::string_view kernel) {
  return step(
      at::kCUDA, x_t, in_proj_weight, in_proj_bias, out_weight, out_bias, key_cache, value_cache,
      std::move(position), num_heads, kernel);
}

}  // namespace attnscope
