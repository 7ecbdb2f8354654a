// Gradients of dcc_correlation with respect to residuals, weights, target and initial Q: (..., T N + 2 + 2 N^2).
#include "dcc_correlation_backward.h"

#include "dcc_panels.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void run_panel(const DccAdjoint<scalar_t>& adjoint, int64_t panel, double* memory) {
  adjoint(panel, memory);
}

template <typename scalar_t>
void run(const Tensor& grad, const Tensor& z, const Tensor& weights, const Tensor& target, const Tensor& q,
         Tensor& gradients) {
  const Panels panels(weights.numel() / 2, z.size(-2), z.size(-1));  // there are gradients even where T = 0
  const DccAdjoint<scalar_t> adjoint{grad.const_data_ptr<scalar_t>(),
                                     z.const_data_ptr<scalar_t>(),
                                     weights.const_data_ptr<scalar_t>(),
                                     target.const_data_ptr<scalar_t>(),
                                     q.const_data_ptr<scalar_t>(),
                                     gradients.mutable_data_ptr<scalar_t>(),
                                     panels.steps,
                                     panels.assets};
  for_each_panel(panels, adjoint.memory(), [&](int64_t panel, double* memory) { run_panel(adjoint, panel, memory); });
}

Tensor dcc_correlation_backward(const Tensor& grad, const Tensor& z, const Tensor& weights, const Tensor& target,
                                const Tensor& q) {
  check_dcc("dcc_correlation_backward", z, weights, target);
  check_same("dcc_correlation_backward", grad, q);
  Tensor gradients = new_empty(z, gradient_shape(z));
  THO_DISPATCH_V2(z.scalar_type(), "dcc_correlation_backward", AT_WRAP([&] {
                    run<scalar_t>(contiguous(grad), contiguous(z), contiguous(weights), contiguous(target),
                                  contiguous(q), gradients);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return gradients;
}

}  // namespace

COMMODITY_OPERATOR(dcc_correlation_backward,
                   "(Tensor grad, Tensor z, Tensor weights, Tensor target, Tensor q) -> Tensor")
