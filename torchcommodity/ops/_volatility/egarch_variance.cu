// EGARCH variance: h_t = exp(x_t) with x_t = omega + alpha (|z_{t-1}| - sqrt(2 / pi)) + gamma z_{t-1} + beta x_{t-1}
// and z_t = r_t / sqrt(h_t). Computed in float64: exp amplifies the rounding errors of x.
//
// The recursion is not linear in x (z depends on h), so time cannot be split into chunks: one thread per series.
#include "device.h"
#include "variance.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct LogVariance {
  const scalar_t *r, *omega, *alpha, *beta, *gamma, *initial;
  scalar_t* h;
  int64_t steps, assets;

  // A missing return is replaced by its expectation: |z| by sqrt(2 / pi), z by 0.
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    const int64_t column = panel * assets + n;
    const double omega_n = omega[column], alpha_n = alpha[column], beta_n = beta[column], gamma_n = gamma[column];
    double log_h = initial[column];
#pragma unroll 8
    for (int64_t t = 0, i = panel * steps * assets + n; t < steps; ++t, i += assets) {
      const double volatility = std::exp(log_h / 2), z = read(r + i) / volatility;
      const double shock = alpha_n * (std::abs(z) - kMeanAbsolute) + gamma_n * z;
      h[i] = static_cast<scalar_t>(volatility * volatility);
      log_h = omega_n + beta_n * log_h + (z == z ? shock : 0);
    }
  }
};

Tensor egarch_variance(const Tensor& returns_, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                       const Tensor& gamma, const Tensor& initial) {
  const Tensor returns = contiguous(returns_);
  const auto parameters = check_parameters("egarch_variance", returns, {omega, alpha, beta, gamma, initial});
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes());
  dispatch("egarch_variance", returns, [&]<typename scalar_t>() {
    const auto p = parameter_pointers<scalar_t>(parameters);
    launch_grid(h, Grid(panels.batch, panels.assets, 1),
                LogVariance<scalar_t>{returns.const_data_ptr<scalar_t>(), p[0], p[1], p[2], p[3], p[4],
                                      h.mutable_data_ptr<scalar_t>(), panels.steps, panels.assets});
  });
  return h;
}

}  // namespace

COMMODITY_CUDA(egarch_variance)
