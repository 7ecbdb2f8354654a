// One LSTM step, forward and backward. The cell is in cells.h.
#include "cell.h"

using namespace commodity;

namespace {

auto lstm_cell(const Tensor& input, const Tensor& h, const Tensor& c, const Tensor& weight_ih, const Tensor& weight_hh,
               const std::optional<Tensor>& bias) {
  return run_cell<Lstm>("lstm_cell", input, h, c, weight_ih, weight_hh, bias);
}

auto lstm_cell_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                        const Tensor& c) {
  return run_cell_backward<Lstm>("lstm_cell_backward", grad_h, grad_c, gates, missing, c);
}

}  // namespace

COMMODITY_KERNEL(lstm_cell,
                 "(Tensor input, Tensor h, Tensor c, Tensor weight_ih, Tensor weight_hh, Tensor? bias=None) -> "
                 "(Tensor, Tensor, Tensor, Tensor)")
COMMODITY_KERNEL(lstm_cell_backward,
                 "(Tensor grad_h, Tensor grad_c, Tensor gates, Tensor missing, Tensor c) -> (Tensor, Tensor, Tensor)")
