// Level "fused" on CUDA: the packed projection, one of ATen's own fused attentions, and the output projection. It makes
// no CUDA call of its own. Shapes as in attention.h.
//
// Each of the attentions is a level by name, `Kernel::flash`, `efficient` and `flash_for_cpu`, and which one `fused` stands
// for is decided before the forward pass, not in it: each keeps the softmax's log-sum-exp in a shape of its own, which
// shape inference must state without seeing the device, and the backward pass must be that of the forward pass
// even if the caller's choice of backends has changed by then. `flash_for_cpu` is what runs, and tests, the same code without a
// GPU; level "fused" on the CPU has kernels of its own.
#pragma once

#include "attention.h"

namespace attnscope {

// Whether this level is one of ATen's attentions.
constexpr bool is_sdpa(Kernel kernel) {
  return kernel == Kernel::flash || kernel == Kernel::efficient || kernel == Kernel::flash_for_cpu;
}

// The level that answers to what `_fused_sdp_choice` says, an at::SDPBackend: "aten" to all but the two it names.
Kernel level_of_choice(int64_t choice);

// What torch would take for attention over this projection, on the device of x: "flash", "efficient" or "aten". Follows the
// caller's torch.nn.attention.sdpa_kernel, and raises RuntimeError where that leaves nothing, as torch does.
Kernel choose_attention(
    const Tensor& x,  // [B, S, E]; sizes may be symbolic, E must not
    int64_t num_heads,
    bool causal,
    bool keep);       // whether a backward pass will follow

// The level that a call runs at: `asked`, but for "fused" on CUDA, which stands for one of ATen's attentions or,
// where none takes the input, for "aten".
Kernel level_for(
    Kernel asked,
    const Tensor& x,  // [B, S, E]; sizes may be symbolic, E must not
    int64_t num_heads,
    bool causal,
    bool keep);

// What is kept of the softmax, one float for each row, or double for double: flash [B, H, S]; efficient [B, H, S rounded up to
// a multiple of 32], the rest infinite; flash_for_cpu [B, H, S] with the heads of one position adjoining.
template <class Int>
struct Kept {
  std::array<Int, 3> sizes;
  std::array<Int, 3> strides;
};

template <class Int>
Kept<Int> kept_by(Kernel kernel, const Int& batch, const Int& num_heads, const Int& seq_len) {
  const Int length = kernel == Kernel::efficient ? (seq_len + 31) / 32 * 32 : seq_len;
  if (kernel == Kernel::flash_for_cpu) {
    return {{batch, num_heads, length}, {num_heads * length, Int(1), num_heads}};
  }
  return {{batch, num_heads, length}, {num_heads * length, length, Int(1)}};
}

// As `aten_forward`, with qkv as projected: [R, 3E] for a packed weight, [3, R, E] for separate ones; and p as `Kept`, or
// undefined unless `keep`.
Forward sdpa_forward(
    Kernel kernel,
    const Tensor& x,              // [B, S, E]
    at::TensorList in_weights,    // one [3E, E] or three [E, E]
    at::TensorList in_biases,     // none, one [3E] or three [E]
    const Tensor& out_weight,     // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal,
    bool keep);

// As `aten_backward`. Deterministic where ATen's attention is: as torch.use_deterministic_algorithms asks of it.
std::vector<Tensor> sdpa_backward(
    Kernel kernel,
    const Tensor& grad_y,       // [B, S, E], any strides
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Tensor& out_weight,   // [E, E]
    const Tensor& qkv,          // [R, 3E] or [3, R, E]
    const Tensor& p,            // see `Kept`
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    bool causal,
    const Wanted& wanted);

}  // namespace attnscope
