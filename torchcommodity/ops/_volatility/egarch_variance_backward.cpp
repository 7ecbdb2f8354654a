// What the parameters and the returns (..., T, N) owe to the gradient of egarch_variance: (..., T + 5, N). Backwards in
// time, L_t is what ln h_{t+1} owes, with all that follows from it. In float64 throughout, as the forward pass.
#include "variance.h"
#include "vector_math.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void adjoint(const scalar_t* const* parameters, const scalar_t* __restrict grad,
                            const scalar_t* __restrict r, const scalar_t* __restrict h, scalar_t* __restrict to,
                            int64_t steps, int64_t stride, int64_t width) {
  double alpha[kBlock], beta[kBlock], gamma[kBlock], later[kBlock] = {}, sums[kSums - 1][kBlock] = {};
  double* const local[3] = {alpha, beta, gamma};
  for (int i = 0; i < 3; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t t = steps - 1; t >= 0; --t) {
    const int64_t at = t * stride;
#pragma GCC ivdep
    for (int64_t n = 0; n < width; ++n) {
      const double x = r[at + n], given = h[at + n], owed = later[n];
      const double bounded = given < std::numeric_limits<double>::infinity() ? given : 1;
      const double variance = given > 0 ? bounded : 1;  // what has no logarithm takes no part
      const double inverse = 1 / std::sqrt(variance), z = (x == x ? x : 0) * inverse, size = std::abs(z);
      const double sign = z > 0 ? alpha[n] : (z < 0 ? -alpha[n] : 0);
      to[at + n] = x == x ? owed * (sign + gamma[n]) * inverse : 0;
      sums[0][n] += owed;
      sums[1][n] += x == x ? owed * (size - kMeanAbsolute) : 0;
      sums[2][n] += owed * fast_log(variance);
      sums[3][n] += owed * z;
      const double slope = beta[n] - (alpha[n] * size + gamma[n] * z) / 2;
      later[n] = (given == given ? variance * grad[at + n] : 0) + slope * owed;
    }
  }
  to += steps * stride;
  for (int i = 0; i < kSums - 1; ++i, to += stride) std::copy_n(sums[i], width, to);
  std::copy_n(later, width, to);
}

struct Body {
  static constexpr const char* kName = "egarch_variance_backward";

  template <typename... Block>
  void operator()(Block... block) const {
    adjoint(block...);
  }
};

Tensor egarch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                                const Tensor& gamma, const Tensor& h) {
  return variance_backward(Body{}, grad, returns, {alpha, beta, gamma}, h);
}

}  // namespace

COMMODITY_OPERATOR(egarch_variance_backward,
                   "(Tensor grad, Tensor returns, Tensor alpha, Tensor beta, Tensor gamma, Tensor h) -> Tensor")
