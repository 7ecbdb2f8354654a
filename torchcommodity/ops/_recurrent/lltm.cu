// LLTM over a sequence, forward and backward. Scheme: see recurrence_device.h.
#include "recurrence_device.h"

using namespace commodity;

namespace {

auto lltm(const Tensor& gates, const Tensor& missing, const Tensor& weight, const Tensor& h0, const Tensor& c0) {
  return run_layer<Lltm>("lltm", gates, missing, weight, h0, c0);
}

auto lltm_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                   const Tensor& weight, const Tensor& h0, const Tensor& c0, const Tensor& h, const Tensor& c) {
  return run_layer_backward<Lltm>("lltm_backward", grad_h, grad_c, gates, missing, weight, h0, c0, h, c);
}

}  // namespace

COMMODITY_CUDA(lltm)
COMMODITY_CUDA(lltm_backward)
