// ATen's convolution with a padding of its own before and after each axis.
#pragma once
#include "aten.h"

namespace commodity {

using Sizes = std::vector<int64_t>;

// `padding` is what comes before and after each axis. ATen pads both sides alike: where they differ, x is padded here.
inline Tensor convolution(const Tensor& x, const Tensor& weight, const Sizes& stride, const Sizes& padding,
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
  return contiguous(call_aten("aten::convolution", contiguous(input), weight, no_bias, stride, alike ? both : none,
                              dilation, false, none, groups));
}

}  // namespace commodity
