// The kernels of level "fused" for any machine.
#include "fused_table.h"

namespace attnscope::fused {

const Kernels* portable_kernels(Element element) {
  return tables<ArrayVector<float, 8>, ArrayVector<double, 4>>(element);
}

}  // namespace attnscope::fused
