// One LLTM step, forward and backward. The cell is in cells.h.
#include "cell.h"

using namespace commodity;

namespace {

auto lltm_cell(const Tensor& input, const Tensor& h, const Tensor& c, const Tensor& weight,
               const std::optional<Tensor>& bias) {
  const auto [weight_ih, weight_hh] = split_columns("lltm_cell", weight, h.size(-1));
  return run_cell<Lltm>("lltm_cell", input, h, c, weight_ih, weight_hh, bias);
}

auto lltm_cell_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                        const Tensor& c) {
  return run_cell_backward<Lltm>("lltm_cell_backward", grad_h, grad_c, gates, missing, c);
}

}  // namespace

COMMODITY_KERNEL(lltm_cell,
                 "(Tensor input, Tensor h, Tensor c, Tensor weight, Tensor? bias=None) -> "
                 "(Tensor, Tensor, Tensor, Tensor)")
COMMODITY_KERNEL(lltm_cell_backward,
                 "(Tensor grad_h, Tensor grad_c, Tensor gates, Tensor missing, Tensor c) -> (Tensor, Tensor, Tensor)")
