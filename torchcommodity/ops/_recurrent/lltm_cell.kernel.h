// One LLTM step, forward and backward. The cell is in cells.h.
#include "cell.h"

using namespace commodity;

namespace {

// The columns of a weight (3 H, H + F) that multiply the input and those that multiply h, in this order.
std::pair<Tensor, Tensor> split_columns(const char* name, const Tensor& weight_, int64_t hidden) {
  STD_TORCH_CHECK(weight_.dim() == 2 && weight_.size(1) >= hidden, name, ": weight must be (3 H, H + F)");
  const Tensor weight = as_contiguous(weight_);
  const int64_t rows = weight.size(0), columns = weight.size(1);
  return {as_matrix(weight, rows, columns - hidden, columns, 1, hidden), as_matrix(weight, rows, hidden, columns, 1)};
}

auto lltm_cell(const Tensor& input, const Tensor& h, const Tensor& c, const Tensor& weight,
               const std::optional<Tensor>& bias) {
  const auto [weight_ih, weight_hh] = split_columns("lltm_cell", weight, h.size(-1));
  return run_cell<Lltm>("lltm_cell", input, h, c, weight_ih, weight_hh, bias, std::nullopt);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> lltm_cell_backward(
    const std::optional<Tensor>& grad_h, const std::optional<Tensor>& grad_c, const std::optional<Tensor>& grad_gates,
    const Tensor& input, const Tensor& h, const Tensor& c, const Tensor& weight, const Tensor& gates,
    const Tensor& missing, const std::vector<bool>& needs) {
  STD_TORCH_CHECK(needs.size() == 5, "lltm_cell_backward: needs must be 5 values");
  const auto [weight_ih, weight_hh] = split_columns("lltm_cell_backward", weight, h.size(-1));
  check_layer<Lltm>("lltm_cell_backward", input, h, c, weight_ih, weight_hh, std::nullopt, false);
  const CellBackward<Lltm> step("lltm_cell_backward", grad_h, grad_c, grad_gates, input, h, c, gates, missing);
  return {needs[0] ? step.d_input(weight_ih) : step.none(), needs[1] ? step.d_h(weight_hh) : step.none(), step.d_c,
          needs[3] ? step.d_weight() : step.none(), needs[4] ? step.d_bias() : step.none()};
}

}  // namespace

COMMODITY_KERNEL(lltm_cell,
                 "(Tensor input, Tensor h, Tensor c, Tensor weight, Tensor? bias=None) -> "
                 "(Tensor, Tensor, Tensor, Tensor)")
COMMODITY_KERNEL(
    lltm_cell_backward,
    "(Tensor? grad_h, Tensor? grad_c, Tensor? grad_gates, Tensor input, Tensor h, Tensor c, Tensor weight, "
    "Tensor gates, Tensor missing, bool[] needs) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
