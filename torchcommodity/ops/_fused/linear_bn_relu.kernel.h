// ATen's matrix product followed by batch normalization over the rows and ReLU, and the gradients. Scheme: see
// batch_norm.h and batch_norm_device.h.
#include "normalize_product.h"

using namespace commodity;

namespace {

Tensor product_of(const Tensor& x, const Tensor& weight) {
  const std::optional<Tensor> no_bias;
  return call_aten("aten::linear", x, weight, no_bias);
}

Outputs linear_bn_relu(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                       const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta, double eps,
                       bool save_product) {
  return normalize_product<true>(product_of(x, weight), bias, gamma, beta, eps, save_product);
}

// z = W x, saved or computed again; dz from the gradient of y; dx = dz W, dW = dz' x.
std::tuple<Tensor, Tensor, Tensor, Tensor> linear_bn_relu_backward(
    const std::optional<Tensor>& grad, const std::optional<Tensor>& grad_mean,
    const std::optional<Tensor>& grad_variance, const std::optional<Tensor>& grad_product, const Tensor& x,
    const Tensor& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& gamma,
    const std::optional<Tensor>& beta, const Tensor& mean, const Tensor& variance, const std::optional<Tensor>& product,
    double eps, bool needs_x, bool needs_weight) {
  STD_TORCH_CHECK(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1),
                  "linear_bn_relu_backward: x must be (B, C), weight (D, C)");
  const NormalizedProduct normalized{grad,  grad_mean, grad_variance, grad_product, bias,
                                     gamma, beta,      mean,          variance,     eps};
  const ProductGradients d = normalized.backward<true>(product ? *product : product_of(x, weight), !product);
  const int64_t rows = x.size(0), features = weight.size(0);
  const Tensor d_x = new_empty(x, {needs_x ? rows : 0, x.size(1)});
  const Tensor d_weight = new_empty(x, {needs_weight ? features : 0, x.size(1)});
  if (needs_x) multiply(d.product, weight, d_x);
  if (needs_weight) {
    multiply(as_matrix(d.product, features, rows, 1, features), x, d_weight);
    mask_channels(d_weight, d.valid);
  }
  return {d_x, d_weight, d.gamma, d.beta};
}

}  // namespace

COMMODITY_KERNEL(linear_bn_relu,
                 "(Tensor x, Tensor weight, Tensor? bias=None, Tensor? gamma=None, Tensor? beta=None, float eps=1e-05, "
                 "bool save_product=False) -> (Tensor, Tensor, Tensor, Tensor)")
COMMODITY_KERNEL(linear_bn_relu_backward,
                 "(Tensor? grad, Tensor? grad_mean, Tensor? grad_variance, Tensor? grad_product, Tensor x, Tensor "
                 "weight, Tensor? bias, Tensor? gamma, Tensor? beta, Tensor mean, Tensor variance, Tensor? product, "
                 "float eps, bool needs_x, bool needs_weight) -> (Tensor, Tensor, Tensor, Tensor)")
