// One LLTM step from its gates on, forward and backward. The cell is in cells.h.
#include "cell_device.h"

using namespace commodity;

namespace {

auto lltm_cell(const Tensor& gates, const Tensor& missing, const Tensor& h, const Tensor& c) {
  return run_cell<Lltm>("lltm_cell", gates, missing, h, c);
}

auto lltm_cell_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                        const Tensor& c) {
  return run_cell_backward<Lltm>("lltm_cell_backward", grad_h, grad_c, gates, missing, c);
}

}  // namespace

COMMODITY_CUDA(lltm_cell)
COMMODITY_CUDA(lltm_cell_backward)
