// Gradients of dcc_correlation with respect to residuals, weights, target and initial Q: (..., T N + 2 + 2 N^2). One
// thread per panel.
#include "dcc_correlation_backward.h"
#include "dcc_panels_device.h"

using namespace commodity;

namespace {

Tensor dcc_correlation_backward(const Tensor& grad_, const Tensor& z_, const Tensor& weights_, const Tensor& target_,
                                const Tensor& q_) {
  check_dcc("dcc_correlation_backward", z_, weights_, target_);
  check_same("dcc_correlation_backward", grad_, q_);
  const Tensor grad = contiguous(grad_), z = contiguous(z_), weights = contiguous(weights_),
               target = contiguous(target_), q = contiguous(q_);
  Tensor gradients = new_empty(z, gradient_shape(z));
  dispatch("dcc_correlation_backward", z, [&]<typename scalar_t>() {
    launch_panels(gradients, weights.numel() / 2,  // there are gradients even where T = 0
                  DccAdjoint<scalar_t>{grad.const_data_ptr<scalar_t>(), z.const_data_ptr<scalar_t>(),
                                       weights.const_data_ptr<scalar_t>(), target.const_data_ptr<scalar_t>(),
                                       q.const_data_ptr<scalar_t>(), gradients.mutable_data_ptr<scalar_t>(), z.size(-2),
                                       z.size(-1)});
  });
  return gradients;
}

}  // namespace

COMMODITY_CUDA(dcc_correlation_backward)
