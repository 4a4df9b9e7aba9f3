#include "sdpa.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/mm.h>

#include <cmath>

#include "products.h"
#include "views.h"

namespace attnscope {
namespace {

struct Sizes {
  int64_t batch;
  int64_t seq_len;
  int64_t num_heads;
  int64_t head_dim;
  int64_t width;  // the head size as the attention gets it

  int64_t rows() const { return batch * seq_len; }
  int64_t embed_dim() const { return num_heads * head_dim; }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(head_dim)); }
};

// Flash attention on CUDA takes head sizes that are multiples of 8, and torch pads others with zeros, which change no
// product. On the CPU it takes all, and is padded too so that tests see it.
Sizes sizes_of(Kernel kernel, const Tensor& x, int64_t num_heads) {  // [B, S, E]
  const int64_t head_dim = x.size(2) / num_heads;
  const int64_t width = kernel == Kernel::efficient ? head_dim : (head_dim + 7) / 8 * 8;
  return {x.size(0), x.size(1), num_heads, head_dim, width};
}

// Queries, keys and values as they lie after the projection: side by side for a packed weight, [R, 3E]; one after the other
// for separate ones, [3, R, E], so that each product fills dense memory, where CUDA adds the bias in the same launch.
Tensor project(
    const Tensor& rows,         // [R, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    at::TensorList in_biases) { // none, one [3E] or three [E]
  if (in_weights.size() == 1) {
    return linear(rows, in_weights[0], in_biases.empty() ? nullptr : &in_biases[0]);
  }
  const int64_t count = rows.size(0);
  const int64_t embed_dim = rows.size(1);
  const Tensor qkv = at::empty({3, count, embed_dim}, rows.options());
  for (int64_t i = 0; i < 3; ++i) {
    Tensor one = strided_view(qkv, {count, embed_dim}, {embed_dim, 1}, i * count * embed_dim);
    const auto index = static_cast<size_t>(i);
    if (in_biases.empty()) {
      at::mm_out(one, rows, transposed(in_weights[index]));
    } else {
      at::addmm_out(one, in_biases[index], rows, transposed(in_weights[index]));
    }
  }
  return qkv;
}

// Contiguous heads of `head_dim` to heads of `width`, with zeros. The shape of the result says nothing: see `heads`.
Tensor padded(const Tensor& t, const Sizes& n) {  // the tensor, any shape
  if (n.width == n.head_dim) {
    return t;
  }
  const Tensor each = strided_view(t, {t.numel() / n.head_dim, n.head_dim}, {n.head_dim, 1}, t.storage_offset());
  return at::constant_pad_nd(each, {0, n.width - n.head_dim});
}

// [B, H, S, width] without a copy. `count` tensors of heads lie side by side in each row, and this one begins `offset`
// elements from the first.
Tensor heads(const Tensor& t, const Sizes& n, int64_t count, int64_t offset) {  // the tensor, contiguous
  const int64_t row = count * n.num_heads * n.width;
  return strided_view(
      t, {n.batch, n.num_heads, n.seq_len, n.width}, {n.seq_len * row, n.width, row, 1}, t.storage_offset() + offset);
}

// q, k and v.
std::array<Tensor, 3> split(const Tensor& qkv, const Sizes& n) {  // [R, 3E] or [3, R, E]
  const Tensor t = padded(qkv, n);
  const int64_t embed_dim = n.num_heads * n.width;
  const bool packed = qkv.dim() == 2;
  const int64_t count = packed ? 3 : 1;
  const int64_t step = packed ? embed_dim : n.rows() * embed_dim;
  return {heads(t, n, count, 0), heads(t, n, count, step), heads(t, n, count, 2 * step)};
}

// [B, H, S, width] -> [R, E], rows perhaps apart; a copy only where the heads of a position do not adjoin.
Tensor merged(const Tensor& t, const Sizes& n) {  // [B, H, S, width]
  const int64_t row = n.seq_len == 1 ? t.stride(0) : t.stride(2);
  const bool in_place = n.width == n.head_dim && (t.stride(3) == 1 || n.head_dim == 1) &&
      (n.num_heads == 1 || t.stride(1) == n.head_dim) && (n.batch == 1 || t.stride(0) == n.seq_len * row);
  if (in_place) {
    return strided_view(t, {n.rows(), n.embed_dim()}, {row, 1}, t.storage_offset());
  }
  const Tensor by_position = strided_view(
      t, {n.batch, n.seq_len, n.num_heads, n.head_dim}, {t.stride(0), t.stride(2), t.stride(1), t.stride(3)},
      t.storage_offset());
  const Tensor dense = at::clone(by_position, at::MemoryFormat::Contiguous);
  return strided_view(dense, {n.rows(), n.embed_dim()}, {n.embed_dim(), 1}, 0);
}

bool adjoin(const Tensor& left, const Tensor& right, int64_t width) {  // [R, E] each
  return left.storage().unsafeGetStorageImpl() == right.storage().unsafeGetStorageImpl() &&
      left.storage_offset() + width == right.storage_offset() && left.strides() == right.strides();
}

// Three of [R, E] as one [R, 3E]: a view where one attention wrote them so, else one copy.
Tensor side_by_side(at::TensorList parts) {
  const int64_t width = parts[0].size(1);
  if (adjoin(parts[0], parts[1], width) && adjoin(parts[1], parts[2], width)) {
    return strided_view(
        parts[0], {parts[0].size(0), 3 * width}, {parts[0].stride(0), 1}, parts[0].storage_offset());
  }
  return at::cat(parts, 1);
}

struct Attended {
  Tensor out;         // [B, H, S, width]
  Tensor logsumexp;   // see `Kept`
};

// No dropout anywhere: the seeds that go with it are never read.
Attended attend(Kernel kernel, const std::array<Tensor, 3>& qkv, const Sizes& n, bool causal, bool keep) {
  const auto& [q, k, v] = qkv;
  if (kernel == Kernel::flash_for_cpu) {
    const auto found =
        at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, std::nullopt, n.scale());
    return {std::get<0>(found), std::get<1>(found)};
  }
  if (kernel == Kernel::flash) {
    const auto found = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, causal, false, n.scale());
    return {std::get<0>(found), std::get<1>(found)};
  }
  const auto found =
      at::_scaled_dot_product_efficient_attention(q, k, v, std::nullopt, keep, 0.0, causal, n.scale());
  return {std::get<0>(found), std::get<1>(found)};
}

// dq, dk, dv [B, H, S, width], strided as the attention left them.
std::array<Tensor, 3> attend_backward(
    Kernel kernel,
    const Tensor& dout,       // [B, H, S, width]
    const std::array<Tensor, 3>& qkv,
    const Tensor& out,        // [B, H, S, width]
    const Tensor& logsumexp,  // see `Kept`
    const Sizes& n,
    bool causal) {
  const auto& [q, k, v] = qkv;
  if (kernel == Kernel::flash_for_cpu) {
    auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        dout, q, k, v, out, logsumexp, 0.0, causal, std::nullopt, n.scale());
    return {dq, dk, dv};
  }
  const auto& options = q.options();
  if (kernel == Kernel::flash) {
    // Types and sizes of the seeds as its forward pass gives them. No cumulative lengths: all sequences are equally long.
    const Tensor seed = at::empty({2}, options.dtype(at::kUInt64));
    const Tensor offset = at::empty({}, options.dtype(at::kUInt64));
    auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
        dout, q, k, v, out, logsumexp, Tensor(), Tensor(), n.seq_len, n.seq_len, 0.0, causal, seed, offset, n.scale());
    return {dq, dk, dv};
  }
  // One call further in than the forward pass: only there can the three gradients be had side by side, [B, S, 3, H, D],
  // which saves the copy that a packed weight's products would need. Tensors are [B, S, H, D] there.
  const auto by_position = [](const Tensor& t) {  // [B, H, S, D]
    return strided_view(
        t, {t.size(0), t.size(2), t.size(1), t.size(3)}, {t.stride(0), t.stride(2), t.stride(1), t.stride(3)},
        t.storage_offset());
  };
  const Tensor seed = at::empty({}, at::TensorOptions(at::kLong));
  constexpr int64_t top_left = 1;  // sdp::CustomMaskType, whose header needs CUDA's
  const auto found = at::_efficient_attention_backward(
      by_position(dout), by_position(q), by_position(k), by_position(v), std::nullopt, by_position(out), std::nullopt,
      std::nullopt, n.seq_len, n.seq_len, logsumexp, 0.0, seed, seed, causal ? top_left : 0, false, n.scale(),
      std::nullopt, std::nullopt, true);
  return {by_position(std::get<0>(found)), by_position(std::get<1>(found)), by_position(std::get<2>(found))};
}

// A tensor of these sizes and strides without memory: what torch's choice looks at.
Tensor without_memory(
    const Tensor& like,  // the tensor that decides device and type
    at::IntArrayRef sizes,
    at::IntArrayRef strides) {
  const auto key = like.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  c10::Storage storage(
      c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, like.device()), /*allocator=*/nullptr, false);
  Tensor t = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return t;
}

}  // namespace

Kernel level_of_choice(int64_t choice) {
  switch (static_cast<at::SDPBackend>(choice)) {
    case at::SDPBackend::flash_attention:
      return Kernel::flash;
    case at::SDPBackend::efficient_attention:
      return Kernel::efficient;
    default:
      return Kernel::aten;
  }
}

Kernel choose_attention(
    const Tensor& x,  // [B, S, E]
    int64_t num_heads,
    bool causal,
    bool keep) {
  const auto& context = at::globalContext();
  if (!context.userEnabledFlashSDP() && !context.userEnabledMemEfficientSDP()) {
    return Kernel::aten;
  }
  // Asked about one token: whether flash or memory-efficient attention takes an input depends on neither B nor S, so that the
  // answer holds for every length of a traced graph; and cuDNN's, whose saved tensors differ between releases, takes no
  // single token. Of q, k and v one is asked about: they differ only in where they begin, which is aligned as q is.
  const int64_t embed_dim = x.sym_size(2).guard_int(__FILE__, __LINE__);
  const int64_t head_dim = embed_dim / num_heads;
  const Tensor q = without_memory(x, {1, num_heads, 1, head_dim}, {3 * embed_dim, head_dim, 3 * embed_dim, 1});
  // Some attentions have a backward pass for fewer head sizes than they have a forward pass for.
  const at::AutoGradMode with_gradients(keep);
  if (keep) {
    q.unsafeGetTensorImpl()->set_requires_grad(true);
  }
  // To the device's kernel directly: tracing must neither see the question nor be handed this tensor.
  const auto key = x.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  return level_of_choice(at::_ops::_fused_sdp_choice::redispatch(
      c10::DispatchKeySet(key), q, q, q, std::nullopt, 0.0, causal, std::nullopt, false));
}

Kernel level_for(
    Kernel asked,
    const Tensor& x,  // [B, S, E]
    int64_t num_heads,
    bool causal,
    bool keep) {
  if (asked != Kernel::fused || !x.is_cuda()) {
    return asked;
  }
  // Not yet checked where gradients are wanted: what does not fit is refused by name at any level.
  if (x.dim() != 3 || num_heads <= 0 || x.sym_size(2) % num_heads != 0) {
    return Kernel::aten;
  }
  // Traced for a device that is not here, or AMD's, where nothing of this has ever run: what runs everywhere.
  if (!at::globalContext().hasCUDA() || at::globalContext().hasROCM()) {
    return Kernel::aten;
  }
  // Their grids count batches and heads in 16 bits.
  constexpr int64_t most = 65535;
  if (num_heads > most || x.sym_size(0).maybe_as_int().value_or(0) > most) {
    return Kernel::aten;
  }
  return choose_attention(x, num_heads, causal, keep);
}

Forward sdpa_forward(
    Kernel kernel,
    const Tensor& x,              // [B, S, E]
    at::TensorList in_weights,    // one [3E, E] or three [E, E]
    at::TensorList in_biases,     // none, one [3E] or three [E]
    const Tensor& out_weight,     // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads,
    bool causal,
    bool keep) {
  const Sizes n = sizes_of(kernel, x, num_heads);
  const int64_t embed_dim = n.embed_dim();
  Forward result;
  if (n.rows() == 0) {
    const auto options = x.options();
    const auto kept = kept_by<int64_t>(kernel, n.batch, num_heads, n.seq_len);
    const auto type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    result.y = at::empty(x.sizes(), options);
    result.qkv = in_weights.size() == 1 ? at::empty({0, 3 * embed_dim}, options) : at::empty({3, 0, embed_dim}, options);
    result.p = at::empty_strided(kept.sizes, kept.strides, options.dtype(type));
    result.c = at::empty({0, embed_dim}, options);
    return result;
  }
  result.qkv = project(as_rows(x), in_weights, in_biases);
  Attended attended = attend(kernel, split(result.qkv, n), n, causal, keep);
  result.c = merged(attended.out, n).contiguous();
  if (keep) {
    result.p = std::move(attended.logsumexp);
  }
  const Tensor rows = linear(result.c, out_weight, present(out_bias) ? &*out_bias : nullptr);
  result.y = strided_view(rows, x.sizes(), {n.seq_len * embed_dim, embed_dim, 1}, 0);
  return result;
}

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
    const Wanted& wanted) {
  const Sizes n = sizes_of(kernel, x, num_heads);
  if (n.rows() == 0) {
    return zero_gradients(x, in_weights, wanted);
  }
  std::vector<Tensor> grads;
  grads.reserve(9);
  const Tensor dy = as_rows(grad_y);
  const auto needed = needed_parts(wanted);
  if (needed[0] || needed[1] || needed[2]) {
    const Tensor dc = heads(padded(at::mm(dy, out_weight), n), n, 1, 0);
    const Tensor out = heads(padded(c.contiguous(), n), n, 1, 0);
    const auto found = attend_backward(kernel, dc, split(qkv.contiguous(), n), out, p, n, causal);
    std::vector<Tensor> parts;
    for (size_t i = 0; i < 3; ++i) {
      parts.push_back(needed[i] ? merged(found[i], n) : Tensor());
    }
    if (in_weights.size() == 1) {
      parts = {side_by_side(parts)};
    }
    append_projection_gradients(grads, parts, x, in_weights, wanted);
  }
  append_output_gradients(grads, dy, c, wanted);
  return grads;
}

}  // namespace attnscope
