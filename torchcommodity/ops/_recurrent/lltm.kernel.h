// LLTM over a sequence: forward, backward and tangents. Scheme: see recurrence.h, recurrence_device.h and tangent.h.
#include "recurrence.h"
#include "recurrence_device.h"
#include "tangent.h"

using namespace commodity;

namespace {

auto lltm(const Tensor& input, const Tensor& h0, const Tensor& c0, const Tensor& weight_ih, const Tensor& weight_hh,
          const std::optional<Tensor>& bias, bool save_gates) {
  return run_layer<Lltm>("lltm", input, h0, c0, weight_ih, weight_hh, bias, save_gates);
}

auto lltm_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& input, const Tensor& h0, const Tensor& c0,
                   const Tensor& weight_ih, const Tensor& weight_hh, const std::optional<Tensor>& bias, const Tensor& c,
                   const Tensor& gates) {
  return run_layer_backward<Lltm>("lltm_backward", grad_h, grad_c, input, h0, c0, weight_ih, weight_hh, bias, c, gates);
}

auto lltm_tangent(const Tensor& d_gates, const Tensor& d_h0, const Tensor& d_c0, const Tensor& input, const Tensor& c0,
                  const Tensor& weight_hh, const Tensor& c, const Tensor& gates) {
  return run_layer_tangent<Lltm>("lltm_tangent", d_gates, d_h0, d_c0, input, c0, weight_hh, c, gates);
}

}  // namespace

COMMODITY_KERNEL(lltm,
                 "(Tensor input, Tensor h0, Tensor c0, Tensor weight_ih, Tensor weight_hh, Tensor? bias, "
                 "bool save_gates=False) -> (Tensor, Tensor, Tensor)")
COMMODITY_KERNEL(lltm_backward,
                 "(Tensor grad_h, Tensor grad_c, Tensor input, Tensor h0, Tensor c0, Tensor weight_ih, "
                 "Tensor weight_hh, Tensor? bias, Tensor c, Tensor gates) -> (Tensor, Tensor, Tensor)")
COMMODITY_KERNEL(lltm_tangent,
                 "(Tensor d_gates, Tensor d_h0, Tensor d_c0, Tensor input, Tensor c0, Tensor weight_hh, Tensor c, "
                 "Tensor gates) -> (Tensor, Tensor)")
