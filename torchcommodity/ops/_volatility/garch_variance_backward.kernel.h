// Gradients of garch_variance with respect to the returns and the parameters: (..., T + 5, N), see variance_backward.h.
#include "variance_backward.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Garch {
  using number_t = Number<scalar_t>;
  enum {
    kAlpha,
    kNegative,
    kBeta,
    kMissing
  };  // weights of r^2 by its sign, of h, and of h where the return is missing
  using Column = std::array<number_t, 4>;
  // `value` is zero where the return x is missing; a missing h has no gradient.
  struct Row {
    number_t x, value, h, weight, grad;
  };
  using Inputs = typename VarianceRows<scalar_t>::Inputs;
  VarianceRows<scalar_t> rows;

  COMMODITY_INLINE Column column(int64_t panel, int64_t n) const {
    const int64_t i = panel * rows.assets + n;
    const number_t alpha = read(rows.alpha + i), gamma = read(rows.gamma + i), beta = read(rows.beta + i);
    return {alpha, alpha + gamma, beta, alpha + gamma / 2 + beta};
  }
  COMMODITY_INLINE Row row(const Column& c, const Inputs& inputs) const {
    const number_t x = inputs.r, h = inputs.h, grad = inputs.grad;
    return {x, x == x ? x : 0, h == h ? h : 0, x < 0 ? c[kNegative] : c[kAlpha], h == h ? grad : 0};
  }
  COMMODITY_INLINE Affine<1, number_t> map(const Column& c, const Row& row) const {
    return {row.x == row.x ? c[kBeta] : c[kMissing], {row.grad}};
  }
  COMMODITY_INLINE scalar_t return_gradient(const Column&, const Row& row, number_t adjoint) const {
    return static_cast<scalar_t>(2 * row.weight * (adjoint * row.value));
  }
  // A negative return counts in full for gamma, a missing one by half.
  COMMODITY_INLINE void add_parameters(const Row& row, number_t adjoint, number_t* sums) const {
    const number_t product = adjoint * row.value, variance = adjoint * row.h;
    const number_t square = row.x == row.x ? product * row.value : variance, other = row.x >= 0 ? 0 : square;
    sums[0] += adjoint, sums[1] += square, sums[2] += variance;
    sums[3] += row.x == row.x ? other : other / 2;
  }
};

Tensor garch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                               const Tensor& gamma, const Tensor& h, bool needs_returns) {
  return variance_backward<Garch>("garch_variance_backward", grad, returns, alpha, beta, gamma, h, needs_returns);
}

}  // namespace

COMMODITY_KERNEL(
    garch_variance_backward,
    "(Tensor grad, Tensor returns, Tensor alpha, Tensor beta, Tensor gamma, Tensor h, bool needs_returns) -> Tensor")
