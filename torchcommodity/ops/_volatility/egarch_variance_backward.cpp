// Gradients of egarch_variance with respect to the returns and the parameters: (..., T + 5, N), see variance.h. The
// adjoint is that of ln h. In float64, as the forward pass.
#include "variance.h"
#include "vector_math.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void adjoint_recursion(const scalar_t* const* parameters, const scalar_t* __restrict grad,
                                      const scalar_t* __restrict r, const scalar_t* __restrict h,
                                      scalar_t* __restrict gradients, int64_t gradient_stride, int64_t steps,
                                      int64_t stride, int64_t width) {
  double alpha[kBlock], beta[kBlock], gamma[kBlock], adjoint[kBlock] = {}, sums[kParameters - 1][kBlock] = {};
  double* const local[3] = {alpha, beta, gamma};
  for (int i = 0; i < 3; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t t = steps - 1; t >= 0; --t) {
    const int64_t row = t * stride;
    COMMODITY_IVDEP
    for (int64_t n = 0; n < width; ++n) {
      const double x = r[row + n], h_value = h[row + n], next = adjoint[n];
      const double bounded = h_value < std::numeric_limits<double>::infinity() ? h_value : 1;
      const double variance = h_value > 0 ? bounded : 1;  // no logarithm, no gradient
      const double inverse = 1 / std::sqrt(variance), z = (x == x ? x : 0) * inverse, size = std::abs(z);
      const double sign = z > 0 ? alpha[n] : (z < 0 ? -alpha[n] : 0);
      gradients[t * gradient_stride + n] = x == x ? next * (sign + gamma[n]) * inverse : 0;
      sums[0][n] += next;
      sums[1][n] += x == x ? next * (size - kMeanAbsolute) : 0;
      sums[2][n] += next * fast_log(variance);
      sums[3][n] += next * z;
      const double slope = beta[n] - (alpha[n] * size + gamma[n] * z) / 2;
      adjoint[n] = (h_value == h_value ? variance * grad[row + n] : 0) + slope * next;
    }
  }
  gradients += steps * gradient_stride;
  for (int i = 0; i < kParameters - 1; ++i, gradients += stride) std::copy_n(sums[i], width, gradients);
  std::copy_n(adjoint, width, gradients);
}

struct Kernel {
  static constexpr const char* kName = "egarch_variance_backward";

  template <typename... Block>
  void operator()(Block... block) const {
    adjoint_recursion(block...);
  }
};

Tensor egarch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                                const Tensor& gamma, const Tensor& h, bool needs_returns) {
  return variance_backward(Kernel{}, grad, returns, {alpha, beta, gamma}, h, needs_returns);
}

}  // namespace

COMMODITY_OPERATOR(
    egarch_variance_backward,
    "(Tensor grad, Tensor returns, Tensor alpha, Tensor beta, Tensor gamma, Tensor h, bool needs_returns) -> Tensor")
