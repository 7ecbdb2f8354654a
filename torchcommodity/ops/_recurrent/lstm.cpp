// LSTM over a sequence, forward and backward. Scheme: see recurrence.h.
#include "recurrence.h"

using namespace commodity;

namespace {

auto lstm(const Tensor& gates, const Tensor& missing, const Tensor& weight, const Tensor& h0, const Tensor& c0) {
  return run_layer<Lstm>("lstm", gates, missing, weight, h0, c0);
}

auto lstm_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                   const Tensor& weight, const Tensor& h0, const Tensor& c0, const Tensor& h, const Tensor& c) {
  return run_layer_backward<Lstm>("lstm_backward", grad_h, grad_c, gates, missing, weight, h0, c0, h, c);
}

}  // namespace

COMMODITY_OPERATOR(lstm, "(Tensor gates, Tensor missing, Tensor weight, Tensor h0, Tensor c0) -> (Tensor, Tensor)")
COMMODITY_OPERATOR(lstm_backward,
                   "(Tensor grad_h, Tensor grad_c, Tensor gates, Tensor missing, Tensor weight, Tensor h0, Tensor c0, "
                   "Tensor h, Tensor c) -> (Tensor, Tensor, Tensor)")
