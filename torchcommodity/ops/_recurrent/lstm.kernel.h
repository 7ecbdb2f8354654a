// LSTM over a sequence, forward and backward. Scheme: see recurrence.h and recurrence_device.h.
#include "recurrence.h"
#include "recurrence_device.h"

using namespace commodity;

namespace {

auto lstm(const Tensor& input, const Tensor& h0, const Tensor& c0, const Tensor& weight_ih, const Tensor& weight_hh,
          const std::optional<Tensor>& bias) {
  return run_layer<Lstm>("lstm", input, h0, c0, weight_ih, weight_hh, bias);
}

auto lstm_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& input, const Tensor& h0, const Tensor& c0,
                   const Tensor& weight_ih, const Tensor& weight_hh, const std::optional<Tensor>& bias, const Tensor& h,
                   const Tensor& c) {
  return run_layer_backward<Lstm>("lstm_backward", grad_h, grad_c, input, h0, c0, weight_ih, weight_hh, bias, h, c);
}

}  // namespace

COMMODITY_KERNEL(lstm,
                 "(Tensor input, Tensor h0, Tensor c0, Tensor weight_ih, Tensor weight_hh, Tensor? bias) -> "
                 "(Tensor, Tensor)")
COMMODITY_KERNEL(lstm_backward,
                 "(Tensor grad_h, Tensor grad_c, Tensor input, Tensor h0, Tensor c0, Tensor weight_ih, "
                 "Tensor weight_hh, Tensor? bias, Tensor h, Tensor c) -> (Tensor, Tensor, Tensor)")
