// Gradient of batch normalization (optionally with ReLU) with batch statistics. Recomputes the normalized values from
// the product; parts and sums as in batch_norm.h.
#pragma once
#include "batch_norm.h"
#include "batch_norm_gradients.h"

namespace commodity {
namespace {

// Sums over a channel of g, the gradient of the input of the ReLU, and of g (x - mean).
struct GradientSums {
  std::vector<double> sum, weighted_sum;
};

template <bool relu, typename scalar_t>
COMMODITY_SIMD GradientSums part_sums(const ProductShape& p, const ChannelAffine<scalar_t>& affine, const scalar_t* x,
                                      const scalar_t* grad, int64_t first, int64_t last) {
  const scalar_t *mean = affine.mean.data(), *scale = affine.scale.data(), *shift = affine.shift.data();
  GradientSums sums{std::vector<double>(p.channels), std::vector<double>(p.channels)};
  p.sum<scalar_t, 2>(first, last, {sums.sum.data(), sums.weighted_sum.data()}, [=](int64_t i, int64_t c) {
    const scalar_t deviation = x[i] - mean[c], output_grad = grad[i];
    const scalar_t g = !relu || deviation * scale[c] + shift[c] > 0 ? output_grad : scalar_t(0);
    return std::array{g, g * deviation};
  });
  return sums;
}

template <bool relu, typename scalar_t>
GradientSums gradient_sums(const ProductShape& p, const ChannelAffine<scalar_t>& affine, const scalar_t* x,
                           const scalar_t* grad) {
  std::vector<GradientSums> parts(p.parts);
  p.for_each_part([&](int64_t part, int64_t first, int64_t last) {
    parts[part] = part_sums<relu>(p, affine, x, grad, first, last);
  });
  GradientSums total{std::vector<double>(p.channels), std::vector<double>(p.channels)};
  for (const auto& part : parts)
    for (int64_t c = 0; c < p.channels; ++c) total.sum[c] += part.sum[c], total.weighted_sum[c] += part.weighted_sum[c];
  return total;
}

// Gradient of x: scale g + level + slope (x - mean).
template <typename scalar_t>
struct Linear {
  std::vector<scalar_t> level, slope;
};

template <bool relu, typename scalar_t>
COMMODITY_SIMD void gradient_part(const ProductShape& p, const ChannelAffine<scalar_t>& affine,
                                  const Linear<scalar_t>& linear, const scalar_t* x, const scalar_t* grad, scalar_t* d,
                                  int64_t first, int64_t last) {
  const scalar_t *mean = affine.mean.data(), *scale = affine.scale.data(), *shift = affine.shift.data();
  const scalar_t *level = linear.level.data(), *slope = linear.slope.data();
  p.for_each_value(first, last, [=](int64_t i, int64_t c) {
    const scalar_t deviation = x[i] - mean[c], output_grad = grad[i];
    const scalar_t g = !relu || deviation * scale[c] + shift[c] > 0 ? output_grad : scalar_t(0);
    const scalar_t value = scale[c] * g + level[c] + slope[c] * deviation;
    d[i] = mean[c] == mean[c] ? value : scalar_t(0);  // NaN channels have zero gradients
  });
}

template <bool relu, typename scalar_t>
void gradient(const GradientInputs& in, ProductGradients& out, const scalar_t* x, scalar_t* d) {
  const ProductShape p(in.product);
  const scalar_t *g = in.grad.const_data_ptr<scalar_t>(), *grad_mean = optional_ptr<scalar_t>(in.grad_mean),
                 *grad_variance = optional_ptr<scalar_t>(in.grad_variance), *gamma = optional_ptr<scalar_t>(in.gamma);
  scalar_t *d_gamma = out.gamma.mutable_data_ptr<scalar_t>(), *d_beta = out.beta.mutable_data_ptr<scalar_t>();
  bool* valid = out.valid.mutable_data_ptr<bool>();
  const scalar_t *mean = in.mean.const_data_ptr<scalar_t>(), *variance = in.variance.const_data_ptr<scalar_t>();
  const double count = double(p.outer * p.inner);
  std::vector<Moments> statistics(p.channels);
  for (int64_t c = 0; c < p.channels; ++c) {
    statistics[c] = {count, double(mean[c]), variance[c] * count};
    if (!statistics[c].valid()) statistics[c].mean = NAN;
  }
  const ChannelAffine affine(statistics, gamma, optional_ptr<scalar_t>(in.beta), in.eps);
  const GradientSums sums = gradient_sums<relu>(p, affine, x, g);
  Linear<scalar_t> linear{std::vector<scalar_t>(p.channels), std::vector<scalar_t>(p.channels)};
  for (int64_t c = 0; c < p.channels; ++c) {
    // d = scale (g - mean(g) - (x - mean) mean(g (x - mean)) / (variance + eps)) + the gradients of mean and variance
    const double inverse = 1 / (statistics[c].variance() + in.eps);
    const double scale = (gamma ? gamma[c] : 1) * std::sqrt(inverse);
    valid[c] = statistics[c].valid();
    linear.level[c] = scalar_t(((grad_mean ? grad_mean[c] : 0) - scale * sums.sum[c]) / count);
    linear.slope[c] =
        scalar_t(((grad_variance ? 2 * grad_variance[c] : 0) - scale * inverse * sums.weighted_sum[c]) / count);
    d_gamma[c] = scalar_t(valid[c] ? sums.weighted_sum[c] * std::sqrt(inverse) : 0);
    d_beta[c] = scalar_t(valid[c] ? sums.sum[c] : 0);
  }
  p.for_each_part(
      [&](int64_t, int64_t first, int64_t last) { gradient_part<relu>(p, affine, linear, x, g, d, first, last); });
}

// Writes the gradient of the product to `d`, which may be the product.
template <bool relu>
ProductGradients product_gradients(const GradientInputs& in, const Tensor& d) {
  const int64_t channels = in.product.size(1);
  ProductGradients out{d, new_empty(d, {channels}), new_empty(d, {channels}),
                       new_empty(d, {channels}, torch::headeronly::ScalarType::Bool)};
  dispatch("batch normalization", d, [&]<typename scalar_t>() {
    gradient<relu>(in, out, in.product.const_data_ptr<scalar_t>(), d.mutable_data_ptr<scalar_t>());
  });
  return out;
}

}  // namespace
}  // namespace commodity
