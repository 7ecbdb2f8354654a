// Batch normalization of a product, and its gradient, on the device for which this is compiled: the algorithms differ.
#pragma once
#include "kernel.h"

#if defined(COMMODITY_GPU)
#include "batch_norm_backward_device.h"
#else
#include "batch_norm_backward.h"
#endif

namespace commodity {
namespace {

// The gradients of the outputs, where there are any, and what the forward pass gave and was given.
struct NormalizedProduct {
  std::optional<Tensor> grad, grad_mean, grad_variance, grad_product;
  std::optional<Tensor> bias, gamma, beta;
  Tensor mean, variance;
  double eps;

  // The gradient of the product, which may be overwritten if it is nobody else's.
  template <bool relu>
  ProductGradients backward(const Tensor& product_, bool may_overwrite) const {
    for (const auto* x : {&grad_mean, &grad_variance, &bias, &gamma, &beta}) check_channels("parameters", *x, product_);
    check_channels("moments", mean, product_), check_channels("moments", variance, product_);
    for (const auto* x : {&grad, &grad_product})
      if (*x) check_same("batch normalization", **x, product_);
    const Tensor product = as_product(product_, product_);
    const Tensor center = bias ? torch::stable::subtract(mean, *bias) : mean;  // the bias only changes the mean
    const Tensor no_grad = grad ? *grad : torch::stable::new_zeros(product, product.sizes());
    ProductGradients d =
        product_gradients<relu>({as_product(no_grad, product), product, as_contiguous(center), as_contiguous(variance),
                                 optional_contiguous(grad_mean), optional_contiguous(grad_variance),
                                 optional_contiguous(gamma), optional_contiguous(beta), eps},
                                may_overwrite ? product : new_product(product));
    if (grad_product) d.product = torch::stable::subtract(d.product, *grad_product, -1.0);
    return d;
  }
};

// Zeros in the rows of channels that are not valid: their gradient is zero, but zero times NaN is NaN.
template <typename scalar_t>
struct MaskChannels {
  const bool* valid;
  scalar_t* d_weight;
  int64_t row;

  COMMODITY_INLINE int64_t memory() const { return 0; }
  int64_t work() const { return 1; }
  COMMODITY_INLINE void operator()(int64_t c, double*) const {
    if (!valid[c])
      for (int64_t i = c * row; i < (c + 1) * row; ++i) d_weight[i] = 0;
  }
};

inline void mask_channels(const Tensor& d_weight, const Tensor& valid) {
  const int64_t channels = valid.numel();
  dispatch("batch normalization", d_weight, [&]<typename scalar_t>() {
    for_each_panel(d_weight, channels,
                   MaskChannels<scalar_t>{valid.const_data_ptr<bool>(), d_weight.mutable_data_ptr<scalar_t>(),
                                          d_weight.numel() / std::max<int64_t>(1, channels)});
  });
}

}  // namespace
}  // namespace commodity
