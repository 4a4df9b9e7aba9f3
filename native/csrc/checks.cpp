#include "checks.h"

#include <c10/util/Exception.h>

#include <initializer_list>
#include <sstream>

namespace attnscope {
namespace {

using c10::SymInt;
using Shape = std::initializer_list<SymInt>;

const char* dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kBool:
      return "bool";
    default:
      return c10::toString(type);
  }
}

std::string shape_text(c10::SymIntArrayRef sizes) {
  std::ostringstream text;
  text << '[';
  for (size_t i = 0; i < sizes.size(); ++i) {
    text << (i ? ", " : "") << sizes[i];
  }
  text << ']';
  return text.str();
}

// Out of line and shared: the messages would otherwise be most of the code of every check.
[[noreturn]] C10_NOINLINE void refuse(const char* name, const Tensor& t, const std::string& reason) {
  const std::string shape = t.layout() == at::kStrided ? shape_text(t.sym_sizes()) : "of its own layout";
  C10_THROW_ERROR(ValueError, c10::str("self_attention: ", name, " (shape ", shape, ") ", reason));
}

[[noreturn]] C10_NOINLINE void refuse_shape(const char* name, const Tensor& t, Shape shape, const char* symbols) {
  refuse(name, t, "has the wrong shape: expected " + shape_text(c10::SymIntArrayRef(shape)) + ", which is " + symbols);
}

void check_x(const Tensor& x, int64_t num_heads) {
  TORCH_CHECK_VALUE(x.defined(), "self_attention: x is undefined; expected a tensor of shape [B, S, E]");
  if (x.layout() != at::kStrided) {
    std::ostringstream text;
    text << "has layout " << x.layout() << "; expected a dense (strided) tensor";
    refuse("x", x, text.str());
  }
  const auto type = x.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kHalf && type != at::kBFloat16) {
    refuse("x", x, std::string("is ") + dtype_name(type) + "; expected float32, float64, bfloat16 or float16");
  }
  if (x.dim() != 3) {
    refuse("x", x, "has " + std::to_string(x.dim()) + " dimensions; expected 3: [B, S, E]");
  }
  const SymInt embed_dim = x.sym_sizes()[2];
  TORCH_CHECK_VALUE(num_heads > 0, "self_attention: num_heads is ", num_heads, "; expected a positive number");
  if (embed_dim == 0) {
    refuse("x", x, "has an embedding of size 0; expected a positive last dimension");
  }
  if (embed_dim % num_heads != 0) {
    refuse("x", x, "cannot be split into num_heads = " + std::to_string(num_heads) +
                       " heads: expected a last dimension divisible by it");
  }
}

// `like` is the tensor that decides device and type: x.
void check_tensor(const char* name, const Tensor& t, const Tensor& like, Shape shape, const char* symbols) {
  TORCH_CHECK_VALUE(t.defined(), "self_attention: ", name, " is undefined; expected ", symbols);
  if (t.layout() != at::kStrided) {
    std::ostringstream text;
    text << "has layout " << t.layout() << "; expected a dense (strided) tensor";
    refuse(name, t, text.str());
  }
  if (t.device() != like.device()) {
    refuse(name, t, "is on " + t.device().str() + "; expected " + like.device().str() + ", where x is");
  }
  if (t.scalar_type() != like.scalar_type()) {
    refuse(name, t, std::string("is ") + dtype_name(t.scalar_type()) + "; expected " +
                        dtype_name(like.scalar_type()) + ", as x is");
  }
  const auto sizes = t.sym_sizes();
  bool same = sizes.size() == shape.size();
  for (size_t i = 0; same && i < sizes.size(); ++i) {
    same = sizes[i] == shape.begin()[i];
  }
  if (!same) {
    refuse_shape(name, t, shape, symbols);
  }
}

void check_optional(const char* name, const OptionalTensor& t, const Tensor& like, Shape shape, const char* symbols) {
  if (t.has_value() && t->defined()) {
    check_tensor(name, *t, like, shape, symbols);
  }
}

void check_weights(const Tensor& x, at::TensorList in_weights, const SymInt& embed_dim) {
  TORCH_CHECK_VALUE(
      in_weights.size() == 1 || in_weights.size() == 3,
      "self_attention: in_weights holds ", in_weights.size(), " tensors; expected 1 (packed) or 3 (q, k, v)");
  if (in_weights.size() == 1) {
    check_tensor("in_proj_weight", in_weights[0], x, {embed_dim * 3, embed_dim}, "[3E, E]");
    return;
  }
  check_tensor("q_weight", in_weights[0], x, {embed_dim, embed_dim}, "[E, E]");
  check_tensor("k_weight", in_weights[1], x, {embed_dim, embed_dim}, "[E, E]");
  check_tensor("v_weight", in_weights[2], x, {embed_dim, embed_dim}, "[E, E]");
}

}  // namespace

void check_arguments(
    const Tensor& x,                 // [B, S, E]
    const Tensor& q_weight,          // [E, E]
    const OptionalTensor& q_bias,    // [E]
    const Tensor& k_weight,          // [E, E]
    const OptionalTensor& k_bias,    // [E]
    const Tensor& v_weight,          // [E, E]
    const OptionalTensor& v_bias,    // [E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads) {
  check_x(x, num_heads);
  const SymInt embed_dim = x.sym_sizes()[2];
  check_tensor("q_weight", q_weight, x, {embed_dim, embed_dim}, "[E, E]");
  check_optional("q_bias", q_bias, x, {embed_dim}, "[E]");
  check_tensor("k_weight", k_weight, x, {embed_dim, embed_dim}, "[E, E]");
  check_optional("k_bias", k_bias, x, {embed_dim}, "[E]");
  check_tensor("v_weight", v_weight, x, {embed_dim, embed_dim}, "[E, E]");
  check_optional("v_bias", v_bias, x, {embed_dim}, "[E]");
  check_tensor("out_weight", out_weight, x, {embed_dim, embed_dim}, "[E, E]");
  check_optional("out_bias", out_bias, x, {embed_dim}, "[E]");
}

void check_projections(
    const Tensor& x,                 // [B, S, E]
    at::TensorList in_weights,       // one [3E, E] or three [E, E]
    at::TensorList in_biases,        // none, one [3E] or three [E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    int64_t num_heads) {
  check_x(x, num_heads);
  const SymInt embed_dim = x.sym_sizes()[2];
  check_weights(x, in_weights, embed_dim);
  TORCH_CHECK_VALUE(
      in_biases.empty() || in_biases.size() == in_weights.size(),
      "self_attention: in_biases holds ", in_biases.size(), " tensors; expected none or ", in_weights.size(),
      ", one for each weight");
  const bool packed = in_weights.size() == 1;
  static constexpr const char* separate_names[] = {"q_bias", "k_bias", "v_bias"};
  for (size_t i = 0; i < in_biases.size(); ++i) {
    check_tensor(
        packed ? "in_proj_bias" : separate_names[i], in_biases[i], x, {packed ? embed_dim * 3 : embed_dim},
        packed ? "[3E]" : "[E]");
  }
  check_tensor("out_weight", out_weight, x, {embed_dim, embed_dim}, "[E, E]");
  check_optional("out_bias", out_bias, x, {embed_dim}, "[E]");
}

void check_backward(
    const Tensor& grad_y,       // [B, S, E]
    const Tensor& x,            // [B, S, E]
    at::TensorList in_weights,  // one [3E, E] or three [E, E]
    const Tensor& out_weight,   // [E, E]
    const Tensor& qkv,          // [3, B*H, S, D]
    const Tensor& p,            // [B*H, S, S]
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    int64_t wanted) {
  check_x(x, num_heads);
  const SymInt batch = x.sym_sizes()[0];
  const SymInt seq_len = x.sym_sizes()[1];
  const SymInt embed_dim = x.sym_sizes()[2];
  const SymInt items = batch * num_heads;
  check_tensor("grad_y", grad_y, x, {batch, seq_len, embed_dim}, "[B, S, E]");
  check_weights(x, in_weights, embed_dim);
  check_tensor("out_weight", out_weight, x, {embed_dim, embed_dim}, "[E, E]");
  check_tensor("qkv", qkv, x, {3, items, seq_len, embed_dim / num_heads}, "[3, B*H, S, D]");
  check_tensor("p", p, x, {items, seq_len, seq_len}, "[B*H, S, S]");
  check_tensor("c", c, x, {batch * seq_len, embed_dim}, "[B*S, E]");
  const auto flags = static_cast<int64_t>(3 + 2 * in_weights.size());
  TORCH_CHECK_VALUE(
      wanted >= 0 && wanted < (int64_t{1} << flags),
      "self_attention: wanted is ", wanted, "; expected ", flags,
      " bits: x, the weights and the biases of the input projection, out_weight, out_bias");
}

}  // namespace attnscope
