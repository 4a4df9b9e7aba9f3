// From the nine tensors of the function form to one packed projection, where memory allows it.
#pragma once

#include "attention.h"

namespace attnscope {

struct Projections {
  std::vector<Tensor> weights;  // one [3E, E] or three [E, E]
  std::vector<Tensor> biases;   // none, one [3E] or three [E]
};

// Three dense tensors [N, ...] that follow each other in one storage, seen as one [3N, ...] without a copy; otherwise,
// or under tracing, where addresses mean nothing, an undefined tensor.
Tensor adjoining(const Tensor& first, const Tensor& second, const Tensor& third);

// Packed where the weights adjoin, as the slices of nn.MultiheadAttention's in_proj_weight do. A bias that is absent
// beside one that is present counts as zero.
Projections pack(
    const Tensor& q_weight,          // [E, E]
    const OptionalTensor& q_bias,    // [E]
    const Tensor& k_weight,          // [E, E]
    const OptionalTensor& k_bias,    // [E]
    const Tensor& v_weight,          // [E, E]
    const OptionalTensor& v_bias);   // [E]

}  // namespace attnscope
