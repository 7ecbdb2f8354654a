// x_t = omega + alpha (|z_{t-1}| - sqrt(2 / pi)) + gamma z_{t-1} + beta x_{t-1} and h_t = exp(x_t), for returns
// (..., T, N), with z_t = r_t / sqrt(h_t). In float64 throughout: what x loses, exp makes larger.
//
// z depends on h, so time cannot be cut: an item takes a column.
#include "device.h"
#include "variance.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct LogVariance {
  const scalar_t *r, *omega, *alpha, *beta, *gamma, *initial;
  scalar_t* h;
  int64_t steps, assets;

  // A missing return counts as its expectation: |z| as sqrt(2 / pi), z as 0.
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    const int64_t column = panel * assets + n;
    const double base = omega[column], size = alpha[column], kept = beta[column], sign = gamma[column];
    double now = initial[column];
#pragma unroll 8
    for (int64_t t = 0, at = panel * steps * assets + n; t < steps; ++t, at += assets) {
      const double volatility = std::exp(now / 2), z = read(r + at) / volatility;
      const double shock = size * (std::abs(z) - kMeanAbsolute) + sign * z;
      h[at] = static_cast<scalar_t>(volatility * volatility);
      now = base + kept * now + (z == z ? shock : 0);
    }
  }
};

Tensor egarch_variance(const Tensor& returns_, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                       const Tensor& gamma, const Tensor& initial) {
  const Tensor returns = contiguous(returns_);
  const auto parameters = of_columns("egarch_variance", returns, {omega, alpha, beta, gamma, initial});
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes());
  dispatch("egarch_variance", returns, [&]<typename scalar_t>() {
    const auto of = data_of_columns<scalar_t>(parameters);
    launch_grid(h, Grid(panels.batch, panels.assets, 1),
                LogVariance<scalar_t>{returns.const_data_ptr<scalar_t>(), of[0], of[1], of[2], of[3], of[4],
                                      h.mutable_data_ptr<scalar_t>(), panels.steps, panels.assets});
  });
  return h;
}

}  // namespace

COMMODITY_CUDA(egarch_variance)
