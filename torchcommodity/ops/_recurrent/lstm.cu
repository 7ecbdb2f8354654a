// A long short-term memory over a sequence whose input is projected onto the gates, and its adjoint.
#include "recurrence_device.h"

using namespace commodity;

namespace {

auto lstm(const Tensor& gates, const Tensor& missing, const Tensor& weight, const Tensor& h0, const Tensor& c0) {
  return layer<Lstm>("lstm", gates, missing, weight, h0, c0);
}

auto lstm_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                   const Tensor& weight, const Tensor& h0, const Tensor& c0, const Tensor& h, const Tensor& c) {
  return adjoint<Lstm>("lstm_backward", grad_h, grad_c, gates, missing, weight, h0, c0, h, c);
}

}  // namespace

COMMODITY_CUDA(lstm)
COMMODITY_CUDA(lstm_backward)
