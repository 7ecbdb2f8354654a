// Gradients of egarch_variance with respect to the returns and the parameters: (..., T + 5, N). The adjoint is that of
// ln h; with h known from the forward pass its recursion is linear. Scheme: see variance_backward_device.h.
#include "variance_backward_device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Egarch {
  VarianceRows<scalar_t> rows;

  struct Row {
    double x, variance, z, alpha, gamma;
  };

  // A variance without a logarithm (0, infinite, NaN) has no gradient; a missing return counts as z = 0.
  COMMODITY_INLINE Row row(int64_t panel, int64_t t, int64_t n) const {
    const int64_t i = rows.index(panel, t, n), column = panel * rows.assets + n;
    const double x = read(rows.r + i), h = read(rows.h + i);
    const double variance = h > 0 && h < HUGE_VAL ? h : 1;
    const double z = (x == x ? x : 0) / std::sqrt(variance);
    return {x, variance, z, read(rows.alpha + column), read(rows.gamma + column)};
  }
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const Row now = row(panel, t, n);
    const int64_t i = rows.index(panel, t, n);
    const double h = read(rows.h + i), beta = read(rows.beta + panel * rows.assets + n);
    const double slope = beta - (now.alpha * std::abs(now.z) + now.gamma * now.z) / 2;
    return {slope, {h == h ? now.variance * read(rows.grad + i) : 0}};
  }
  COMMODITY_INLINE scalar_t return_gradient(int64_t panel, int64_t t, int64_t n, double adjoint) const {
    const Row now = row(panel, t, n);
    const double sign = now.z > 0 ? now.alpha : now.z < 0 ? -now.alpha : 0;
    return now.x == now.x ? adjoint * (sign + now.gamma) / std::sqrt(now.variance) : 0;
  }
  COMMODITY_INLINE void add_parameters(int64_t panel, int64_t t, int64_t n, double (&sums)[kTimeSums]) const {
    const Row now = row(panel, t, n);
    const double adjoint = rows.adjoint[rows.index(panel, t, n)];
    sums[0] += adjoint;
    sums[1] += now.x == now.x ? adjoint * (std::abs(now.z) - kMeanAbsolute) : 0;
    sums[2] += adjoint * std::log(now.variance);
    sums[3] += adjoint * now.z;
  }
};

Tensor egarch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                                const Tensor& gamma, const Tensor& h, bool needs_returns) {
  return variance_backward<Egarch>("egarch_variance_backward", grad, returns, alpha, beta, gamma, h, needs_returns);
}

}  // namespace

COMMODITY_CUDA(egarch_variance_backward)
