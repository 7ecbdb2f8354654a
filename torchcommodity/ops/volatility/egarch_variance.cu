// x_t = omega + alpha (|z_{t-1}| - sqrt(2 / pi)) + gamma z_{t-1} + beta x_{t-1} and h_t = exp(x_t), for returns
// (..., T, N), with z_t = r_t / sqrt(h_t). In float64 throughout: what x loses, exp makes larger.
//
// z depends on h, so time cannot be cut: an item takes a column.
#include "device.h"

using namespace commodity;

namespace {

constexpr double kMeanAbsolute = 0.79788456080286535588;  // of a standard normal number: sqrt(2 / pi)

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
  const Tensor parameters[5] = {contiguous(omega), contiguous(alpha), contiguous(beta), contiguous(gamma),
                                contiguous(initial)};
  const Panels panels(returns);
  for (const Tensor& parameter : parameters)
    STD_TORCH_CHECK(
        parameter.numel() * panels.steps == returns.numel() && parameter.scalar_type() == returns.scalar_type(),
        "egarch_variance: parameters must be (..., N) and have the dtype of returns (..., T, N)");
  Tensor h = new_empty(returns, returns.sizes());
  dispatch("egarch_variance", returns, [&]<typename scalar_t>() {
    const scalar_t* of[5];
    for (int i = 0; i < 5; ++i) of[i] = parameters[i].const_data_ptr<scalar_t>();
    launch_grid(h, Grid(panels.batch, panels.assets, 1),
                LogVariance<scalar_t>{returns.const_data_ptr<scalar_t>(), of[0], of[1], of[2], of[3], of[4],
                                      h.mutable_data_ptr<scalar_t>(), panels.steps, panels.assets});
  });
  return h;
}

}  // namespace

COMMODITY_CUDA(egarch_variance)
