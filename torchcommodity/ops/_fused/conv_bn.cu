// ATen's convolution followed by batch normalization in place. Scheme: see batch_norm_device.h.
#include "batch_norm_device.h"
#include "convolution.h"

using namespace commodity;

namespace {

std::tuple<Tensor, Tensor, Tensor> conv_bn(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                                           const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta,
                                           Sizes stride, Sizes padding, Sizes dilation, int64_t groups, double eps) {
  return normalize_product<false>(convolution(x, weight, stride, padding, dilation, groups), bias, gamma, beta, eps);
}

}  // namespace

COMMODITY_CUDA(conv_bn)
