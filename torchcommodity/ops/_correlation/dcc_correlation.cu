// Dynamic conditional correlation: Q (..., T, N, N) of residuals (..., T, N). One thread per panel.
#include "dcc_correlation.h"
#include "dcc_panels_device.h"

using namespace commodity;

namespace {

Tensor dcc_correlation(const Tensor& z_, const Tensor& weights_, const Tensor& target_, const Tensor& initial_) {
  check_dcc("dcc_correlation", z_, weights_, target_);
  check_same("dcc_correlation", initial_, target_);
  const Tensor z = contiguous(z_), weights = contiguous(weights_), target = contiguous(target_),
               initial = contiguous(initial_);
  const Panels panels(z);
  Tensor y = new_empty(z, matrix_shape(z));
  dispatch("dcc_correlation", z, [&]<typename scalar_t>() {
    launch_panels(y, panels.batch,
                  DccRecursion<scalar_t>{z.const_data_ptr<scalar_t>(), weights.const_data_ptr<scalar_t>(),
                                         target.const_data_ptr<scalar_t>(), initial.const_data_ptr<scalar_t>(),
                                         y.mutable_data_ptr<scalar_t>(), panels.steps, panels.assets});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(dcc_correlation)
