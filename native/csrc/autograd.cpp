// Autograd: which pass runs when a gradient is wanted, and how its results reach the nine (or five) arguments.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "checks.h"
#include "operators.h"
#include "packing.h"
#include "sdpa.h"
#include "views.h"

namespace attnscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool wants_history(const Tensor& t) {
  return t.defined() && at::GradMode::is_enabled() && t.requires_grad();
}

bool wants_history(const OptionalTensor& t) {
  return t.has_value() && wants_history(*t);
}

// A tangent of forward mode, or a value inside a transform of torch.func: neither can pass through a C++ Function.
bool transformed(const Tensor& t) {
  return t.defined() && (t.key_set().has(c10::DispatchKey::FuncTorchGradWrapper) || t._fw_grad(0).defined());
}

bool transformed(const OptionalTensor& t) {
  return t.has_value() && transformed(*t);
}

Tensor or_undefined(const OptionalTensor& t) {
  return t.has_value() ? *t : Tensor();
}

// The forward pass below autograd; keeps `inputs` and what the pass made for the way back.
Tensor forward_and_keep(
    AutogradContext* ctx,
    variable_list inputs,            // the tensor arguments, in order
    const Projections& in,
    const Tensor& x,                 // [B, S, E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal,
    c10::string_view kernel) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  static const auto op = operator_named<ForwardSignature>("attnscope::self_attention_forward");
  // Decided here, where the device is still known: under tracing the kernels below see none.
  const std::string level = name_of(level_for(kernel_named(kernel), x, num_heads, causal, true));
  auto [y, qkv, p, c] = op.call(x, in.weights, in.biases, out_weight, out_bias, num_heads, causal, level);
  inputs.insert(inputs.end(), {qkv, p, c});
  ctx->save_for_backward(std::move(inputs));
  ctx->saved_data["num_heads"] = num_heads;
  ctx->saved_data["causal"] = causal;
  ctx->saved_data["kernel"] = level;
  ctx->set_materialize_grads(false);
  return y;
}

// Where the tensors of either form stand among its arguments.
struct Places {
  std::vector<size_t> weights;
  std::vector<size_t> biases;
  size_t out_weight;
  size_t out_bias;
};

const Places& places(size_t inputs) {
  static const Places separate{{1, 3, 5}, {2, 4, 6}, 7, 8};
  static const Places packed{{1}, {2}, 3, 4};
  return inputs == 9 ? separate : packed;
}

// The second-order case: differentiate the layer's ATen formulation, keeping the graph. Taking gradients with respect
// to aliases keeps hooks on the caller's own tensors from firing twice.
void differentiable_gradients(
    const Tensor& grad_y,         // [B, S, E]
    const variable_list& inputs,  // the tensor arguments, in order
    const std::vector<bool>& wanted,
    int64_t num_heads,
    bool causal,
    variable_list& grads) {
  const Places& at = places(inputs.size());
  variable_list aliases;
  variable_list targets;
  for (size_t i = 0; i < inputs.size(); ++i) {
    aliases.push_back(inputs[i].defined() ? inputs[i].view_as(inputs[i]) : Tensor());
    if (wanted[i]) {
      targets.push_back(aliases[i]);
    }
  }
  variable_list weights;
  variable_list biases;
  bool any_bias = false;
  for (size_t i = 0; i < at.weights.size(); ++i) {
    weights.push_back(aliases[at.weights[i]]);
    const Tensor& bias = aliases[at.biases[i]];
    any_bias = any_bias || bias.defined();
    biases.push_back(bias.defined() ? bias : weights.back().new_zeros({weights.back().size(0)}));
  }
  const Tensor& out_bias = aliases[at.out_bias];
  const Tensor y = differentiable_forward(
      aliases[0], weights, any_bias ? at::TensorList(biases) : at::TensorList(), aliases[at.out_weight],
      out_bias.defined() ? OptionalTensor(out_bias) : OptionalTensor(), num_heads, causal);
  const variable_list found = torch::autograd::grad({y}, targets, {grad_y}, true, true, true);
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (wanted[i]) {
      grads[i] = found[next++];
    }
  }
}

bool uniform(const std::vector<bool>& wanted, const std::vector<size_t>& at) {
  return wanted[at[0]] == wanted[at[1]] && wanted[at[0]] == wanted[at[2]];
}

// The first-order case: the hand-derived pass. The slices of one packed weight get theirs from one product.
void hand_derived_gradients(
    const Tensor& grad_y,           // [B, S, E]
    const variable_list& inputs,    // the tensor arguments, in order
    const Tensor& qkv,              // see `Forward`
    const Tensor& p,                // see `Forward`
    const Tensor& c,                // [R, E]
    const std::vector<bool>& wanted,
    int64_t num_heads,
    bool causal,
    const std::string& kernel,
    variable_list& grads) {
  const Places& at = places(inputs.size());
  variable_list weights;
  for (const size_t i : at.weights) {
    weights.push_back(inputs[i]);
  }
  bool joined = false;
  if (weights.size() == 3 && uniform(wanted, at.weights)) {
    const Tensor packed = adjoining(weights[0], weights[1], weights[2]);
    joined = packed.defined();
    if (joined) {
      weights = {packed};
    }
  }
  Wanted want;
  want.x = wanted[0];
  want.out_weight = wanted[at.out_weight];
  want.out_bias = wanted[at.out_bias];
  want.in_weights.assign(weights.size(), false);
  want.in_biases.assign(weights.size(), false);
  for (size_t i = 0; i < at.weights.size(); ++i) {
    const size_t part = joined ? 0 : i;
    want.in_weights[part] = want.in_weights[part] || wanted[at.weights[i]];
    want.in_biases[part] = want.in_biases[part] || wanted[at.biases[i]];
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  static const auto op = operator_named<BackwardSignature>("attnscope::self_attention_backward");
  const auto found = op.call(
      grad_y, inputs[0], weights, inputs[at.out_weight], qkv, p, c, num_heads, causal, want.bits(), kernel);
  size_t next = 0;
  const auto take = [&](size_t slot, bool flag) {
    if (flag) {
      grads[slot] = found[next++];
    }
  };
  const auto take_parts = [&](const std::vector<size_t>& slots, const std::vector<bool>& flags) {
    if (!joined) {
      for (size_t i = 0; i < slots.size(); ++i) {
        take(slots[i], flags[i]);
      }
    } else if (flags[0]) {
      const Tensor& whole = found[next++];
      const int64_t length = whole.size(0) / 3;
      for (size_t i = 0; i < slots.size(); ++i) {
        if (wanted[slots[i]]) {
          grads[slots[i]] = whole.narrow(0, length * static_cast<int64_t>(i), length);
        }
      }
    }
  };
  take(0, want.x);
  take_parts(at.weights, want.in_weights);
  take_parts(at.biases, want.in_biases);
  take(at.out_weight, want.out_weight);
  take(at.out_bias, want.out_bias);
}

// Three more undefined results stand for num_heads, causal and kernel.
variable_list backward_of(AutogradContext* ctx, const variable_list& grad_outputs) {
  variable_list inputs = ctx->get_saved_variables();
  const Tensor c = inputs.back();
  inputs.pop_back();
  const Tensor p = inputs.back();
  inputs.pop_back();
  const Tensor qkv = inputs.back();
  inputs.pop_back();
  variable_list grads(inputs.size() + 3);
  const Tensor& grad_y = grad_outputs[0];
  if (!grad_y.defined()) {
    return grads;
  }
  std::vector<bool> wanted;
  size_t edge = 0;
  for (const Tensor& input : inputs) {
    wanted.push_back(input.defined() && ctx->needs_input_grad(edge++));
  }
  const int64_t num_heads = ctx->saved_data["num_heads"].toInt();
  if (at::GradMode::is_enabled()) {
    differentiable_gradients(grad_y, inputs, wanted, num_heads, ctx->saved_data["causal"].toBool(), grads);
  } else {
    const std::string& kernel = ctx->saved_data["kernel"].toStringRef();
    hand_derived_gradients(
        grad_y, inputs, qkv, p, c, wanted, num_heads, ctx->saved_data["causal"].toBool(), kernel, grads);
  }
  return grads;
}

struct SelfAttention : torch::autograd::Function<SelfAttention> {
  static Tensor forward(
      AutogradContext* ctx,
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
    const variable_list inputs{
        x,        q_weight, or_undefined(q_bias), k_weight, or_undefined(k_bias),
        v_weight, or_undefined(v_bias), out_weight, or_undefined(out_bias)};
    const Projections in = pack(q_weight, q_bias, k_weight, k_bias, v_weight, v_bias);
    return forward_and_keep(ctx, inputs, in, x, out_weight, out_bias, num_heads, causal, kernel);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grad_outputs) {
    return backward_of(ctx, grad_outputs);
  }
};

struct SelfAttentionPacked : torch::autograd::Function<SelfAttentionPacked> {
  static Tensor forward(
      AutogradContext* ctx,
      const Tensor& x,                     // [B, S, E]
      const Tensor& in_proj_weight,        // [3E, E]
      const OptionalTensor& in_proj_bias,  // [3E]
      const Tensor& out_weight,            // [E, E]
      const OptionalTensor& out_bias,      // [E]
      int64_t num_heads,
      bool causal,
      c10::string_view kernel) {
    const variable_list inputs{x, in_proj_weight, or_undefined(in_proj_bias), out_weight, or_undefined(out_bias)};
    Projections in{{in_proj_weight}, {}};
    if (present(in_proj_bias)) {
      in.biases.push_back(*in_proj_bias);
    }
    return forward_and_keep(ctx, inputs, in, x, out_weight, out_bias, num_heads, causal, kernel);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grad_outputs) {
    return backward_of(ctx, grad_outputs);
  }
};

// Three weights need not be packed: `differentiable_forward` joins them.
Projections unpacked(
    const Tensor& q_weight,          // [E, E]
    const OptionalTensor& q_bias,    // [E]
    const Tensor& k_weight,          // [E, E]
    const OptionalTensor& k_bias,    // [E]
    const Tensor& v_weight,          // [E, E]
    const OptionalTensor& v_bias) {  // [E]
  Projections result{{q_weight, k_weight, v_weight}, {}};
  if (present(q_bias) || present(k_bias) || present(v_bias)) {
    for (const OptionalTensor* bias : {&q_bias, &k_bias, &v_bias}) {
      result.biases.push_back(present(*bias) ? **bias : q_weight.new_zeros_symint({q_weight.sym_size(0)}));
    }
  }
  return result;
}

}  // namespace

Tensor self_attention_composed(
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
  kernel_named(kernel);  // refuses a name that does not exist
  const Projections in = unpacked(q_weight, q_bias, k_weight, k_bias, v_weight, v_bias);
  return differentiable_forward(x, in.weights, in.biases, out_weight, out_bias, num_heads, causal);
}

Tensor self_attention_packed_composed(
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
  kernel_named(kernel);  // refuses a name that does not exist
  return differentiable_forward(x, in_proj_weight, biases, out_weight, out_bias, num_heads, causal);
}

Tensor self_attention_autograd(
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
  if (transformed(x) || transformed(q_weight) || transformed(q_bias) || transformed(k_weight) ||
      transformed(k_bias) || transformed(v_weight) || transformed(v_bias) || transformed(out_weight) ||
      transformed(out_bias)) {
    return self_attention_composed(
        x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias, num_heads, causal, kernel);
  }
  if (wants_history(x) || wants_history(q_weight) || wants_history(q_bias) || wants_history(k_weight) ||
      wants_history(k_bias) || wants_history(v_weight) || wants_history(v_bias) || wants_history(out_weight) ||
      wants_history(out_bias)) {
    check_arguments(x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias, num_heads);
    return SelfAttention::apply(
        x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias, num_heads, causal, kernel);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  static const auto op = operator_named<SelfAttentionSignature>("attnscope::self_attention");
  return op.call(
      x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias, num_heads, causal, kernel);
}

Tensor self_attention_packed_autograd(
    const Tensor& x,                     // [B, S, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    int64_t num_heads,
    bool causal,
    c10::string_view kernel) {
  if (transformed(x) || transformed(in_proj_weight) || transformed(in_proj_bias) || transformed(out_weight) ||
      transformed(out_bias)) {
    return self_attention_packed_composed(
        x, in_proj_weight, in_proj_bias, out_weight, out_bias, num_heads, causal, kernel);
  }
  if (wants_history(x) || wants_history(in_proj_weight) || wants_history(in_proj_bias) ||
      wants_history(out_weight) || wants_history(out_bias)) {
    return SelfAttentionPacked::apply(
        x, in_proj_weight, in_proj_bias, out_weight, out_bias, num_heads, causal, kernel);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  static const auto op = operator_named<PackedSignature>("attnscope::self_attention_packed");
  return op.call(x, in_proj_weight, in_proj_bias, out_weight, out_bias, num_heads, causal, kernel);
}

}  // namespace attnscope
