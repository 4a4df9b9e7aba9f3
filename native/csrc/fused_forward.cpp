// The forward pass of level "fused" on the CPU: the packed projection, one kernel from it to the merged heads, and the
// output projection. Heads are never moved: the kernel reads them where the projection left them.
#include "fused.h"
#include "fused_parallel.h"
#include "views.h"

namespace attnscope {
namespace {

using fused::allocate;

// Multiplications below which a second thread does not pay.
constexpr int64_t parallel_work = 50'000;

// [B, S, E] -> [R, E], dense along E.
Tensor dense_rows(const Tensor& t) {
  const Tensor rows = as_rows(t);
  return rows.stride(1) == 1 || rows.size(1) == 1 ? rows : at::clone(rows, at::MemoryFormat::Contiguous);
}

// The columns of the projection [R, 3E] that the i-th weight fills: all, or a third.
Tensor part_columns(
    const Tensor& qkv,          // [R, 3E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    size_t i) {
  const int64_t width = in_weights[i].size(0);
  return strided_view(qkv, {qkv.size(0), width}, {qkv.stride(0), 1}, static_cast<int64_t>(i) * width);
}

const void* moved(const void* base, int64_t elements, int64_t element_size) {
  return base == nullptr ? nullptr : static_cast<const char*>(base) + elements * element_size;
}

// The projections to q, k and v as three of our own products, if they are small enough for that.
bool small_projections(
    const fused::Kernels& kernels,
    const Tensor& qkv,          // [R, 3E]
    const Tensor& rows,         // [R, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    at::TensorList in_biases,   // none, one [3E] or three [E]
    std::array<fused::LinearArgs, 3>& parts) {
  const int64_t embed_dim = rows.size(1);
  const auto size = static_cast<int64_t>(rows.element_size());
  for (size_t i = 0; i < in_weights.size(); ++i) {
    const Tensor* const bias = in_biases.empty() ? nullptr : &in_biases[i];
    if (!fused::small_linear(kernels, part_columns(qkv, in_weights, i), rows, in_weights[i], bias, parts[i])) {
      return false;
    }
  }
  for (size_t i = in_weights.size(); i < 3; ++i) {
    const int64_t skipped = static_cast<int64_t>(i) * embed_dim;
    parts[i] = parts[0];
    parts[i].weight = moved(parts[0].weight, skipped * parts[0].weight_stride, size);
    parts[i].bias = moved(parts[0].bias, skipped, size);
    parts[i].y = static_cast<char*>(parts[0].y) + skipped * size;
  }
  return true;
}

}  // namespace

Forward fused_forward(
    const Tensor& x,              // [B, S, E]
    at::TensorList in_weights,    // one [3E, E] or three [E, E]
    at::TensorList in_biases,     // none, one [3E] or three [E]
    const Tensor& out_weight,     // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal,
    bool keep) {
  const int64_t batch = x.size(0);
  const int64_t seq_len = x.size(1);
  const int64_t embed_dim = x.size(2);
  const int64_t count = batch * seq_len;
  const auto type = x.scalar_type();
  const fused::Kernels& kernels = fused::kernels_for(type);
  Forward result;
  result.qkv = allocate({count, 3 * embed_dim}, type);
  result.c = allocate({count, embed_dim}, type);
  result.y = allocate({batch, seq_len, embed_dim}, type);
  if (keep) {
    result.p = allocate({2, batch * num_heads, seq_len}, fused::compute_type(type));
  }
  if (count == 0) {
    return result;
  }
  fused::ForwardArgs args{
      fused::layout_of(x, result.qkv, num_heads, causal), result.c.data_ptr(), nullptr, nullptr};
  const int64_t heads = batch * num_heads;
  if (keep) {
    args.row_max = result.p.data_ptr();
    args.row_sum =
        static_cast<char*>(args.row_max) + heads * seq_len * static_cast<int64_t>(result.p.element_size());
  }
  const Tensor rows = dense_rows(x);
  const int64_t blocks = (seq_len + kernels.query_block - 1) / kernels.query_block;
  const size_t scratch = kernels.forward_scratch(args.in);
  std::array<fused::LinearArgs, 3> parts;
  if (small_projections(kernels, result.qkv, rows, in_weights, in_biases, parts)) {
    // One head after the other from the input to its merged values: one wait for all threads instead of two.
    const int64_t width = embed_dim / num_heads;
    const bool worth_it = count * embed_dim * (3 * embed_dim + seq_len) > 2 * parallel_work;
    fused::for_each(num_heads, worth_it, [&](int64_t head) {
      for (const fused::LinearArgs& part : parts) {
        kernels.linear(part, head * width, (head + 1) * width);
      }
      void* const memory = fused::thread_memory(scratch);
      for (int64_t item = 0; item < batch * blocks; ++item) {
        kernels.forward(args, item / blocks * num_heads + head, item % blocks, memory);
      }
    });
  } else {
    for (size_t i = 0; i < in_weights.size(); ++i) {
      Tensor columns = part_columns(result.qkv, in_weights, i);
      fused::linear(kernels, columns, rows, in_weights[i], in_biases.empty() ? nullptr : &in_biases[i]);
    }
    // The last queries see the most keys: begun first, they do not keep the others waiting.
    fused::for_each(heads * blocks, count * seq_len * embed_dim > parallel_work, [&](int64_t task) {
      kernels.forward(args, task % heads, blocks - 1 - task / heads, fused::thread_memory(scratch));
    });
  }
  Tensor y = strided_view(result.y, {count, embed_dim}, {embed_dim, 1}, 0);
  fused::linear(kernels, y, result.c, out_weight, present(out_bias) ? &*out_bias : nullptr);
  return result;
}

}  // namespace attnscope
