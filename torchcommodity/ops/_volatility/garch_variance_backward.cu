// Gradients of garch_variance with respect to the returns and the parameters: (..., T + 5, N). Scheme: see
// variance_backward_device.h.
#include "variance_backward_device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Garch {
  VarianceRows<scalar_t> rows;

  // The weight of r^2; that of h where the return is missing.
  COMMODITY_INLINE double weight(int64_t panel, int64_t n, double x) const {
    const int64_t column = panel * rows.assets + n;
    const double alpha = read(rows.alpha + column), alpha_negative = alpha + read(rows.gamma + column);
    return x != x ? (alpha_negative + alpha) / 2 : x < 0 ? alpha_negative : alpha;
  }
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const int64_t i = rows.index(panel, t, n);
    const double x = read(rows.r + i), h = read(rows.h + i);
    const double missing = x == x ? 0 : weight(panel, n, x);
    return {read(rows.beta + panel * rows.assets + n) + missing, {h == h ? read(rows.grad + i) : 0}};
  }
  COMMODITY_INLINE scalar_t return_gradient(int64_t panel, int64_t t, int64_t n, double adjoint) const {
    const double x = read(rows.r + rows.index(panel, t, n));
    return x == x ? 2 * adjoint * weight(panel, n, x) * x : 0;
  }
  COMMODITY_INLINE void add_parameters(int64_t panel, int64_t t, int64_t n, double (&sums)[kTimeSums]) const {
    const int64_t i = rows.index(panel, t, n);
    const double x = read(rows.r + i), h = read(rows.h + i), adjoint = rows.adjoint[i];
    const double variance = h == h ? h : 0, square = adjoint * (x == x ? x * x : variance);
    sums[0] += adjoint, sums[1] += square, sums[2] += adjoint * variance;
    sums[3] += x != x ? square / 2 : x < 0 ? square : 0;
  }
};

Tensor garch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                               const Tensor& gamma, const Tensor& h, bool needs_returns) {
  return variance_backward<Garch>("garch_variance_backward", grad, returns, alpha, beta, gamma, h, needs_returns);
}

}  // namespace

COMMODITY_CUDA(garch_variance_backward)
