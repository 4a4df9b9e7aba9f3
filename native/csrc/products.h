// The products around attention, by ATen: what the levels composed from ATen calls share. Shapes as in attention.h.
#pragma once

#include "attention.h"

namespace attnscope {

// rows [R, E] times weight [N, E] transposed, plus bias [N]: [R, N].
Tensor linear(const Tensor& rows, const Tensor& weight, const Tensor* bias);

// Which of q, k, v need a gradient of their own: for x all, for a weight or bias those it belongs to.
std::array<bool, 3> needed_parts(const Wanted& wanted);

// Appends the wanted gradients of x and of the input projection. `parts` holds the gradients of q, k and v: side by side
// [R, 3E] for a packed weight, three of [R, E] for separate ones, of which those not needed may be undefined.
void append_projection_gradients(
    std::vector<Tensor>& grads,
    at::TensorList parts,       // one [R, 3E] or three [R, E], rows may lie apart
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Wanted& wanted);

// Appends those of the output projection.
void append_output_gradients(
    std::vector<Tensor>& grads,
    const Tensor& dy,  // [R, E]
    const Tensor& c,   // [R, E]
    const Wanted& wanted);

}  // namespace attnscope
