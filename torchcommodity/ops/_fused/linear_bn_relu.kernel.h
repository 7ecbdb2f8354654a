// ATen's matrix product followed by batch normalization over the rows and ReLU. Scheme: see batch_norm.h and
// batch_norm_device.h.
#include "aten.h"
#include "normalize_product.h"

using namespace commodity;

namespace {

Outputs linear_bn_relu(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                       const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta, double eps,
                       bool save_product) {
  const Tensor product = call_aten("aten::mm", x, torch::stable::transpose(weight, 0, 1));
  return normalize_product<true>(product, bias, gamma, beta, eps, save_product);
}

}  // namespace

COMMODITY_KERNEL(linear_bn_relu,
                 "(Tensor x, Tensor weight, Tensor? bias=None, Tensor? gamma=None, Tensor? beta=None, float eps=1e-05, "
                 "bool save_product=False) -> (Tensor, Tensor, Tensor, Tensor)")
