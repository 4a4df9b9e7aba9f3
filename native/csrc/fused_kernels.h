// The vector kernels of level "fused", as plain functions over plain memory: their sources see neither ATen nor each
// other, so that each instruction set compiles alone and quickly. One table of them is chosen when the program runs.
//
// Shapes as in attention.h: B batch, S sequence, E embedding, H heads, D = E / H, R = B * S. Strides are in elements.
// "Compute type" is float, and double for double: bfloat16 and float16 are widened when read and rounded when written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attnscope::fused {

struct BFloat16 {
  std::uint16_t bits;
};
struct Half {
  std::uint16_t bits;
};

// Where queries, keys and values lie: rows [R, row_stride] of one projection, head h of each from column h * D on.
struct Layout {
  const void* q;
  const void* k;
  const void* v;
  std::int64_t row_stride;
  std::int64_t batch;
  std::int64_t seq_len;
  std::int64_t num_heads;
  std::int64_t head_dim;
  bool causal;
};

struct ForwardArgs {
  Layout in;
  void* c;               // [R, E] contiguous
  void* row_max;  // [B*H, S] of the compute type: the largest product q k of each row; null where not kept
  void* row_sum;  // [B*H, S]: Σ exp((product - row_max) / sqrt(D))
};

struct BackwardArgs {
  Layout in;
  const void* dc;  // rows [R, dc_stride]; may lie where dv goes, if S is more than a few: each head reads it first
  std::int64_t dc_stride;
  const void* row_max;
  const void* row_sum;
  void* dq;  // rows [R, grad_stride], as the projection's; null where not wanted, and likewise the next two
  void* dk;
  void* dv;
  std::int64_t grad_stride;
};

// y [rows, columns] = x [rows, depth] times weight [columns, depth] transposed, plus bias [columns] if there is one.
struct LinearArgs {
  const void* x;
  std::int64_t x_stride;
  const void* weight;
  std::int64_t weight_stride;
  const void* bias;
  void* y;
  std::int64_t y_stride;
  std::int64_t rows;
  std::int64_t depth;
};

// c [rows, columns] (+)= a [rows, depth], whose element (i, p) lies at i * a_row + p * a_column, times b [depth, columns].
struct ProductArgs {
  const void* a;
  std::int64_t a_row;
  std::int64_t a_column;
  const void* b;
  std::int64_t b_stride;
  void* c;
  std::int64_t c_stride;
  std::int64_t columns;
  std::int64_t depth;
  bool add;
};

// The most rows that the linear kernel of a 16-bit type takes.
constexpr std::int64_t narrow_rows = 8;

// One of the two caches of a step: element (item, head, position, p) of [B, H, max_len, D], dense along D.
struct Cache {
  void* data;
  std::int64_t item_stride;
  std::int64_t head_stride;
  std::int64_t row_stride;
};

// Attention of one new position over `length` cached ones, itself among them. A head's keys are taken in `piece_count`
// pieces of `piece_length`, tasks of their own.
struct StepArgs {
  const void* q;  // rows [B, q_stride], head h from column h * D on
  std::int64_t q_stride;
  Cache keys;
  Cache values;
  std::int64_t length;
  std::int64_t num_heads;
  std::int64_t head_dim;
  std::int64_t piece_count;
  std::int64_t piece_length;
  void* pieces;  // [B*H, piece_count, D rounded up to the width + 2] of the compute type
  void* c;       // rows [B, c_stride], as q
  std::int64_t c_stride;
};

struct StepKernels {
  std::int64_t width;  // of a vector, in elements
  // One piece of one head of one item: `head` counts over B*H.
  void (*attend)(const StepArgs&, std::int64_t head, std::int64_t piece);
  // All pieces of one head, into c.
  void (*merge)(const StepArgs&, std::int64_t head);
};

// Everything for one type of tensor. `scratch` is memory of the calling thread alone, aligned to 64 bytes.
struct Kernels {
  std::int64_t query_block;  // rows of queries that one forward task covers
  std::size_t (*forward_scratch)(const Layout&);
  // Queries [block * query_block, ...) of one head of one item: `head` counts over B*H.
  void (*forward)(const ForwardArgs&, std::int64_t head, std::int64_t block, void* scratch);
  std::size_t (*backward_scratch)(const Layout&);
  // One head of one item; no other task writes to its gradients, so that sums run in one order.
  void (*backward)(const BackwardArgs&, std::int64_t head, void* scratch);
  // Columns [begin, end) of y; of the 16-bit types at most `narrow_rows` rows.
  void (*linear)(const LinearArgs&, std::int64_t begin, std::int64_t end);
  // Rows [begin, end) of c. Null for the 16-bit types, whose products go to the library.
  void (*product)(const ProductArgs&, std::int64_t begin, std::int64_t end);
  // sums[j] = Σ_i rows[i * stride + j] for j in [begin, end).
  void (*column_sums)(const void* rows, std::int64_t stride, std::int64_t count, void* sums, std::int64_t begin,
                      std::int64_t end);
  const StepKernels* step;  // of decoding
};

enum class Element { f32, f64, bf16, f16 };

// Null where the instruction set does not exist for this compiler and machine type.
const Kernels* portable_kernels(Element element);
const Kernels* avx2_kernels(Element element);
const Kernels* avx512_kernels(Element element);

}  // namespace attnscope::fused
