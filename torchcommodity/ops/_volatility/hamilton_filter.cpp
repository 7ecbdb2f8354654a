// Hamilton filter: regime probabilities and log-likelihoods of returns (..., T, N) -> (..., T, K + 1, N). In float64.
// A block of columns predicts and updates each regime row by row; the loop over the columns is what vectorizes.
#include <array>

#include "native.h"
#include "vector_math.h"

using namespace commodity;

namespace {

using Row = std::array<double, kBlock>;

// A block of columns: the log-density of regime k is log_peak - (r - mean)^2 half_precision.
struct Regimes {
  int64_t count;
  std::vector<Row> mean, log_peak, half_precision, transition, probability, joint;

  template <typename scalar_t>
  Regimes(int64_t count, const scalar_t* means, const scalar_t* variances, const scalar_t* transitions,
          const scalar_t* initial, int64_t stride, int64_t width)
      : count(count),
        mean(count),
        log_peak(count),
        half_precision(count),
        transition(count * count),
        probability(count),
        joint(count) {
    for (int64_t k = 0; k < count; ++k)
      for (int64_t n = 0; n < width; ++n) {
        const double variance = variances[k * stride + n];
        mean[k][n] = means[k * stride + n];
        log_peak[k][n] = -0.5 * std::log(6.283185307179586477 * variance);
        half_precision[k][n] = 0.5 / variance;
        joint[k][n] = initial[k * stride + n];
      }
    for (int64_t k = 0; k < count * count; ++k) std::copy_n(transitions + k * stride, width, transition[k].begin());
  }

  void predict(int64_t width) {
    for (int64_t to = 0; to < count; ++to) {
      std::fill_n(joint[to].begin(), width, 0.0);
      for (int64_t from = 0; from < count; ++from)
        for (int64_t n = 0; n < width; ++n) joint[to][n] += transition[from * count + to][n] * probability[from][n];
    }
  }

  // Bayes' rule, with densities relative to the largest among the possible regimes, so that they do not all underflow.
  template <typename scalar_t>
  void update(const scalar_t* r, scalar_t* likelihood, int64_t width) {
    Row largest, total = {};
    std::fill_n(largest.begin(), width, -std::numeric_limits<double>::infinity());
    for (int64_t k = 0; k < count; ++k)
      for (int64_t n = 0; n < width; ++n) {
        const double density = log_density(k, r[n], n);
        largest[n] = (joint[k][n] > 0) & (density > largest[n]) ? density : largest[n];
      }
    for (int64_t k = 0; k < count; ++k)
      for (int64_t n = 0; n < width; ++n) total[n] += joint[k][n] *= fast_exp(log_density(k, r[n], n) - largest[n]);
    for (int64_t n = 0; n < width; ++n) likelihood[n] = largest[n] + fast_log(total[n]);
    for (int64_t k = 0; k < count; ++k)
      for (int64_t n = 0; n < width; ++n) probability[k][n] = joint[k][n] / total[n];
  }

  // A missing return carries no information: every regime has density 1.
  double log_density(int64_t k, double r, int64_t n) const {
    const double deviation = r - mean[k][n], density = log_peak[k][n] - deviation * deviation * half_precision[k][n];
    return r == r ? density : 0;
  }
};

// `predicted`: if not null, the probabilities before the first row and then after the last (K, stride).
template <typename scalar_t>
COMMODITY_SIMD void filter(Regimes& regimes, const scalar_t* r, scalar_t* y, int64_t steps, int64_t stride,
                           int64_t width, double* predicted) {
  for (int64_t k = 0; predicted && k < regimes.count; ++k)
    std::copy_n(predicted + k * stride, width, regimes.joint[k].begin());
  for (int64_t t = 0; t < steps; ++t, r += stride, y += (regimes.count + 1) * stride) {
    if (t > 0) regimes.predict(width);
    regimes.update(r, y + regimes.count * stride, width);
    for (int64_t k = 0; k < regimes.count; ++k) std::copy_n(regimes.probability[k].begin(), width, y + k * stride);
  }
  if (predicted && steps > 0) regimes.predict(width);
  for (int64_t k = 0; predicted && k < regimes.count; ++k)
    std::copy_n(regimes.joint[k].begin(), width, predicted + k * stride);
}

Tensor run(const Tensor& returns_, const Tensor& mean_, const Tensor& variance_, const Tensor& transition_,
           const Tensor& initial_, double* predicted) {
  const Tensor returns = contiguous(returns_), mean = contiguous(mean_), variance = contiguous(variance_),
               transition = contiguous(transition_), initial = contiguous(initial_);
  const Panels panels(returns);
  const int64_t count = mean.size(-2), assets = panels.assets;
  for (const Tensor& x : {mean, variance, initial}) check_rows("hamilton_filter", "parameters", x, returns, count);
  check_rows("hamilton_filter", "transition", transition, returns, count * count);
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape.insert(shape.end() - 1, count + 1);
  Tensor y = new_empty(returns, shape);
  THO_DISPATCH_V2(
      returns.scalar_type(), "hamilton_filter", AT_WRAP([&] {
        const scalar_t* r_data = returns.const_data_ptr<scalar_t>();
        scalar_t* y_data = y.mutable_data_ptr<scalar_t>();
        for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
          const int64_t offset = panel * count * assets + first, width = last - first;
          Regimes regimes(count, mean.const_data_ptr<scalar_t>() + offset, variance.const_data_ptr<scalar_t>() + offset,
                          transition.const_data_ptr<scalar_t>() + panel * count * count * assets + first,
                          initial.const_data_ptr<scalar_t>() + offset, assets, width);
          filter(regimes, r_data + panel * panels.size() + first, y_data + panel * panels.size() * (count + 1) + first,
                 panels.steps, assets, width, predicted ? predicted + offset : nullptr);
        });
      }),
      AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

Tensor hamilton_filter(const Tensor& returns, const Tensor& mean, const Tensor& variance, const Tensor& transition,
                       const Tensor& initial) {
  return run(returns, mean, variance, transition, initial, nullptr);
}

// The filter over some rows, and the probabilities (..., K, N) predicted after them, from those before them.
std::tuple<Tensor, Tensor> hamilton_filter_step(const Tensor& returns, const Tensor& mean, const Tensor& variance,
                                                const Tensor& transition, const Tensor& before_) {
  const Tensor before = contiguous(before_);
  STD_TORCH_CHECK(before.scalar_type() == torch::headeronly::ScalarType::Double && before.sizes().equals(mean.sizes()),
                  "hamilton_filter_step: the state must be float64 (..., K, N)");
  Tensor after = new_empty(before, before.sizes());
  double* state = after.mutable_data_ptr<double>();
  std::copy_n(before.const_data_ptr<double>(), before.numel(), state);
  return {run(returns, mean, variance, transition, mean, state), after};
}

}  // namespace

COMMODITY_OPERATOR(hamilton_filter,
                   "(Tensor returns, Tensor mean, Tensor variance, Tensor transition, Tensor initial) -> Tensor")
COMMODITY_OPERATOR(
    hamilton_filter_step,
    "(Tensor returns, Tensor mean, Tensor variance, Tensor transition, Tensor state) -> (Tensor, Tensor)")
