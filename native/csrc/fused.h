// What the files of level "fused" share.
#pragma once

#include <ATen/core/Tensor.h>

#include "attention.h"
#include "fused_kernels.h"

namespace attnscope::fused {

// The kernels for this type on this machine.
const Kernels& kernels_for(at::ScalarType type);

// float for the 16-bit types, otherwise the type itself.
at::ScalarType compute_type(at::ScalarType type);

// Contiguous memory without going through the dispatcher.
Tensor allocate(at::IntArrayRef sizes, at::ScalarType type);

// Whether these products are so small that calling the library costs more than it gains.
bool is_small(const Kernels& kernels, int64_t rows, int64_t embed_dim);

// Whether our own kernel takes this product, and its arguments. It reads rows that are dense, and as few as `is_small`.
bool small_linear(
    const Kernels& kernels,
    const Tensor& y,       // [R, N], rows may lie apart
    const Tensor& x,       // [R, E]
    const Tensor& weight,  // [N, E]
    const Tensor* bias,
    LinearArgs& args);

// y [R, N] = x [R, E] times weight [N, E] transposed, plus bias [N] if defined.
void linear(
    const Kernels& kernels,
    Tensor& y,             // [R, N], rows may lie apart
    const Tensor& x,       // [R, E], dense along E
    const Tensor& weight,  // [N, E]
    const Tensor* bias);

// c [M, N] (+)= a [M, K] times b [K, N].
void product(
    const Kernels& kernels,
    Tensor& c,        // [M, N], dense along N
    const Tensor& a,  // [M, K], any strides
    const Tensor& b,  // [K, N]
    bool add,
    bool small);

// [3, ...] columns: queries, keys and values lie side by side in one projection [R, 3E].
Layout layout_of(const Tensor& x, const Tensor& qkv, int64_t num_heads, bool causal);

}  // namespace attnscope::fused
