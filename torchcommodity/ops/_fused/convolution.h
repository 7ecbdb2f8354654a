// ATen's convolution with different padding before and after each axis.
#pragma once
#include "aten.h"
#include "memory_format.h"

namespace commodity {

using Sizes = std::vector<int64_t>;

// `padding` holds two values per axis. ATen pads both sides equally; where they differ, x is padded here. The memory
// format of the result is ATen's.
inline Tensor convolution(const Tensor& x, const Tensor& weight, const Sizes& stride, const Sizes& padding,
                          const Sizes& dilation, int64_t groups) {
  const size_t axes = stride.size();
  const Sizes none(axes, 0);
  Sizes padding_per_axis(axes), padding_from_last_axis;
  bool symmetric = true;
  for (size_t axis = 0; axis < axes; ++axis) {
    padding_per_axis[axis] = padding[2 * axis];
    symmetric &= padding_per_axis[axis] == padding[2 * axis + 1];
    padding_from_last_axis.insert(padding_from_last_axis.begin(), {padding[2 * axis], padding[2 * axis + 1]});
  }
  const Tensor input = symmetric ? x : torch::stable::pad(x, padding_from_last_axis, "constant", 0.0);
  const std::optional<Tensor> no_bias;
  const Tensor product = call_aten("aten::convolution", input, weight, no_bias, stride,
                                   symmetric ? padding_per_axis : none, dilation, false, none, groups);
  return as_product(product, product);
}

}  // namespace commodity
