// The kernels of level "fused" for AVX-512, compiled for it whatever the command line says. The standard library comes first:
// a function of its own compiled here for AVX-512 could replace the plain copy in other files.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__) || defined(_M_X64)
#if defined(__clang__)
#include <immintrin.h>
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c"))), apply_to = function)
#elif defined(__GNUC__)
// gcc warns of its own header: gcc.gnu.org/PR105593
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")
#endif
#include "fused_table.h"
#include "fused_vector_avx512.h"

namespace attnscope::fused {

const Kernels* avx512_kernels(Element element) {
  return tables<Float512, Double512>(element);
}

}  // namespace attnscope::fused

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
#include "fused_kernels.h"

namespace attnscope::fused {

const Kernels* avx512_kernels(Element /*element*/) {
  return nullptr;
}

}  // namespace attnscope::fused
#endif
