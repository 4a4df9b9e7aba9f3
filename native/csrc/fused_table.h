// The table of kernels for one vector type. Include last, under the instruction set's switches.
#pragma once

#include "fused_attention_backward.h"
#include "fused_linear.h"
#include "fused_step.h"

namespace attnscope::fused {
namespace {

template <class V, class X>
const Kernels* table() {
  static constexpr StepKernels step{V::width, step_attend<V, X>, step_merge<V, X>};
  if constexpr (std::is_same_v<X, typename V::Scalar>) {
    static constexpr Kernels kernels{query_block,    forward_scratch<V>, forward<V, X>, backward_scratch<V>,
                                     backward<V, X>, linear<V>,          product<V>,    column_sums<V, X>,
                                     &step};
    return &kernels;
  } else {
    static constexpr Kernels kernels{query_block,    forward_scratch<V>,  forward<V, X>, backward_scratch<V>,
                                     backward<V, X>, linear_narrow<V, X>, nullptr,       column_sums<V, X>,
                                     &step};
    return &kernels;
  }
}

template <class Float, class Double>
const Kernels* tables(Element element) {
  switch (element) {
    case Element::f32:
      return table<Float, float>();
    case Element::f64:
      return table<Double, double>();
    case Element::bf16:
      return table<Float, BFloat16>();
    case Element::f16:
      return table<Float, Half>();
  }
  return nullptr;
}

}  // namespace
}  // namespace attnscope::fused
