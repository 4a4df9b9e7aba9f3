#include "checks.h"

#include <c10/util/Exception.h>

#include <initializer_list>
#include <sstream>

#include "sdpa.h"

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

// `name` is what the operator calls its input.
void check_x(const Tensor& x, int64_t num_heads, const char* name = "x") {  // [B, S, E]
  TORCH_CHECK_VALUE(x.defined(), "self_attention: ", name, " is undefined; expected a tensor of shape [B, S, E]");
  if (x.layout() != at::kStrided) {
    std::ostringstream text;
    text << "has layout " << x.layout() << "; expected a dense (strided) tensor";
    refuse(name, x, text.str());
  }
  const auto type = x.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kHalf && type != at::kBFloat16) {
    refuse(name, x, std::string("is ") + dtype_name(type) + "; expected float32, float64, bfloat16 or float16");
  }
  if (x.dim() != 3) {
    refuse(name, x, "has " + std::to_string(x.dim()) + " dimensions; expected 3: [B, S, E]");
  }
  const SymInt embed_dim = x.sym_sizes()[2];
  TORCH_CHECK_VALUE(num_heads > 0, "self_attention: num_heads is ", num_heads, "; expected a positive number");
  if (embed_dim == 0) {
    refuse(name, x, "has an embedding of size 0; expected a positive last dimension");
  }
  if (embed_dim % num_heads != 0) {
    refuse(name, x, "cannot be split into num_heads = " + std::to_string(num_heads) +
                       " heads: expected a last dimension divisible by it");
  }
}

void check_type(const char* name, const Tensor& t, at::ScalarType expected, const std::string& why = "") {
  if (t.scalar_type() != expected) {
    refuse(name, t, std::string("is ") + dtype_name(t.scalar_type()) + "; expected " + dtype_name(expected) + why);
  }
}

// Layout, device and shape. `like` is the tensor that decides the device, `like_name` what the operator calls it.
void check_place(
    const char* name, const Tensor& t, const Tensor& like, Shape shape, const char* symbols,
    const char* like_name = "x") {
  if (t.layout() != at::kStrided) {
    std::ostringstream text;
    text << "has layout " << t.layout() << "; expected a dense (strided) tensor";
    refuse(name, t, text.str());
  }
  if (t.device() != like.device()) {
    refuse(name, t, "is on " + t.device().str() + "; expected " + like.device().str() + ", where " + like_name + " is");
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

// `like` decides the type too.
void check_tensor(
    const char* name, const Tensor& t, const Tensor& like, Shape shape, const char* symbols,
    const char* like_name = "x") {
  TORCH_CHECK_VALUE(t.defined(), "self_attention: ", name, " is undefined; expected ", symbols);
  if (t.layout() == at::kStrided && t.device() == like.device()) {
    check_type(name, t, like.scalar_type(), std::string(", as ") + like_name + " is");
  }
  check_place(name, t, like, shape, symbols, like_name);
}

void check_optional(
    const char* name, const OptionalTensor& t, const Tensor& like, Shape shape, const char* symbols,
    const char* like_name = "x") {
  if (t.has_value() && t->defined()) {
    check_tensor(name, *t, like, shape, symbols, like_name);
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

// The same as all the checks below for what nearly every call brings, at a tenth of their cost; where it says no, they
// find out what is wrong, or that nothing is. Symbolic sizes always take the long way.
class Quick {
 public:
  explicit Quick(const Tensor& x, int64_t num_heads) {  // [B, S, E]
    fits_ = x.defined() && plain(x) && x.dim() == 3 && num_heads > 0;
    if (fits_) {
      type_ = x.scalar_type();
      device_ = x.device();
      batch_ = x.size(0);
      embed_dim_ = x.size(2);
      fits_ = embed_dim_ > 0 && embed_dim_ % num_heads == 0 &&
          (type_ == at::kFloat || type_ == at::kDouble || type_ == at::kHalf || type_ == at::kBFloat16);
    }
  }
  Quick& matrix(const Tensor& t, int64_t parts = 1) {  // [parts * E, E]
    fits_ = fits_ && like_x(t) && t.dim() == 2 && t.size(0) == parts * embed_dim_ && t.size(1) == embed_dim_;
    return *this;
  }
  Quick& vector(const Tensor& t, int64_t parts = 1) {  // [parts * E]
    fits_ = fits_ && like_x(t) && t.dim() == 1 && t.size(0) == parts * embed_dim_;
    return *this;
  }
  Quick& vector(const OptionalTensor& t, int64_t parts = 1) {  // [parts * E] or absent
    return t.has_value() && t->defined() ? vector(*t, parts) : *this;
  }
  Quick& cache(const Tensor& t, int64_t num_heads) {  // [B, H, max_len, D]
    fits_ = fits_ && like_x(t) && t.dim() == 4 && t.size(0) == batch_ && t.size(1) == num_heads &&
        t.size(3) == embed_dim_ / num_heads;
    return *this;
  }
  bool fits() const { return fits_; }

 private:
  static bool plain(const Tensor& t) {  // the tensor
    return t.layout() == at::kStrided && !t.unsafeGetTensorImpl()->has_symbolic_sizes_strides() &&
        !t.key_set().has(c10::DispatchKey::Python);
  }
  bool like_x(const Tensor& t) const {  // the tensor
    return t.defined() && plain(t) && t.scalar_type() == type_ && t.device() == device_;
  }
  bool fits_ = false;
  int64_t batch_ = 0;
  int64_t embed_dim_ = 0;
  at::ScalarType type_ = at::kFloat;
  at::Device device_ = at::kCPU;
};

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
  if (Quick(x, num_heads)
          .matrix(q_weight).vector(q_bias).matrix(k_weight).vector(k_bias).matrix(v_weight).vector(v_bias)
          .matrix(out_weight).vector(out_bias).fits()) {
    return;
  }
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
  if (in_weights.size() == 1 && in_biases.size() <= 1) {
    Quick quick(x, num_heads);
    quick.matrix(in_weights[0], 3).matrix(out_weight).vector(out_bias);
    if (in_biases.size() == 1) {
      quick.vector(in_biases[0], 3);
    }
    if (quick.fits()) {
      return;
    }
  }
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
    const Tensor& qkv,          // see `Forward`
    const Tensor& p,            // see `Forward`
    const Tensor& c,            // [R, E]
    int64_t num_heads,
    int64_t wanted,
    Kernel kernel) {
  check_x(x, num_heads);
  const SymInt batch = x.sym_sizes()[0];
  const SymInt seq_len = x.sym_sizes()[1];
  const SymInt embed_dim = x.sym_sizes()[2];
  const SymInt items = batch * num_heads;
  check_tensor("grad_y", grad_y, x, {batch, seq_len, embed_dim}, "[B, S, E]");
  check_weights(x, in_weights, embed_dim);
  check_tensor("out_weight", out_weight, x, {embed_dim, embed_dim}, "[E, E]");
  if (kernel == Kernel::fused) {
    check_tensor("qkv", qkv, x, {batch * seq_len, embed_dim * 3}, "[B*S, 3E]");
    check_type("p", p, x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    check_place("p", p, x, {2, items, seq_len}, "[2, B*H, S]");
  } else if (is_sdpa(kernel)) {
    const auto kept = kept_by<SymInt>(kernel, batch, num_heads, seq_len).sizes;
    // As the forward pass projected it, which may have seen adjoining weights as one where this pass was given three.
    if (qkv.defined() && qkv.dim() == 3) {
      check_tensor("qkv", qkv, x, {3, batch * seq_len, embed_dim}, "[3, B*S, E]");
    } else {
      check_tensor("qkv", qkv, x, {batch * seq_len, embed_dim * 3}, "[B*S, 3E]");
    }
    check_type("p", p, x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    check_place("p", p, x, {kept[0], kept[1], kept[2]}, "the log-sum-exp of each row, [B, H, S]");
  } else {
    check_tensor("qkv", qkv, x, {3, items, seq_len, embed_dim / num_heads}, "[3, B*H, S, D]");
    check_tensor("p", p, x, {items, seq_len, seq_len}, "[B*H, S, S]");
  }
  check_tensor("c", c, x, {batch * seq_len, embed_dim}, "[B*S, E]");
  const auto flags = static_cast<int64_t>(3 + 2 * in_weights.size());
  TORCH_CHECK_VALUE(
      wanted >= 0 && wanted < (int64_t{1} << flags),
      "self_attention: wanted is ", wanted, "; expected ", flags,
      " bits: x, the weights and the biases of the input projection, out_weight, out_bias");
}

void check_step(
    const Tensor& x_t,               // [B, 1, E]
    const Tensor& in_proj_weight,    // [3E, E]
    const OptionalTensor& in_proj_bias,  // [3E]
    const Tensor& out_weight,        // [E, E]
    const OptionalTensor& out_bias,  // [E]
    const Tensor& key_cache,         // [B, H, max_len, D]
    const Tensor& value_cache,       // [B, H, max_len, D]
    const SymInt& position,
    int64_t num_heads) {
  Quick quick(x_t, num_heads);
  quick.matrix(in_proj_weight, 3).vector(in_proj_bias, 3).matrix(out_weight).vector(out_bias);
  if (quick.cache(key_cache, num_heads).cache(value_cache, num_heads).fits() && x_t.size(1) == 1 &&
      key_cache.size(2) == value_cache.size(2) && !position.is_symbolic() && position >= 0 &&
      position < key_cache.size(2)) {
    return;
  }
  check_x(x_t, num_heads, "x_t");
  const SymInt batch = x_t.sym_sizes()[0];
  const SymInt embed_dim = x_t.sym_sizes()[2];
  if (x_t.sym_sizes()[1] != 1) {
    refuse_shape("x_t", x_t, {batch, 1, embed_dim}, "[B, 1, E]: a step takes one token of each sequence");
  }
  check_tensor("in_proj_weight", in_proj_weight, x_t, {embed_dim * 3, embed_dim}, "[3E, E]", "x_t");
  check_optional("in_proj_bias", in_proj_bias, x_t, {embed_dim * 3}, "[3E]", "x_t");
  check_tensor("out_weight", out_weight, x_t, {embed_dim, embed_dim}, "[E, E]", "x_t");
  check_optional("out_bias", out_bias, x_t, {embed_dim}, "[E]", "x_t");
  TORCH_CHECK_VALUE(key_cache.defined(), "self_attention: key_cache is undefined; expected [B, H, max_len, D]");
  const SymInt max_len = key_cache.dim() == 4 ? key_cache.sym_sizes()[2] : SymInt(1);
  const Shape shape{batch, num_heads, max_len, embed_dim / num_heads};
  check_tensor("key_cache", key_cache, x_t, shape, "[B, H, max_len, D]", "x_t");
  check_tensor("value_cache", value_cache, x_t, shape, "[B, H, max_len, D]", "x_t");
  TORCH_CHECK_VALUE(position >= 0, "self_attention: position is ", position, "; expected 0 or more");
  TORCH_CHECK_VALUE(
      position < max_len, "self_attention: the cache is full: position is ", position,
      " and key_cache (shape ", shape_text(key_cache.sym_sizes()), ") has room for ", max_len, " tokens");
}

}  // namespace attnscope
