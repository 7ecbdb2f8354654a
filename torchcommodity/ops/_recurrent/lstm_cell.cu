// One LSTM step from its gates on, forward and backward. The cell is in cells.h.
#include "cell_device.h"

using namespace commodity;

namespace {

auto lstm_cell(const Tensor& gates, const Tensor& missing, const Tensor& h, const Tensor& c) {
  return launch_cell<Lstm>("lstm_cell", gates, missing, h, c);
}

auto lstm_cell_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                        const Tensor& c) {
  return launch_cell_backward<Lstm>("lstm_cell_backward", grad_h, grad_c, gates, missing, c);
}

}  // namespace

COMMODITY_CUDA(lstm_cell)
COMMODITY_CUDA(lstm_cell_backward)
