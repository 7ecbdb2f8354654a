// x_t = omega + alpha (|z_{t-1}| - sqrt(2 / pi)) + gamma z_{t-1} + beta x_{t-1} and h_t = exp(x_t), for returns
// (..., T, N), with z_t = r_t / sqrt(h_t). In float64 throughout: what x loses, exp makes larger.
#include "variance.h"
#include "vector_math.h"

using namespace commodity;

namespace {

// A missing return counts as its expectation: |z| as sqrt(2 / pi), z as 0.
template <typename scalar_t>
COMMODITY_SIMD void recurrence(const scalar_t* const* parameters, const scalar_t* __restrict r, scalar_t* __restrict h,
                               int64_t steps, int64_t stride, int64_t width) {
  double omega[kBlock], alpha[kBlock], beta[kBlock], gamma[kBlock], now[kBlock];
  double* const local[5] = {omega, alpha, beta, gamma, now};
  for (int i = 0; i < 5; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t t = 0; t < steps; ++t, r += stride, h += stride)
#pragma GCC ivdep
    for (int64_t n = 0; n < width; ++n) {
      const double volatility = fast_exp(now[n] / 2), z = r[n] / volatility;
      const double shock = alpha[n] * (std::abs(z) - kMeanAbsolute) + gamma[n] * z;
      h[n] = volatility * volatility;
      now[n] = omega[n] + beta[n] * now[n] + (z == z ? shock : 0);
    }
}

struct Body {
  static constexpr const char* kName = "egarch_variance";

  template <typename... Block>
  void operator()(Block... block) const {
    recurrence(block...);
  }
};

Tensor egarch_variance(const Tensor& returns, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                       const Tensor& gamma, const Tensor& initial) {
  return variance(Body{}, returns, {omega, alpha, beta, gamma, initial});
}

}  // namespace

COMMODITY_OPERATOR(egarch_variance,
                   "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor initial) -> Tensor")
