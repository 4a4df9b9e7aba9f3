// The passes of level "fused" on the CPU, in one file because ATen's headers take longer to compile than either. Forward:
// the packed projection, one kernel from it to the merged heads, and the output projection; heads are never moved, the
// kernel reads them where the projection left them. Backward: sums run in an order that depends on shapes alone, so that
// the same call gives the same bits, whatever the threads do.
#include <atomic>

#include "fused.h"
#include "fused_parallel.h"
#include "views.h"

namespace attnscope {
namespace {

using fused::allocate;
using fused::Kernels;

Tensor dense_rows(const Tensor& t) {  // [B, S, E] -> [R, E], dense along E and no row twice in one place
  const Tensor rows = as_rows(t);
  const bool dense = (rows.stride(1) == 1 || rows.size(1) == 1) && (rows.stride(0) >= rows.size(1) || rows.size(0) == 1);
  return dense ? rows : at::clone(rows, at::MemoryFormat::Contiguous);
}

// Multiplications below which a second thread does not pay.
constexpr int64_t parallel_work = 50'000;

// Bytes for each thread up to which the backward pass keeps its memory from call to call.
constexpr size_t kept_scratch = 1 << 20;

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

Tensor column_sums(const Kernels& kernels, const Tensor& rows) {  // [R, N] -> [N]
  const int64_t count = rows.size(0);
  const int64_t columns = rows.size(1);
  Tensor sums = allocate({columns}, rows.scalar_type());
  constexpr int64_t step = 64;
  const bool worth_it = count * columns > 100'000;
  const int64_t chunk = worth_it ? step : columns;
  fused::for_each((columns + chunk - 1) / chunk, worth_it, [&](int64_t i) {
    kernels.column_sums(rows.const_data_ptr(), rows.stride(0), count, sums.data_ptr(), i * chunk,
                        std::min(columns, (i + 1) * chunk));
  });
  return sums;
}

// Which of q, k, v need a gradient: for x all, for a weight or bias those it belongs to.
std::array<bool, 3> needed_parts(const Wanted& wanted) {
  std::array<bool, 3> needed{wanted.x, wanted.x, wanted.x};
  for (const auto* flags : {&wanted.in_weights, &wanted.in_biases}) {
    for (size_t i = 0; i < flags->size(); ++i) {
      for (size_t j = 0; j < 3; ++j) {
        needed[j] = needed[j] || ((*flags)[i] && (flags->size() == 1 || i == j));
      }
    }
  }
  return needed;
}

// dq, dk, dv side by side [R, 3E]; the columns of a part not needed are left without meaning. A long sequence's dc goes
// where dv will be: a head's kernel has read it all when it writes dv, and R * E numbers less are needed at the peak.
Tensor attention_gradients(
    const Kernels& kernels,
    const Tensor& x,      // [B, S, E]
    const Tensor& dy,     // [R, E]
    const Tensor& out_weight,  // [E, E]
    const Tensor& qkv,    // [R, 3E]
    const Tensor& stats,  // [2, B*H, S]
    int64_t num_heads,
    bool causal,
    const std::array<bool, 3>& needed,
    bool small) {
  const fused::Layout in = fused::layout_of(x, qkv, num_heads, causal);
  const size_t scratch = kernels.backward_scratch(in);
  const bool large = scratch > kept_scratch;
  Tensor grad = allocate({qkv.size(0), qkv.size(1)}, qkv.scalar_type());
  const int64_t heads = x.size(0) * num_heads;
  const auto base = static_cast<char*>(grad.data_ptr());
  const auto step = x.size(2) * static_cast<int64_t>(grad.element_size());
  Tensor dc = large ? strided_view(grad, {qkv.size(0), x.size(2)}, {grad.stride(0), 1}, 2 * x.size(2))
                    : allocate({qkv.size(0), x.size(2)}, qkv.scalar_type());
  fused::product(kernels, dc, dy, out_weight, false, small);
  const auto row_max = static_cast<const char*>(stats.const_data_ptr());
  const fused::BackwardArgs args{
      in,
      dc.const_data_ptr(),
      dc.stride(0),
      row_max,
      row_max + heads * x.size(1) * static_cast<int64_t>(stats.element_size()),
      needed[0] ? base : nullptr,
      needed[1] ? base + step : nullptr,
      needed[2] ? base + 2 * step : nullptr,
      grad.stride(0)};
  const bool worth_it = qkv.size(0) * x.size(1) * x.size(2) > 10'000;
  const int64_t workers = worth_it ? std::min(heads, fused::threads_available()) : 1;
  // What grows with S is given back before the weights' gradients take memory; a little is kept for the next call.
  const Tensor given_back =
      large ? allocate({workers, static_cast<int64_t>(scratch)}, at::kByte) : Tensor();
  std::atomic<int64_t> next{0};
  fused::for_each(workers, worth_it, [&](int64_t worker) {
    void* const memory = given_back.defined()
                             ? static_cast<char*>(given_back.data_ptr()) + static_cast<size_t>(worker) * scratch
                             : fused::thread_memory(scratch);
    for (int64_t head = next.fetch_add(1); head < heads; head = next.fetch_add(1)) {
      kernels.backward(args, head, memory);
    }
  });
  return grad;
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
    // Each thread takes some heads from the input to their merged values: one wait for all threads instead of two.
    const int64_t width = embed_dim / num_heads;
    const bool worth_it = count * embed_dim * (3 * embed_dim + seq_len) > 2 * parallel_work;
    const int64_t shares = worth_it ? std::min(num_heads, fused::threads_available()) : 1;
    fused::for_each(shares, worth_it, [&](int64_t share) {
      const int64_t first = share * num_heads / shares;
      const int64_t last = (share + 1) * num_heads / shares;
      if (shares == 1 && in_weights.size() == 1) {
        kernels.linear(parts[0], 0, 3 * embed_dim);
      } else {
        for (const fused::LinearArgs& part : parts) {
          kernels.linear(part, first * width, last * width);
        }
      }
      void* const memory = fused::thread_memory(scratch);
      for (int64_t item = 0; item < batch * blocks; ++item) {
        for (int64_t head = first; head < last; ++head) {
          kernels.forward(args, item / blocks * num_heads + head, item % blocks, memory);
        }
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

std::vector<Tensor> fused_backward(
    const Tensor& grad_y,       // [B, S, E], any strides
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Tensor& out_weight,   // [E, E]
    const Tensor& qkv,          // [R, 3E]
    const Tensor& stats,        // [2, B*H, S]
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    bool causal,
    const Wanted& wanted) {
  const int64_t embed_dim = x.size(2);
  const int64_t count = x.size(0) * x.size(1);
  if (count == 0) {
    return zero_gradients(x, in_weights, wanted);
  }
  const auto type = x.scalar_type();
  const Kernels& kernels = fused::kernels_for(type);
  const bool small = fused::is_small(kernels, count, embed_dim);
  std::vector<Tensor> grads;
  grads.reserve(9);
  const Tensor dy = dense_rows(grad_y);
  const auto needed = needed_parts(wanted);
  if (needed[0] || needed[1] || needed[2]) {
    const Tensor dqkv =
        attention_gradients(kernels, x, dy, out_weight, qkv.stride(1) == 1 ? qkv : qkv.contiguous(),
                            stats.contiguous(), num_heads, causal, needed, small);
    const auto parts = static_cast<int64_t>(in_weights.size());
    const int64_t width = 3 * embed_dim / parts;
    const auto columns = [&](size_t i) {  // [R, width]
      return parts == 1 ? dqkv
                        : strided_view(dqkv, {count, width}, {3 * embed_dim, 1}, static_cast<int64_t>(i) * width);
    };
    if (wanted.x) {
      grads.push_back(allocate(x.sizes(), type));
      Tensor dx = strided_view(grads.back(), {count, embed_dim}, {embed_dim, 1}, 0);
      for (size_t i = 0; i < in_weights.size(); ++i) {
        fused::product(kernels, dx, columns(i), in_weights[i], i > 0, small);
      }
    }
    const Tensor rows = dense_rows(x);
    for (size_t i = 0; i < wanted.in_weights.size(); ++i) {
      if (wanted.in_weights[i]) {
        grads.push_back(allocate({width, embed_dim}, type));
        fused::product(kernels, grads.back(), transposed(columns(i)), rows, false, small);
      }
    }
    for (size_t i = 0; i < wanted.in_biases.size(); ++i) {
      if (wanted.in_biases[i]) {
        grads.push_back(column_sums(kernels, columns(i)));
      }
    }
  }
  if (wanted.out_weight) {
    grads.push_back(allocate({embed_dim, embed_dim}, type));
    fused::product(kernels, grads.back(), transposed(dy), c, false, small);
  }
  if (wanted.out_bias) {
    grads.push_back(column_sums(kernels, dy));
  }
  return grads;
}

}  // namespace attnscope
