// One LSTM step, forward and backward. The cell is in cells.h.
#include "cell.h"

using namespace commodity;

namespace {

auto lstm_cell(const Tensor& input, const Tensor& h, const Tensor& c, const Tensor& weight_ih, const Tensor& weight_hh,
               const std::optional<Tensor>& bias_ih, const std::optional<Tensor>& bias_hh) {
  return run_cell<Lstm>("lstm_cell", input, h, c, weight_ih, weight_hh, bias_ih, bias_hh);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> lstm_cell_backward(
    const std::optional<Tensor>& grad_h, const std::optional<Tensor>& grad_c, const std::optional<Tensor>& grad_gates,
    const Tensor& input, const Tensor& h, const Tensor& c, const Tensor& weight_ih, const Tensor& weight_hh,
    const Tensor& gates, const Tensor& missing, const std::vector<bool>& needs) {
  STD_TORCH_CHECK(needs.size() == 7, "lstm_cell_backward: needs must be 7 values");
  check_layer<Lstm>("lstm_cell_backward", input, h, c, weight_ih, weight_hh, std::nullopt, false);
  const CellBackward<Lstm> step("lstm_cell_backward", grad_h, grad_c, grad_gates, input, h, c, gates, missing);
  return {needs[0] ? step.d_input(weight_ih) : step.none(),
          needs[1] ? step.d_h(weight_hh) : step.none(),
          step.d_c,
          needs[3] ? step.d_weight_ih() : step.none(),
          needs[4] ? step.d_weight_hh() : step.none(),
          needs[5] || needs[6] ? step.d_bias() : step.none()};
}

}  // namespace

COMMODITY_KERNEL(lstm_cell,
                 "(Tensor input, Tensor h, Tensor c, Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih=None, Tensor? "
                 "bias_hh=None) -> (Tensor, Tensor, Tensor, Tensor)")
COMMODITY_KERNEL(lstm_cell_backward,
                 "(Tensor? grad_h, Tensor? grad_c, Tensor? grad_gates, Tensor input, Tensor h, Tensor c, Tensor "
                 "weight_ih, Tensor weight_hh, Tensor gates, Tensor missing, bool[] needs) -> (Tensor, Tensor, Tensor, "
                 "Tensor, Tensor, Tensor)")
