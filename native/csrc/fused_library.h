// The matrix product of the library that torch itself was linked with, reached without ATen.
#pragma once

#include "fused_kernels.h"

namespace attnscope::fused {

// c [rows, columns] (+)= a times b, for float (f32) or double (f64). False, and nothing done, where there is no such
// library or these are not its kind of operands: ATen's own product is to be used then.
bool library_product(Element element, const ProductArgs& args, std::int64_t rows);

// The same for y = x times weight transposed (+ y where `add`); `columns` is y's.
bool library_linear(Element element, const LinearArgs& args, std::int64_t columns, bool add);

}  // namespace attnscope::fused
