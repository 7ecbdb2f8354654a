// ATen's convolution with different padding before and after each axis, and its gradients.
#pragma once
#include "aten.h"
#include "memory_format.h"

namespace commodity {
namespace {  // each kernel file compiles its own

using Sizes = std::vector<int64_t>;

// `padding` holds two values per axis. ATen pads both sides equally; where they differ, x is padded here.
struct Convolution {
  const Tensor &x, &weight;
  const Sizes &stride, &padding, &dilation;
  int64_t groups;
  Sizes none, padding_per_axis;
  Tensor input;

  Convolution(const Tensor& x, const Tensor& weight, const Sizes& stride, const Sizes& padding, const Sizes& dilation,
              int64_t groups)
      : x(x),
        weight(weight),
        stride(stride),
        padding(padding),
        dilation(dilation),
        groups(groups),
        none(stride.size(), 0),
        padding_per_axis(none),
        input(x) {
    STD_TORCH_CHECK(padding.size() == 2 * stride.size(), "convolution: padding must be two values per axis");
    Sizes padding_from_last_axis;
    for (size_t axis = 0; axis < stride.size(); ++axis) {
      padding_per_axis[axis] = padding[2 * axis];
      padding_from_last_axis.insert(padding_from_last_axis.begin(), {padding[2 * axis], padding[2 * axis + 1]});
    }
    if (is_symmetric()) return;
    input = torch::stable::pad(x, padding_from_last_axis, "constant", 0.0);
    padding_per_axis = none;
  }

  bool is_symmetric() const {
    for (size_t side = 0; side < padding.size(); side += 2)
      if (padding[side] != padding[side + 1]) return false;
    return true;
  }

  // The memory format of the product is ATen's.
  Tensor product() const {
    const std::optional<Tensor> no_bias;
    const Tensor z =
        call_aten("aten::convolution", input, weight, no_bias, stride, padding_per_axis, dilation, false, none, groups);
    return as_product(z, z);
  }

  // Gradients of x and weight from that of the product, in its memory format; undefined where they are not needed.
  std::pair<Tensor, Tensor> gradients(const Tensor& grad, bool needs_x, bool needs_weight) const {
    const std::optional<Sizes> no_bias;
    const std::array<bool, 3> needs{needs_x, needs_weight, false};
    auto [d_x, d_weight, d_bias] =
        call_aten_for<3>("aten::convolution_backward", grad, input, weight, no_bias, stride, padding_per_axis, dilation,
                         false, none, groups, torch::headeronly::HeaderOnlyArrayRef<bool>(needs.data(), needs.size()));
    if (needs_x && !is_symmetric())
      for (size_t axis = 0; axis < stride.size(); ++axis) {
        const int64_t dim = int64_t(axis) + 2;
        d_x = torch::stable::narrow(d_x, dim, padding[2 * axis], x.size(dim));
      }
    return {needs_x ? as_product(d_x, grad) : d_x, needs_weight ? as_product(d_weight, grad) : d_weight};
  }
};

}  // namespace
}  // namespace commodity
