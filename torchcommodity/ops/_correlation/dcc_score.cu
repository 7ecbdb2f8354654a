// Log-likelihood of DCC and its derivatives by a and b: sums over time (..., 9) of residuals (..., T, N). One thread
// per panel.
#include "dcc_panels_device.h"
#include "dcc_score.h"

using namespace commodity;

namespace {

Tensor dcc_score(const Tensor& z_, const Tensor& weights_, const Tensor& target_, bool derivatives) {
  check_dcc("dcc_score", z_, weights_, target_);
  const Tensor z = contiguous(z_), weights = contiguous(weights_), target = contiguous(target_);
  std::vector<int64_t> shape(weights.sizes().begin(), weights.sizes().end());
  shape.back() = kScoreSums;
  Tensor y = new_empty(z, shape);
  dispatch("dcc_score", z, [&]<typename scalar_t>() {
    launch_panels(y, weights.numel() / 2,
                  DccScore<scalar_t>{z.const_data_ptr<scalar_t>(), weights.const_data_ptr<scalar_t>(),
                                     target.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), z.size(-2),
                                     z.size(-1), derivatives});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(dcc_score)
