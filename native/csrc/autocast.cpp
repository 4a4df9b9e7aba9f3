// Autocast: every floating tensor goes to the region's type first, as it would for the products of the native layer.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "operators.h"

namespace attnscope {
namespace {

template <c10::DeviceType device, c10::DispatchKey key>
struct Autocast {
  static Tensor self_attention(
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
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(key);
    static const auto op = operator_named<SelfAttentionSignature>("attnscope::self_attention");
    return op.call(
        cast(x), cast(q_weight), cast(q_bias), cast(k_weight), cast(k_bias), cast(v_weight), cast(v_bias),
        cast(out_weight), cast(out_bias), num_heads, causal, kernel);
  }

  static Tensor self_attention_packed(
      const Tensor& x,                     // [B, S, E]
      const Tensor& in_proj_weight,        // [3E, E]
      const OptionalTensor& in_proj_bias,  // [3E]
      const Tensor& out_weight,            // [E, E]
      const OptionalTensor& out_bias,      // [E]
      int64_t num_heads,
      bool causal,
      c10::string_view kernel) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(key);
    static const auto op = operator_named<PackedSignature>("attnscope::self_attention_packed");
    return op.call(
        cast(x), cast(in_proj_weight), cast(in_proj_bias), cast(out_weight), cast(out_bias), num_heads, causal,
        kernel);
  }

 private:
  template <class T>
  static T cast(const T& tensor) {
    return at::autocast::cached_cast(at::autocast::get_autocast_dtype(device), tensor, device);
  }
};

using AutocastCpu = Autocast<c10::DeviceType::CPU, c10::DispatchKey::AutocastCPU>;
using AutocastCuda = Autocast<c10::DeviceType::CUDA, c10::DispatchKey::AutocastCUDA>;

}  // namespace

TORCH_LIBRARY_IMPL(attnscope, AutocastCPU, m) {
  m.impl("self_attention", AutocastCpu::self_attention);
  m.impl("self_attention_packed", AutocastCpu::self_attention_packed);
}

TORCH_LIBRARY_IMPL(attnscope, AutocastCUDA, m) {
  m.impl("self_attention", AutocastCuda::self_attention);
  m.impl("self_attention_packed", AutocastCuda::self_attention_packed);
}

}  // namespace attnscope
