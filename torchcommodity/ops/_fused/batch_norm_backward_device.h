// Gradient of batch normalization (optionally with ReLU) with batch statistics. Recomputes the normalized values from
// the product; sums as in batch_norm_device.h.
#pragma once
#include "batch_norm_device.h"
#include "batch_norm_gradients.h"

namespace commodity {
namespace {

// The channels, from the statistics of the forward pass.
template <typename scalar_t>
struct LoadChannels {
  const scalar_t *mean, *variance, *gamma, *beta;
  double eps;
  Channel* to;

  COMMODITY_INLINE void operator()(int64_t c) const {
    const double variance_c = read(variance + c);
    to[c] = {read(mean + c), variance_c, (gamma ? read(gamma + c) : 1) / std::sqrt(variance_c + eps),
             beta ? read(beta + c) : 0};
  }
};

// Gradient of x in a channel: scale g + level + slope (x - mean).
struct Linear {
  double level, slope;
};

template <typename scalar_t, bool relu>
struct GradientTerms {
  const Channel* channels;
  const scalar_t *x, *grad;

  // g, the gradient of the input of the ReLU
  COMMODITY_INLINE double gradient(int64_t index, int64_t c, double deviation) const {
    return !relu || deviation * channels[c].scale + channels[c].shift > 0 ? read(grad + index) : 0;
  }
  COMMODITY_INLINE void operator()(int64_t index, int64_t c, double* sums) const {
    const double deviation = read(x + index) - channels[c].mean, g = gradient(index, c, deviation);
    sums[0] += g, sums[1] += g * deviation;
  }
};

template <typename scalar_t>
struct FinishGradients {
  ChannelShape shape;
  const Channel* channels;
  const scalar_t *grad_mean, *grad_variance;
  double eps;
  Linear* linear;
  scalar_t *d_gamma, *d_beta;
  bool* valid;

  // d = scale (g - mean(g) - (x - mean) mean(g (x - mean)) / (variance + eps)), plus the gradients of mean and variance
  COMMODITY_INLINE void operator()(int64_t c, const double* sums) const {
    const Channel& channel = channels[c];
    const double count = static_cast<double>(shape.count()), inverse = 1 / (channel.variance + eps);
    valid[c] = count > 0 && channel.valid();
    linear[c] = {((grad_mean ? read(grad_mean + c) : 0) - channel.scale * sums[0]) / count,
                 ((grad_variance ? 2 * read(grad_variance + c) : 0) - channel.scale * inverse * sums[1]) / count};
    d_gamma[c] = static_cast<scalar_t>(valid[c] ? sums[1] * std::sqrt(inverse) : 0);
    d_beta[c] = static_cast<scalar_t>(valid[c] ? sums[0] : 0);
  }
};

template <typename scalar_t, bool relu>
struct ProductGradient {
  ChannelShape shape;
  GradientTerms<scalar_t, relu> terms;
  const Linear* linear;
  scalar_t* d;

  COMMODITY_INLINE void operator()(int64_t index) const {
    const int64_t c = shape.channel(index);
    const Channel& channel = terms.channels[c];
    const double deviation = terms.x[index] - channel.mean, g = terms.gradient(index, c, deviation);
    const double value = channel.scale * g + linear[c].level + linear[c].slope * deviation;
    d[index] = static_cast<scalar_t>(channel.valid() ? value : 0);  // NaN channels have zero gradients
  }
};

// Writes the gradient of the product to `d`, which may be the product.
template <bool relu>
ProductGradients product_gradients(const GradientInputs& in, const Tensor& d) {
  const ChannelShape shape(in.product);
  const Tensor d_gamma = new_empty(d, {shape.channels}), d_beta = new_empty(d, {shape.channels});
  const Tensor valid = new_empty(d, {shape.channels}, torch::headeronly::ScalarType::Bool);
  const Tensor linear = scratch(d, 2 * shape.channels), channel_memory = scratch(d, 4 * shape.channels);
  dispatch("batch normalization", d, [&]<typename scalar_t>() {
    const Channel* channels = data_ptr<Channel>(channel_memory);
    launch(d, shape.channels,
           LoadChannels<scalar_t>{in.mean.const_data_ptr<scalar_t>(), in.variance.const_data_ptr<scalar_t>(),
                                  optional_ptr<scalar_t>(in.gamma), optional_ptr<scalar_t>(in.beta), in.eps,
                                  data_ptr<Channel>(channel_memory)});
    const GradientTerms<scalar_t, relu> terms{channels, in.product.const_data_ptr<scalar_t>(),
                                              in.grad.const_data_ptr<scalar_t>()};
    reduce_channels<2>(d, shape, terms,
                       FinishGradients<scalar_t>{shape, channels, optional_ptr<scalar_t>(in.grad_mean),
                                                 optional_ptr<scalar_t>(in.grad_variance), in.eps,
                                                 data_ptr<Linear>(linear), d_gamma.mutable_data_ptr<scalar_t>(),
                                                 d_beta.mutable_data_ptr<scalar_t>(), data_ptr<bool>(valid)});
    launch(d, shape.size(),
           ProductGradient<scalar_t, relu>{shape, terms, data_ptr<Linear>(linear), d.mutable_data_ptr<scalar_t>()});
  });
  return {d, d_gamma, d_beta, valid};
}

}  // namespace
}  // namespace commodity
