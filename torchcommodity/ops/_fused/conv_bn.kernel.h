// ATen's convolution followed by batch normalization. Scheme: see batch_norm.h and batch_norm_device.h.
#include "convolution.h"
#include "normalize_product.h"

using namespace commodity;

namespace {

Outputs conv_bn(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta, Sizes stride, Sizes padding,
                Sizes dilation, int64_t groups, double eps, bool save_product) {
  return normalize_product<false>(convolution(x, weight, stride, padding, dilation, groups), bias, gamma, beta, eps,
                                  save_product);
}

}  // namespace

COMMODITY_KERNEL(conv_bn,
                 "(Tensor x, Tensor weight, Tensor? bias, Tensor? gamma, Tensor? beta, SymInt[] stride, "
                 "SymInt[] padding, SymInt[] dilation, SymInt groups, float eps, bool save_product) -> (Tensor, "
                 "Tensor, Tensor, Tensor)")
