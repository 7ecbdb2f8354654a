// ATen's convolution followed by batch normalization, and the gradients. Scheme: see batch_norm.h and
// batch_norm_device.h.
#include "convolution.h"
#include "normalize_product.h"

using namespace commodity;

namespace {

Outputs conv_bn(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta, Sizes stride, Sizes padding,
                Sizes dilation, int64_t groups, double eps, bool save_product) {
  return normalize_product<false>(Convolution(x, weight, stride, padding, dilation, groups).product(), bias, gamma,
                                  beta, eps, save_product);
}

// z = weight * x, saved or computed again; dz from the gradient of y; dx and dweight from dz.
std::tuple<Tensor, Tensor, Tensor, Tensor> conv_bn_backward(
    const std::optional<Tensor>& grad, const std::optional<Tensor>& grad_mean,
    const std::optional<Tensor>& grad_variance, const std::optional<Tensor>& grad_product, const Tensor& x,
    const Tensor& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& gamma,
    const std::optional<Tensor>& beta, const Tensor& mean, const Tensor& variance, const std::optional<Tensor>& product,
    Sizes stride, Sizes padding, Sizes dilation, int64_t groups, double eps, bool needs_x, bool needs_weight) {
  const Convolution convolution(x, weight, stride, padding, dilation, groups);
  const NormalizedProduct normalized{grad,  grad_mean, grad_variance, grad_product, bias,
                                     gamma, beta,      mean,          variance,     eps};
  const ProductGradients d = normalized.backward<false>(product ? *product : convolution.product(), !product);
  const auto [d_x, d_weight] = convolution.gradients(d.product, needs_x, needs_weight);
  if (needs_weight) mask_channels(d_weight, d.valid);
  const auto none = [&] { return new_empty(x, {0}); };
  return {needs_x ? d_x : none(), needs_weight ? d_weight : none(), d.gamma, d.beta};
}

}  // namespace

COMMODITY_KERNEL(conv_bn,
                 "(Tensor x, Tensor weight, Tensor? bias, Tensor? gamma, Tensor? beta, SymInt[] stride, "
                 "SymInt[] padding, SymInt[] dilation, SymInt groups, float eps, bool save_product) -> (Tensor, "
                 "Tensor, Tensor, Tensor)")
COMMODITY_KERNEL(conv_bn_backward,
                 "(Tensor? grad, Tensor? grad_mean, Tensor? grad_variance, Tensor? grad_product, Tensor x, Tensor "
                 "weight, Tensor? bias, Tensor? gamma, Tensor? beta, Tensor mean, Tensor variance, Tensor? product, "
                 "SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups, float eps, bool needs_x, bool "
                 "needs_weight) -> (Tensor, Tensor, Tensor, Tensor)")
