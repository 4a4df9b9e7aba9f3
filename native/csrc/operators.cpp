// The operator's schemas, once, its kernels for plain CPU and CUDA tensors, and all registrations. Autograd, autocast and
// shape inference are written in the files of those names.
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "checks.h"
#include "operators.h"
#include "packing.h"
#include "sdpa.h"
#include "views.h"

#if __has_include("build_key.h")
#include "build_key.h"  // written by the just-in-time build: the key of its cache entry
#endif
#ifndef ATTNSCOPE_BUILD_KEY
#define ATTNSCOPE_BUILD_KEY "ahead-of-time"
#endif

namespace attnscope {

namespace {

constexpr std::array<std::pair<std::string_view, Kernel>, 6> kernel_names{{
    {"auto", Kernel::fused},
    {"fused", Kernel::fused},
    {"aten", Kernel::aten},
    {"flash", Kernel::flash},
    {"efficient", Kernel::efficient},
    {"flash_for_cpu", Kernel::flash_for_cpu},
}};

}  // namespace

Kernel kernel_named(std::string_view name) {
  for (const auto& [known, kernel] : kernel_names) {
    if (known == name) {
      return kernel;
    }
  }
  TORCH_CHECK_VALUE(
      false, "self_attention: kernel is '", std::string(name), "'; expected one of: auto, aten, fused");
}

std::string name_of(Kernel kernel) {
  for (size_t i = 1; i < kernel_names.size(); ++i) {  // past "auto", which is another name for "fused"
    if (kernel_names[i].second == kernel) {
      return std::string(kernel_names[i].first);
    }
  }
  return {};
}

int64_t Wanted::bits() const {
  int64_t result = 0;
  int shift = 0;
  const auto add = [&](bool flag) { result |= int64_t{flag} << shift++; };
  add(x);
  for (const bool flag : in_weights) {
    add(flag);
  }
  for (const bool flag : in_biases) {
    add(flag);
  }
  add(out_weight);
  add(out_bias);
  return result;
}

Wanted Wanted::from_bits(int64_t bits, size_t parts) {
  int shift = 0;
  const auto next = [&] { return ((bits >> shift++) & 1) != 0; };
  Wanted wanted;
  wanted.x = next();
  for (size_t i = 0; i < parts; ++i) {
    wanted.in_weights.push_back(next());
  }
  for (size_t i = 0; i < parts; ++i) {
    wanted.in_biases.push_back(next());
  }
  wanted.out_weight = next();
  wanted.out_bias = next();
  return wanted;
}

namespace {

// The kernels call ATen for its arithmetic alone: below autograd, and with autocast's choice of types already made.
struct PlainCalls {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

// Only the inner operators can be given "fused" on another device: the others have resolved it by `level_for`.
void check_fused_here(const Tensor& x) {  // [B, S, E]
  TORCH_CHECK_VALUE(
      x.is_cpu(), "self_attention: kernel is 'fused' and x is on ", x.device().str(),
      "; expected the level that it stands for there: flash, efficient or aten");
}

Forward forward_at(
    Kernel kernel,
    const Tensor& x,                 // [B, S, E]
    at::TensorList in_weights,       // one [3E, E] or three [E, E]
    at::TensorList in_biases,        // none, one [3E] or three [E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal,
    bool keep) {
  if (kernel == Kernel::fused) {
    check_fused_here(x);
    return fused_forward(x, in_weights, in_biases, out_weight, out_bias, num_heads, causal, keep);
  }
  if (is_sdpa(kernel)) {
    return sdpa_forward(kernel, x, in_weights, in_biases, out_weight, out_bias, num_heads, causal, keep);
  }
  return aten_forward(x, in_weights, in_biases, out_weight, out_bias, num_heads, causal);
}

Tensor self_attention(
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
  check_arguments(x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias, num_heads);
  const Kernel level = level_for(kernel_named(kernel), x, num_heads, causal, false);
  const PlainCalls guard;
  const Projections in = pack(q_weight, q_bias, k_weight, k_bias, v_weight, v_bias);
  return forward_at(level, x, in.weights, in.biases, out_weight, out_bias, num_heads, causal, false).y;
}

Tensor self_attention_packed(
    const Tensor& x,                     // [B, S, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    int64_t num_heads,
    bool causal,
    c10::string_view kernel) {
  const at::TensorList biases = present(in_proj_bias) ? at::TensorList(*in_proj_bias) : at::TensorList();
  check_projections(x, in_proj_weight, biases, out_weight, out_bias, num_heads);
  const Kernel level = level_for(kernel_named(kernel), x, num_heads, causal, false);
  const PlainCalls guard;
  return forward_at(level, x, in_proj_weight, biases, out_weight, out_bias, num_heads, causal, false).y;
}

ForwardTuple self_attention_forward(
    const Tensor& x,                 // [B, S, E]
    at::TensorList in_weights,       // one [3E, E] or three [E, E]
    at::TensorList in_biases,        // none, one [3E] or three [E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal,
    c10::string_view kernel) {
  check_projections(x, in_weights, in_biases, out_weight, out_bias, num_heads);
  const Kernel level = kernel_named(kernel);
  const PlainCalls guard;
  Forward result = forward_at(level, x, in_weights, in_biases, out_weight, out_bias, num_heads, causal, true);
  return {std::move(result.y), std::move(result.qkv), std::move(result.p), std::move(result.c)};
}

std::vector<Tensor> self_attention_backward(
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
    c10::string_view kernel) {
  const Kernel level = kernel_named(kernel);
  check_backward(grad_y, x, in_weights, out_weight, qkv, p, c, num_heads, wanted, level);
  const PlainCalls guard;
  const Wanted flags = Wanted::from_bits(wanted, in_weights.size());
  if (level == Kernel::fused) {
    check_fused_here(x);
    return fused_backward(grad_y, x, in_weights, out_weight, qkv, p, c, num_heads, causal, flags);
  }
  if (is_sdpa(level)) {
    return sdpa_backward(level, grad_y, x, in_weights, out_weight, qkv, p, c, num_heads, causal, flags);
  }
  return aten_backward(grad_y, x, in_weights, out_weight, qkv, p, c, num_heads, flags);
}

// Any other backend (sparse, quantized, a device we have no kernels for): refused by name.
Tensor self_attention_elsewhere(
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
    c10::string_view /*kernel*/) {
  check_arguments(x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias, num_heads);
  TORCH_CHECK_VALUE(false, "self_attention: x is on ", x.device().str(), "; expected a dense tensor on cpu or cuda");
}

Tensor self_attention_packed_elsewhere(
    const Tensor& x,                     // [B, S, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    int64_t num_heads,
    bool /*causal*/,
    c10::string_view /*kernel*/) {
  const at::TensorList biases = present(in_proj_bias) ? at::TensorList(*in_proj_bias) : at::TensorList();
  check_projections(x, in_proj_weight, biases, out_weight, out_bias, num_heads);
  TORCH_CHECK_VALUE(false, "self_attention: x is on ", x.device().str(), "; expected a dense tensor on cpu or cuda");
}

std::string build_id() {
  return ATTNSCOPE_BUILD_KEY;
}

std::string attention_choice(const Tensor& x, int64_t num_heads, bool causal, bool keep) {  // [B, S, E]
  return name_of(choose_attention(x, num_heads, causal, keep));
}

std::string level_name_of_choice(int64_t choice) {
  return name_of(level_of_choice(choice));
}

}  // namespace

TORCH_LIBRARY(attnscope, m) {
  m.def(
      "self_attention(Tensor x, Tensor q_weight, Tensor? q_bias, Tensor k_weight, Tensor? k_bias, Tensor v_weight, "
      "Tensor? v_bias, Tensor out_weight, Tensor? out_bias, int num_heads, bool causal=False, str kernel=\"auto\") "
      "-> Tensor");
  m.def(
      "self_attention_packed(Tensor x, Tensor in_proj_weight, Tensor? in_proj_bias, Tensor out_weight, "
      "Tensor? out_bias, int num_heads, bool causal=False, str kernel=\"auto\") -> Tensor");
  // What autograd and a traced graph call: a forward pass that keeps what the backward pass reads, and that pass.
  m.def(
      "self_attention_forward(Tensor x, Tensor[] in_weights, Tensor[] in_biases, Tensor out_weight, "
      "Tensor? out_bias, int num_heads, bool causal, str kernel) -> (Tensor y, Tensor qkv, Tensor p, Tensor c)");
  m.def(
      "self_attention_backward(Tensor grad_y, Tensor x, Tensor[] in_weights, Tensor out_weight, Tensor qkv, "
      "Tensor p, Tensor c, int num_heads, bool causal, int wanted, str kernel) -> Tensor[]");
  // Decoding: one position more, written to the caches at `position`. Its `kernel` is called `level` here: torch.compile
  // hands the arguments of an operator that writes to some on by name, to a function whose own first one is `kernel`.
  m.def(
      "self_attention_step(Tensor x_t, Tensor in_proj_weight, Tensor? in_proj_bias, Tensor out_weight, "
      "Tensor? out_bias, Tensor(a!) key_cache, Tensor(b!) value_cache, SymInt position, int num_heads, "
      "str level=\"auto\") -> Tensor");
  m.def("build_id() -> str", build_id);
  // For tests and diagnosis: what torch answers on the device of x, and how an answer is read. See sdpa.h.
  m.def("attention_choice(Tensor x, int num_heads, bool causal, bool keep) -> str", attention_choice);
  m.def("level_of_choice(int choice) -> str", level_name_of_choice);
}

#define ATTNSCOPE_KERNELS(m)                                  \
  m.impl("self_attention", self_attention);                   \
  m.impl("self_attention_packed", self_attention_packed);     \
  m.impl("self_attention_forward", self_attention_forward);   \
  m.impl("self_attention_backward", self_attention_backward); \
  m.impl("self_attention_step", self_attention_step);

TORCH_LIBRARY_IMPL(attnscope, CPU, m) {
  ATTNSCOPE_KERNELS(m)
}

TORCH_LIBRARY_IMPL(attnscope, CUDA, m) {
  ATTNSCOPE_KERNELS(m)
}

TORCH_LIBRARY_IMPL(attnscope, Autograd, m) {
  m.impl("self_attention", self_attention_autograd);
  m.impl("self_attention_packed", self_attention_packed_autograd);
  m.impl("self_attention_step", self_attention_step_autograd);
}

TORCH_LIBRARY_IMPL(attnscope, FuncTorchBatched, m) {
  m.impl("self_attention", self_attention_composed);
  m.impl("self_attention_packed", self_attention_packed_composed);
}

TORCH_LIBRARY_IMPL(attnscope, AutocastCPU, m) {
  m.impl("self_attention", self_attention_autocast_cpu);
  m.impl("self_attention_packed", self_attention_packed_autocast_cpu);
  m.impl("self_attention_step", self_attention_step_autocast_cpu);
}

TORCH_LIBRARY_IMPL(attnscope, AutocastCUDA, m) {
  m.impl("self_attention", self_attention_autocast_cuda);
  m.impl("self_attention_packed", self_attention_packed_autocast_cuda);
  m.impl("self_attention_step", self_attention_step_autocast_cuda);
}

TORCH_LIBRARY_IMPL(attnscope, Meta, m) {
  m.impl("self_attention", self_attention_meta);
  m.impl("self_attention_packed", self_attention_packed_meta);
  m.impl("self_attention_forward", self_attention_forward_meta);
  m.impl("self_attention_backward", self_attention_backward_meta);
  m.impl("self_attention_step", self_attention_step_meta);
}

TORCH_LIBRARY_IMPL(attnscope, CompositeExplicitAutograd, m) {
  m.impl("self_attention", self_attention_elsewhere);
  m.impl("self_attention_packed", self_attention_packed_elsewhere);
  m.impl("self_attention_step", self_attention_step_elsewhere);
}

}  // namespace attnscope
