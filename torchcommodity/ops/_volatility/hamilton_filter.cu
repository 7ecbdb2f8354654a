// Hamilton filter: regime probabilities and log-likelihoods of returns (..., T, N) -> (..., T, K + 1, N). In float64.
// Bayes' rule divides in every row, so that time cannot be split into chunks: one thread per series.
#include "device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Filter {
  const scalar_t *returns, *mean, *variance, *transition, *initial;
  scalar_t* y;
  double *probability, *joint;  // (..., K, N) each
  int64_t steps, count, assets;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    const int64_t column = panel * count * assets + n;
    for (int64_t k = 0; k < count; ++k) joint[column + k * assets] = read(initial + column + k * assets);
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t row = (panel * steps + t) * (count + 1) * assets + n;
      if (t > 0) predict(panel, column, n);
      const double likelihood = update(column, read(returns + (panel * steps + t) * assets + n));
      for (int64_t k = 0; k < count; ++k) y[row + k * assets] = scalar_t(probability[column + k * assets]);
      y[row + count * assets] = static_cast<scalar_t>(likelihood);
    }
  }

  COMMODITY_INLINE void predict(int64_t panel, int64_t column, int64_t n) const {
    for (int64_t to = 0; to < count; ++to) {
      double sum = 0;
      for (int64_t from = 0; from < count; ++from)
        sum += read(transition + (panel * count * count + from * count + to) * assets + n) *
               probability[column + from * assets];
      joint[column + to * assets] = sum;
    }
  }

  // Bayes' rule, with densities relative to the largest among the possible regimes, so that they do not all underflow.
  COMMODITY_INLINE double update(int64_t column, double r) const {
    double largest = -INFINITY, total = 0;
    for (int64_t k = 0; k < count; ++k) {
      const double density = log_density(column + k * assets, r);
      largest = joint[column + k * assets] > 0 && density > largest ? density : largest;
    }
    for (int64_t k = 0; k < count; ++k)
      total += joint[column + k * assets] *= std::exp(log_density(column + k * assets, r) - largest);
    for (int64_t k = 0; k < count; ++k) probability[column + k * assets] = joint[column + k * assets] / total;
    return largest + std::log(total);
  }

  // A missing return carries no information: every regime has density 1.
  COMMODITY_INLINE double log_density(int64_t at, double r) const {
    const double variance_k = read(variance + at), deviation = r - read(mean + at);
    return r == r ? -0.5 * (std::log(6.283185307179586477 * variance_k) + deviation * deviation / variance_k) : 0;
  }
};

Tensor hamilton_filter(const Tensor& returns_, const Tensor& mean_, const Tensor& variance_, const Tensor& transition_,
                       const Tensor& initial_) {
  const Tensor returns = contiguous(returns_), mean = contiguous(mean_), variance = contiguous(variance_),
               transition = contiguous(transition_), initial = contiguous(initial_);
  const Panels panels(returns);
  const int64_t count = mean.size(-2), assets = panels.assets;
  for (const Tensor& x : {mean, variance, initial}) check_rows("hamilton_filter", "parameters", x, returns, count);
  check_rows("hamilton_filter", "transition", transition, returns, count * count);
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape.insert(shape.end() - 1, count + 1);
  Tensor y = new_empty(returns, shape);
  const Tensor probability = scratch(y, panels.batch * count * assets), joint = scratch(y, probability.numel());
  dispatch("hamilton_filter", returns, [&]<typename scalar_t>() {
    launch_grid(y, Grid(panels.batch, assets, 1),
                Filter<scalar_t>{returns.const_data_ptr<scalar_t>(), mean.const_data_ptr<scalar_t>(),
                                 variance.const_data_ptr<scalar_t>(), transition.const_data_ptr<scalar_t>(),
                                 initial.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(),
                                 data_ptr<double>(probability), data_ptr<double>(joint), panels.steps, count, assets});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(hamilton_filter)
