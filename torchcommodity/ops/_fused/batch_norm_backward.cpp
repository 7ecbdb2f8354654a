// The gradient of batch normalization over the batch, after ReLU if asked for, from the product that was normalized.
#include "batch_norm.h"

using namespace commodity;

namespace {

// Sums over a channel of the gradient that ReLU lets through, and of this times x - mean.
struct Pulled {
  std::vector<double> plain, times;
};

template <bool relu, typename scalar_t>
COMMODITY_SIMD Pulled pulled_part(const Product& p, const Affine<scalar_t>& affine, const scalar_t* x,
                                  const scalar_t* grad, int64_t first, int64_t last) {
  const scalar_t *mean = affine.mean.data(), *scale = affine.scale.data(), *shift = affine.shift.data();
  Pulled sums{std::vector<double>(p.channels), std::vector<double>(p.channels)};
  p.sum<scalar_t, 2>(first, last, {sums.plain.data(), sums.times.data()}, [=](int64_t at, int64_t c) {
    const scalar_t apart = x[at] - mean[c], pulled = grad[at];
    const scalar_t g = !relu || apart * scale[c] + shift[c] > 0 ? pulled : scalar_t(0);
    return std::array{g, g * apart};
  });
  return sums;
}

template <bool relu, typename scalar_t>
Pulled pulled(const Product& p, const Affine<scalar_t>& affine, const scalar_t* x, const scalar_t* grad) {
  std::vector<Pulled> parts(p.parts);
  p.for_each_part([&](int64_t part, int64_t first, int64_t last) {
    parts[part] = pulled_part<relu>(p, affine, x, grad, first, last);
  });
  Pulled total{std::vector<double>(p.channels), std::vector<double>(p.channels)};
  for (const auto& part : parts)
    for (int64_t c = 0; c < p.channels; ++c) total.plain[c] += part.plain[c], total.times[c] += part.times[c];
  return total;
}

// The gradient of x is linear in x and in the gradient of y: scale g + level + slope (x - mean).
template <typename scalar_t>
struct Linear {
  std::vector<scalar_t> level, slope;
};

template <bool relu, typename scalar_t>
COMMODITY_SIMD void gradient_part(const Product& p, const Affine<scalar_t>& affine, const Linear<scalar_t>& linear,
                                  const scalar_t* x, const scalar_t* grad, scalar_t* d, int64_t first, int64_t last) {
  const scalar_t *mean = affine.mean.data(), *scale = affine.scale.data(), *shift = affine.shift.data();
  const scalar_t *level = linear.level.data(), *slope = linear.slope.data();
  p.map(first, last, [=](int64_t at, int64_t c) {
    const scalar_t apart = x[at] - mean[c], pulled = grad[at];
    const scalar_t g = !relu || apart * scale[c] + shift[c] > 0 ? pulled : scalar_t(0);
    const scalar_t all = scale[c] * g + level[c] + slope[c] * apart;
    d[at] = mean[c] == mean[c] ? all : scalar_t(0);  // a NaN output takes no part, whatever its gradient
  });
}

struct Given {
  Tensor grad, grad_mean, grad_variance, product, mean, variance;
  std::optional<Tensor> gamma, beta;
  double eps;
};

struct Found {
  Tensor product, gamma, beta, known;
};

template <bool relu, typename scalar_t>
void gradient(const Given& given, Found& found, const scalar_t* x, scalar_t* d) {
  const Product p(given.product);
  const scalar_t *g = given.grad.const_data_ptr<scalar_t>(), *of_mean = given.grad_mean.const_data_ptr<scalar_t>(),
                 *of_variance = given.grad_variance.const_data_ptr<scalar_t>(), *gamma = values<scalar_t>(given.gamma);
  scalar_t *d_gamma = found.gamma.mutable_data_ptr<scalar_t>(), *d_beta = found.beta.mutable_data_ptr<scalar_t>();
  bool* known = found.known.mutable_data_ptr<bool>();
  const scalar_t *mean = given.mean.const_data_ptr<scalar_t>(), *variance = given.variance.const_data_ptr<scalar_t>();
  const double count = double(p.outer * p.inner);
  std::vector<Moments> statistics(p.channels);
  for (int64_t c = 0; c < p.channels; ++c) {
    statistics[c] = {count, double(mean[c]), variance[c] * count};
    if (!statistics[c].valid()) statistics[c].mean = NAN;
  }
  const Affine affine(statistics, gamma, values<scalar_t>(given.beta), given.eps);
  const Pulled sums = pulled<relu>(p, affine, x, g);
  Linear<scalar_t> linear{std::vector<scalar_t>(p.channels), std::vector<scalar_t>(p.channels)};
  for (int64_t c = 0; c < p.channels; ++c) {
    // d = scale (g - mean(g) - (x - mean) mean(g (x - mean)) / (variance + eps)), and what comes by the statistics
    const double inverse = 1 / (statistics[c].variance() + given.eps);
    const double scale = (gamma ? gamma[c] : 1) * std::sqrt(inverse);
    known[c] = statistics[c].valid();
    linear.level[c] = scalar_t((of_mean[c] - scale * sums.plain[c]) / count);
    linear.slope[c] = scalar_t((2 * of_variance[c] - scale * inverse * sums.times[c]) / count);
    d_gamma[c] = scalar_t(known[c] ? sums.times[c] * std::sqrt(inverse) : 0);
    d_beta[c] = scalar_t(known[c] ? sums.plain[c] : 0);
  }
  p.for_each_part(
      [&](int64_t, int64_t first, int64_t last) { gradient_part<relu>(p, affine, linear, x, g, d, first, last); });
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& grad, const Tensor& grad_mean,
                                                               const Tensor& grad_variance, const Tensor& product,
                                                               const Tensor& mean, const Tensor& variance,
                                                               const std::optional<Tensor>& gamma,
                                                               const std::optional<Tensor>& beta, bool relu,
                                                               double eps) {
  check_same("batch_norm_backward", grad, product);
  const Given given{contiguous(grad),    contiguous(grad_mean), contiguous(grad_variance),
                    contiguous(product), contiguous(mean),      contiguous(variance),
                    packed(gamma),       packed(beta),          eps};
  const int64_t channels = product.size(1);
  Found found{new_empty(product, product.sizes()), new_empty(product, {channels}), new_empty(product, {channels}),
              new_empty(product, {channels}, torch::headeronly::ScalarType::Bool)};
  THO_DISPATCH_V2(product.scalar_type(), "batch_norm_backward", AT_WRAP([&] {
                    const scalar_t* x = given.product.const_data_ptr<scalar_t>();
                    scalar_t* d = found.product.mutable_data_ptr<scalar_t>();
                    relu ? gradient<true>(given, found, x, d) : gradient<false>(given, found, x, d);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {found.product, found.gamma, found.beta, found.known};
}

}  // namespace

COMMODITY_OPERATOR(batch_norm_backward,
                   "(Tensor grad, Tensor grad_mean, Tensor grad_variance, Tensor product, Tensor mean, Tensor "
                   "variance, Tensor? gamma, Tensor? beta, bool relu, float eps) -> (Tensor, Tensor, Tensor, Tensor)")
