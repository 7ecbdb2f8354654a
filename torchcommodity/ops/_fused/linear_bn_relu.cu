// ATen's matrix product followed by batch normalization over the rows and ReLU. Scheme: see batch_norm_device.h.
#include "aten.h"
#include "batch_norm_device.h"

using namespace commodity;

namespace {

Outputs linear_bn_relu(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                       const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta, double eps,
                       bool save_product) {
  const Tensor product = call_aten("aten::mm", x, torch::stable::transpose(weight, 0, 1));
  return normalize_product<true>(product, bias, gamma, beta, eps, save_product);
}

}  // namespace

COMMODITY_CUDA(linear_bn_relu)
