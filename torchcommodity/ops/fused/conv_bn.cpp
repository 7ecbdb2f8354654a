// ATen's convolution, then batch normalisation over the batch: the product is normalised in its place.
#include "aten.h"
#include "batch_norm.h"

using namespace commodity;

namespace {

using Sizes = std::vector<int64_t>;

// `padding` is what comes before and after each axis. ATen pads both sides alike: where they differ, x is padded here.
Tensor convolution(const Tensor& x, const Tensor& weight, const Sizes& stride, const Sizes& padding,
                   const Sizes& dilation, int64_t groups) {
  const size_t axes = stride.size();
  const Sizes none(axes, 0);
  Sizes both(axes), from_last;
  bool alike = true;
  for (size_t axis = 0; axis < axes; ++axis) {
    both[axis] = padding[2 * axis];
    alike &= both[axis] == padding[2 * axis + 1];
    from_last.insert(from_last.begin(), {padding[2 * axis], padding[2 * axis + 1]});
  }
  const Tensor input = alike ? x : torch::stable::pad(x, from_last, "constant", 0.0);
  const std::optional<Tensor> no_bias;
  return contiguous(aten("aten::convolution", contiguous(input), weight, no_bias, stride, alike ? both : none, dilation,
                         false, none, groups));
}

Outputs conv_bn(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta, Sizes stride, Sizes padding,
                Sizes dilation, int64_t groups, double eps) {
  return normalised<false>(convolution(x, weight, stride, padding, dilation, groups), bias, gamma, beta, eps);
}

}  // namespace

COMMODITY_OPERATOR(conv_bn,
                   "(Tensor x, Tensor weight, Tensor? bias, Tensor? gamma, Tensor? beta, SymInt[] stride, "
                   "SymInt[] padding, SymInt[] dilation, SymInt groups, float eps) -> (Tensor, Tensor, Tensor)")
