#include "packing.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "views.h"

namespace attnscope {
namespace {

bool has_plain_memory(const Tensor& t) {
  constexpr c10::DispatchKeySet tracing(
      {c10::DispatchKey::Python, c10::DispatchKey::Functionalize, c10::DispatchKey::FuncTorchBatched,
       c10::DispatchKey::FuncTorchGradWrapper});
  return (t.is_cpu() || t.is_cuda()) && !t.key_set().has_any(tracing) && t.has_storage();
}

}  // namespace

Tensor adjoining(const Tensor& first, const Tensor& second, const Tensor& third) {
  for (const Tensor* t : {&first, &second, &third}) {
    if (!has_plain_memory(*t) || !t->is_contiguous() || t->sizes() != first.sizes() ||
        t->storage().unsafeGetStorageImpl() != first.storage().unsafeGetStorageImpl()) {
      return {};
    }
  }
  const int64_t step = first.numel();
  if (second.storage_offset() != first.storage_offset() + step ||
      third.storage_offset() != second.storage_offset() + step) {
    return {};
  }
  if (first.dim() == 1) {
    return strided_view(first, {3 * step}, {1}, first.storage_offset());
  }
  const int64_t width = first.size(1);
  return strided_view(first, {3 * first.size(0), width}, {width, 1}, first.storage_offset());
}

Projections pack(
    const Tensor& q_weight,          // [E, E]
    const OptionalTensor& q_bias,    // [E]
    const Tensor& k_weight,          // [E, E]
    const OptionalTensor& k_bias,    // [E]
    const Tensor& v_weight,          // [E, E]
    const OptionalTensor& v_bias) {  // [E]
  Projections result;
  if (present(q_bias) || present(k_bias) || present(v_bias)) {
    for (const OptionalTensor* bias : {&q_bias, &k_bias, &v_bias}) {
      result.biases.push_back(
          present(*bias) ? **bias : at::zeros_symint({q_weight.sym_size(0)}, q_weight.options()));
    }
  }
  const Tensor weight = adjoining(q_weight, k_weight, v_weight);
  if (!weight.defined()) {
    result.weights = {q_weight, k_weight, v_weight};
    return result;
  }
  result.weights = {weight};
  if (!result.biases.empty()) {
    const Tensor bias = adjoining(result.biases[0], result.biases[1], result.biases[2]);
    result.biases = {bias.defined() ? bias : at::cat(result.biases)};
  }
  return result;
}

}  // namespace attnscope
