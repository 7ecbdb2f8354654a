// Log-density of rows (..., N) under normal distributions with mean zero and covariances (..., N, N). One thread per
// row.
#include "dcc_panels_device.h"
#include "normal_log_likelihood.h"

using namespace commodity;

namespace {

Tensor normal_log_likelihood(const Tensor& x_, const Tensor& covariance_) {
  STD_TORCH_CHECK(covariance_.numel() == x_.numel() * x_.size(-1) && covariance_.scalar_type() == x_.scalar_type(),
                  "normal_log_likelihood: covariance must be (..., N, N) and have the dtype of x (..., N)");
  const Tensor x = contiguous(x_), covariance = contiguous(covariance_);
  Tensor y = new_empty(x, std::vector<int64_t>(x.sizes().begin(), x.sizes().end() - 1));
  dispatch("normal_log_likelihood", x, [&]<typename scalar_t>() {
    launch_panels(y, y.numel(),
                  NormalLogLikelihood<scalar_t>{x.const_data_ptr<scalar_t>(), covariance.const_data_ptr<scalar_t>(),
                                                y.mutable_data_ptr<scalar_t>(), x.size(-1)});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(normal_log_likelihood)
