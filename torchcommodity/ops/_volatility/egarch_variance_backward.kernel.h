// Gradients of egarch_variance with respect to the returns and the parameters: (..., T + 5, N), see
// variance_backward.h. The adjoint is that of ln h; with h known from the forward pass its recursion is affine. In
// float64, as the forward pass.
#include "variance_backward.h"
#include "vector_math.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Egarch {
  using number_t = double;
  enum { kAlpha, kBeta, kGamma };
  using Column = std::array<double, 3>;
  struct Row {
    double x, z, inverse, variance, grad;
  };
  using Inputs = typename VarianceRows<scalar_t>::Inputs;
  VarianceRows<scalar_t> rows;

  COMMODITY_INLINE Column column(int64_t panel, int64_t n) const {
    const int64_t i = panel * rows.assets + n;
    return {read(rows.alpha + i), read(rows.beta + i), read(rows.gamma + i)};
  }
  // A variance without a logarithm (0, infinite, NaN) has no gradient; a missing return counts as z = 0.
  COMMODITY_INLINE Row row(const Column&, const Inputs& inputs) const {
    const double x = inputs.r, h = inputs.h, grad = inputs.grad;
    const double bounded = h < HUGE_VAL ? h : 1, variance = h > 0 ? bounded : 1, inverse = 1 / std::sqrt(variance);
    return {x, (x == x ? x : 0) * inverse, inverse, variance, h == h ? variance * grad : 0};
  }
  COMMODITY_INLINE Affine<> map(const Column& c, const Row& row) const {
    return {c[kBeta] - (c[kAlpha] * std::abs(row.z) + c[kGamma] * row.z) / 2, {row.grad}};
  }
  COMMODITY_INLINE scalar_t return_gradient(const Column& c, const Row& row, double adjoint) const {
    const double sign = row.z > 0 ? c[kAlpha] : (row.z < 0 ? -c[kAlpha] : 0);
    return static_cast<scalar_t>(row.x == row.x ? adjoint * (sign + c[kGamma]) * row.inverse : 0);
  }
  COMMODITY_INLINE void add_parameters(const Row& row, double adjoint, double* sums) const {
    sums[0] += adjoint;
    sums[1] += row.x == row.x ? adjoint * (std::abs(row.z) - kMeanAbsolute) : 0;
    sums[2] += adjoint * fast_log(row.variance);
    sums[3] += adjoint * row.z;
  }
};

Tensor egarch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                                const Tensor& gamma, const Tensor& h, bool needs_returns) {
  return variance_backward<Egarch>("egarch_variance_backward", grad, returns, alpha, beta, gamma, h, needs_returns);
}

}  // namespace

COMMODITY_KERNEL(
    egarch_variance_backward,
    "(Tensor grad, Tensor returns, Tensor alpha, Tensor beta, Tensor gamma, Tensor h, bool needs_returns) -> Tensor")
