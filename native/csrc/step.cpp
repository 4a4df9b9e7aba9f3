// Decoding: one new position of each sequence against a cache of keys and values. Level "fused", and what the dispatcher
// calls; the schema and the registrations are in operators.cpp.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>

#include "checks.h"
#include "fused.h"
#include "fused_phases.h"
#include "operators.h"
#include "views.h"

namespace attnscope {
namespace {

// A cache whose rows are dense and which holds each number in a place of its own.
void check_memory(const char* name, const Tensor& cache) {  // [B, H, max_len, D]
  bool dense = cache.stride(3) == 1 || cache.size(3) == 1;
  for (int64_t i = 0; i < 3; ++i) {
    dense = dense && (cache.stride(i) >= cache.size(3) || cache.size(i) == 1);
  }
  TORCH_CHECK_VALUE(
      dense, "self_attention: ", name, " (shape ", cache.sizes(), ") has strides ", cache.strides(),
      "; expected memory of its own for every number, dense along the last dimension");
}

// Multiplications below which a second thread does not pay.
constexpr int64_t parallel_work = 100'000;
constexpr int64_t piece_length = 512;  // positions; a multiple of the kernels' blocks, so that pieces change no sum
constexpr int64_t column_chunk = 32;  // of an output: small, so that no thread waits long for another

int64_t pieces(int64_t total, int64_t size) {
  return (total + size - 1) / size;
}

// Whether the step's own products take these rows: beyond that the library's pay off.
bool takes_rows(const fused::Kernels& kernels, int64_t rows, int64_t embed_dim) {
  return rows <= 2 || fused::is_small(kernels, rows, embed_dim) || (kernels.product == nullptr && rows <= 4);
}

bool is_dense(const Tensor& t) {  // [N, E] or [N]
  return t.stride(-1) == 1 || t.size(-1) == 1;
}

fused::Cache cache_of(const Tensor& cache) {  // [B, H, max_len, D]
  return {cache.data_ptr(), cache.stride(0), cache.stride(1), cache.stride(2)};
}

char* at_element(void* base, int64_t elements, int64_t size) {
  return static_cast<char*>(base) + elements * size;
}

// One step's sizes and memory, and its pieces of work.
struct FusedStep {
  const fused::Kernels& kernels;
  int64_t size;  // of an element
  int64_t batch;
  int64_t embed_dim;
  int64_t head_dim;
  int64_t position;
  fused::StepArgs args;
  fused::LinearArgs in;   // of the packed projection; y is the queries'
  fused::LinearArgs out;

  // Queries (0), keys (1) or values (2) of features [begin, end) of one head: new keys and values go where they stay.
  void project(int64_t part, int64_t head, int64_t begin, int64_t end) const {
    fused::LinearArgs o = in;
    const int64_t first = part * embed_dim + head * head_dim;
    o.weight = static_cast<const char*>(in.weight) + first * in.weight_stride * size;
    o.bias = in.bias == nullptr ? nullptr : static_cast<const char*>(in.bias) + first * size;
    if (part == 0) {
      o.y = at_element(in.y, head * head_dim, size);
    } else {
      const fused::Cache& cache = part == 1 ? args.keys : args.values;
      o.y = at_element(cache.data, head * cache.head_stride + position * cache.row_stride, size);
      o.y_stride = cache.item_stride;
    }
    kernels.linear(o, begin, end);
  }

  // The new keys and values of one head of one item, which a library product left beside its queries, into the caches.
  void store(const void* projected, int64_t head) const {  // [B, 3E]
    const int64_t item = head / args.num_heads;
    const int64_t of_item = head % args.num_heads;
    for (int64_t part = 1; part < 3; ++part) {
      const fused::Cache& cache = part == 1 ? args.keys : args.values;
      std::memcpy(
          at_element(cache.data, item * cache.item_stride + of_item * cache.head_stride + position * cache.row_stride, size),
          static_cast<const char*>(projected) + ((3 * item + part) * embed_dim + of_item * head_dim) * size,
          static_cast<size_t>(head_dim * size));
    }
  }

  void attend(int64_t head) const {
    for (int64_t piece = 0; piece < args.piece_count; ++piece) {
      kernels.step->attend(args, head, piece);
    }
    kernels.step->merge(args, head);
  }
};

Tensor run_step(
    Kernel kernel,
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    int64_t position,
    int64_t num_heads) {
  check_memory("key_cache", key_cache);
  check_memory("value_cache", value_cache);
  TORCH_CHECK_VALUE(
      key_cache.const_data_ptr() != value_cache.const_data_ptr() || key_cache.numel() == 0,
      "self_attention: value_cache lies in key_cache's memory; expected memory of its own");
  // On CUDA both levels are composed of ATen calls: a query of one row gains little from its fused attention.
  const auto& run = kernel != Kernel::aten && x_t.is_cpu() ? fused_step : aten_step;
  return run(
      x_t, in_proj_weight, in_proj_bias, out_weight, out_bias, key_cache, value_cache, position, num_heads);
}

}  // namespace

Tensor fused_step(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    int64_t position,
    int64_t num_heads) {
  const int64_t batch = x_t.size(0);
  const int64_t embed_dim = x_t.size(2);
  const auto type = x_t.scalar_type();
  const fused::Kernels& kernels = fused::kernels_for(type);
  Tensor y = fused::allocate({batch, 1, embed_dim}, type);
  if (batch == 0) {
    return y;
  }
  const auto size = static_cast<int64_t>(y.element_size());
  const int64_t head_dim = embed_dim / num_heads;
  const int64_t heads = batch * num_heads;
  const int64_t length = position + 1;
  const int64_t piece_count = pieces(length, piece_length);
  const Tensor* const in_bias = present(in_proj_bias) ? &*in_proj_bias : nullptr;
  const Tensor* const bias = present(out_bias) ? &*out_bias : nullptr;
  const Tensor x = is_dense(x_t) && (batch == 1 || x_t.stride(0) >= embed_dim) ? x_t : x_t.contiguous();
  const bool own = takes_rows(kernels, batch, embed_dim) && is_dense(in_proj_weight) && is_dense(out_weight) &&
      (in_bias == nullptr || is_dense(*in_bias)) && (bias == nullptr || is_dense(*bias));

  Tensor projected;  // [B, 3E]
  Tensor merged;     // [B, E]
  if (!own) {
    projected = fused::allocate({batch, 3 * embed_dim}, type);
    merged = fused::allocate({batch, embed_dim}, type);
    fused::linear(kernels, projected, as_rows(x), in_proj_weight, in_bias);
  }
  // All that lives no longer than the call, in memory that this thread keeps. No product of others runs until it is done
  // with: they may ask for this memory too.
  const int64_t compute_size = type == at::kDouble ? 8 : 4;
  const int64_t slot = (head_dim + kernels.step->width - 1) / kernels.step->width * kernels.step->width + 2;
  const int64_t piece_bytes = heads * piece_count * slot * compute_size;
  const int64_t own_bytes = own ? 2 * batch * embed_dim * size : 0;
  void* const memory = fused::thread_memory(static_cast<size_t>(piece_bytes + own_bytes));
  void* const q = own ? at_element(memory, piece_bytes, 1) : projected.data_ptr();
  void* const c = own ? at_element(q, batch * embed_dim, size) : merged.data_ptr();
  const int64_t q_stride = own ? embed_dim : 3 * embed_dim;

  const FusedStep step{
      kernels, size, batch, embed_dim, head_dim, position,
      {q, q_stride, cache_of(key_cache), cache_of(value_cache), length, num_heads, head_dim, piece_count,
       piece_length, memory, c, embed_dim},
      {x.const_data_ptr(), x.stride(0), in_proj_weight.const_data_ptr(), in_proj_weight.stride(0),
       in_bias != nullptr ? in_bias->const_data_ptr() : nullptr, q, q_stride, batch, embed_dim},
      {c, embed_dim, out_weight.const_data_ptr(), out_weight.stride(0),
       bias != nullptr ? bias->const_data_ptr() : nullptr, y.data_ptr(), embed_dim, batch, embed_dim}};
  const int64_t attention_work = 2 * batch * length * embed_dim;
  const auto attend = [&](int64_t task) { kernels.step->attend(step.args, task / piece_count, task % piece_count); };
  const auto merge = [&](int64_t head) { kernels.step->merge(step.args, head); };

  if (!own) {
    const auto store = [&](int64_t head) { step.store(q, head); };
    std::array<fused::Phase, 3> phases{
        fused::Phase(heads, store), fused::Phase(heads * piece_count, attend), fused::Phase(heads, merge)};
    fused::run_phases(phases, attention_work > parallel_work);
    Tensor rows = strided_view(y, {batch, embed_dim}, {embed_dim, 1}, 0);
    fused::linear(kernels, rows, merged, out_weight, bias);
    return y;
  }

  const bool worth_it = 4 * batch * embed_dim * embed_dim + attention_work > parallel_work;
  const int64_t chunk = worth_it ? column_chunk : embed_dim;
  const auto project_out = [&](int64_t i) {
    kernels.linear(step.out, i * chunk, std::min(embed_dim, (i + 1) * chunk));
  };
  const int64_t chunks = pieces(embed_dim, chunk);
  if (num_heads > 1 && (piece_count == 1 || num_heads >= 8)) {
    // One head after the other from the token to its weighted values.
    const auto whole_head = [&](int64_t head) {
      for (int64_t part = 0; part < 3; ++part) {
        step.project(part, head, 0, head_dim);
      }
      for (int64_t item = 0; item < batch; ++item) {
        step.attend(item * num_heads + head);
      }
    };
    std::array<fused::Phase, 2> phases{fused::Phase(num_heads, whole_head), fused::Phase(chunks, project_out)};
    fused::run_phases(phases, worth_it);
    return y;
  }
  const int64_t per_head = pieces(head_dim, column_chunk);
  const auto project_in = [&](int64_t task) {
    const int64_t begin = task % per_head * column_chunk;
    const int64_t head = task / per_head;
    step.project(head / num_heads, head % num_heads, begin, std::min(head_dim, begin + column_chunk));
  };
  std::array<fused::Phase, 4> phases{
      fused::Phase(3 * num_heads * per_head, project_in), fused::Phase(heads * piece_count, attend), fused::Phase(heads, merge),
      fused::Phase(chunks, project_out)};
  fused::run_phases(phases, worth_it);
  return y;
}

Tensor self_attention_step(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    c10::SymInt position,
    int64_t num_heads,
    c10::string_view kernel) {
  check_step(
      x_t, in_proj_weight, in_proj_bias, out_weight, out_bias, key_cache, value_cache, position, num_heads);
  const Kernel level = kernel_named(kernel);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return run_step(
      level, x_t, in_proj_weight, in_proj_bias, out_weight, out_bias, key_cache, value_cache,
      position.guard_int(__FILE__, __LINE__), num_heads);
}

Tensor self_attention_step_meta(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    c10::SymInt position,
    int64_t num_heads,
    c10::string_view kernel) {
  check_step(
      x_t, in_proj_weight, in_proj_bias, out_weight, out_bias, key_cache, value_cache, position, num_heads);
  kernel_named(kernel);
  return at::empty_symint(x_t.sym_sizes(), x_t.options());
}

// Decoding is inference: nothing is recorded, and a gradient that someone waits for is refused rather than lost.
Tensor self_attention_step_autograd(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    c10::SymInt position,
    int64_t num_heads,
    c10::string_view kernel) {
  const bool waited_for = at::GradMode::is_enabled() && x_t.requires_grad();
  TORCH_CHECK(
      !waited_for && !x_t._fw_grad(0).defined(),
      "self_attention: x_t requires a gradient, and a step records none. Call it under torch.no_grad() or "
      "torch.inference_mode(), or pass x_t.detach(); to train, call the layer on the whole sequence.");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  static const auto op = operator_named<StepSignature>("attnscope::self_attention_step");
  Tensor y = op.call(
      x_t, in_proj_weight, in_proj_bias, out_weight, out_bias, key_cache, value_cache,
      std::move(position), num_heads, kernel);
  // They were written to: whatever was saved of them for a backward pass is stale, and must be known to be.
  key_cache.unsafeGetTensorImpl()->bump_version();
  value_cache.unsafeGetTensorImpl()->bump_version();
  return y;
}

Tensor self_attention_step_elsewhere(
    const Tensor& x_t,                   // [B, 1, E]
    const Tensor& in_proj_weight,        // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,            // [E, E]
    const OptionalTensor& out_bias,      // [E]
    const Tensor& key_cache,             // [B, H, max_len, D]
    const Tensor& value_cache,           // [B, H, max_len, D]
    c10::SymInt position,
    int64_t num_heads,
    c10::string_view kernel) {
  check_step(
      x_t, in_proj_weight, in_proj_bias, out_weight, out_bias, key_cache, value_cache, position, num_heads);
  (void)kernel;
  TORCH_CHECK_VALUE(false, "self_attention: x_t is on ", x_t.device().str(), "; expected a dense tensor on cpu or cuda");
}

}  // namespace attnscope
