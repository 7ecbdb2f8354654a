// The gradient of batch normalization over the batch, after ReLU if asked for, from the product that was normalized.
#include "batch_norm_device.h"

using namespace commodity;

namespace {

// The channels, from the statistics that the forward pass found.
template <typename scalar_t>
struct Recall {
  const scalar_t *mean, *variance, *gamma, *beta;
  double eps;
  Channel* to;

  COMMODITY_INLINE void operator()(int64_t c) const {
    const double spread = read(variance + c);
    to[c] = {read(mean + c), spread, (gamma ? read(gamma + c) : 1) / std::sqrt(spread + eps),
             beta ? read(beta + c) : 0};
  }
};

// What a channel needs to give its gradient: scale g + level + slope (x - mean).
struct Linear {
  double level, slope;
};

template <typename scalar_t, bool relu>
struct Pulled {
  const Channel* channels;
  const scalar_t *x, *grad;

  // the gradient that ReLU lets through
  COMMODITY_INLINE double gradient(int64_t at, int64_t c, double apart) const {
    return !relu || apart * channels[c].scale + channels[c].shift > 0 ? read(grad + at) : 0;
  }
  COMMODITY_INLINE void operator()(int64_t at, int64_t c, double* sums) const {
    const double apart = read(x + at) - channels[c].mean, g = gradient(at, c, apart);
    sums[0] += g, sums[1] += g * apart;
  }
};

template <typename scalar_t>
struct Join {
  ChannelShape shape;
  const Channel* channels;
  const scalar_t *of_mean, *of_variance;
  double eps;
  Linear* linear;
  scalar_t *d_gamma, *d_beta;
  bool* known;

  // d = scale (g - mean(g) - (x - mean) mean(g (x - mean)) / (variance + eps)), and what comes by the statistics
  COMMODITY_INLINE void operator()(int64_t c, const double* sums) const {
    const Channel& channel = channels[c];
    const double count = static_cast<double>(shape.count()), inverse = 1 / (channel.variance + eps);
    known[c] = count > 0 && channel.valid();
    linear[c] = {(read(of_mean + c) - channel.scale * sums[0]) / count,
                 (2 * read(of_variance + c) - channel.scale * inverse * sums[1]) / count};
    d_gamma[c] = static_cast<scalar_t>(known[c] ? sums[1] * std::sqrt(inverse) : 0);
    d_beta[c] = static_cast<scalar_t>(known[c] ? sums[0] : 0);
  }
};

template <typename scalar_t, bool relu>
struct Gradient {
  ChannelShape shape;
  Pulled<scalar_t, relu> pulled;
  const Linear* linear;
  scalar_t* d;

  COMMODITY_INLINE void operator()(int64_t at) const {
    const int64_t c = shape.channel(at);
    const Channel& channel = pulled.channels[c];
    const double apart = read(pulled.x + at) - channel.mean, g = pulled.gradient(at, c, apart);
    const double all = channel.scale * g + linear[c].level + linear[c].slope * apart;
    d[at] = static_cast<scalar_t>(channel.valid() ? all : 0);  // a NaN output takes no part, whatever its gradient
  }
};

using Found = std::tuple<Tensor, Tensor, Tensor, Tensor>;

template <bool relu>
Found gradients(const Tensor& grad, const Tensor& of_mean, const Tensor& of_variance, const Tensor& product,
                const Tensor& mean, const Tensor& variance, const std::optional<Tensor>& gamma,
                const std::optional<Tensor>& beta, double eps) {
  const ChannelShape shape(product);
  Tensor d = new_empty(product, product.sizes()), d_gamma = new_empty(product, {shape.channels});
  Tensor d_beta = new_empty(product, {shape.channels});
  Tensor known = new_empty(product, {shape.channels}, torch::headeronly::ScalarType::Bool);
  const Tensor linear = scratch(product, 2 * shape.channels), found = scratch(product, 4 * shape.channels);
  dispatch("batch_norm_backward", product, [&]<typename scalar_t>() {
    const Channel* channels = data_ptr<Channel>(found);
    launch(product, shape.channels,
           Recall<scalar_t>{mean.const_data_ptr<scalar_t>(), variance.const_data_ptr<scalar_t>(),
                            values<scalar_t>(gamma), values<scalar_t>(beta), eps, data_ptr<Channel>(found)});
    const Pulled<scalar_t, relu> pulled{channels, product.const_data_ptr<scalar_t>(), grad.const_data_ptr<scalar_t>()};
    over_channels<2>(
        product, shape, pulled,
        Join<scalar_t>{shape, channels, of_mean.const_data_ptr<scalar_t>(), of_variance.const_data_ptr<scalar_t>(), eps,
                       data_ptr<Linear>(linear), d_gamma.mutable_data_ptr<scalar_t>(),
                       d_beta.mutable_data_ptr<scalar_t>(), data_ptr<bool>(known)});
    launch(product, shape.size(),
           Gradient<scalar_t, relu>{shape, pulled, data_ptr<Linear>(linear), d.mutable_data_ptr<scalar_t>()});
  });
  return {d, d_gamma, d_beta, known};
}

Found batch_norm_backward(const Tensor& grad, const Tensor& grad_mean, const Tensor& grad_variance,
                          const Tensor& product, const Tensor& mean, const Tensor& variance,
                          const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta, bool relu,
                          double eps) {
  check_same("batch_norm_backward", grad, product);
  return (relu ? gradients<true> : gradients<false>)(contiguous(grad), contiguous(grad_mean), contiguous(grad_variance),
                                                     contiguous(product), contiguous(mean), contiguous(variance),
                                                     packed(gamma), packed(beta), eps);
}

}  // namespace

COMMODITY_CUDA(batch_norm_backward)
