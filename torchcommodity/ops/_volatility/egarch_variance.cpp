// EGARCH variance: h_t = exp(x_t) with x_t = omega + alpha (|z_{t-1}| - sqrt(2 / pi)) + gamma z_{t-1} + beta x_{t-1}
// and z_t = r_t / sqrt(h_t). Computed in float64: exp amplifies the rounding errors of x. Blocks of columns: see
// variance.h.
#include "variance.h"
#include "vector_math.h"

using namespace commodity;

namespace {

// A missing return is replaced by its expectation: |z| by sqrt(2 / pi), z by 0.
template <typename scalar_t>
COMMODITY_SIMD void recursion(const scalar_t* const* parameters, const scalar_t* __restrict r, scalar_t* __restrict h,
                              int64_t steps, int64_t stride, int64_t width) {
  double omega[kBlock], alpha[kBlock], beta[kBlock], gamma[kBlock], log_h[kBlock];
  double* const local[5] = {omega, alpha, beta, gamma, log_h};
  for (int i = 0; i < 5; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t t = 0; t < steps; ++t, r += stride, h += stride)
#pragma GCC ivdep
    for (int64_t n = 0; n < width; ++n) {
      const double volatility = fast_exp(log_h[n] / 2), z = r[n] / volatility;
      const double shock = alpha[n] * (std::abs(z) - kMeanAbsolute) + gamma[n] * z;
      h[n] = volatility * volatility;
      log_h[n] = omega[n] + beta[n] * log_h[n] + (z == z ? shock : 0);
    }
}

struct Kernel {
  static constexpr const char* kName = "egarch_variance";

  template <typename... Block>
  void operator()(Block... block) const {
    recursion(block...);
  }
};

Tensor egarch_variance(const Tensor& returns, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                       const Tensor& gamma, const Tensor& initial) {
  return variance(Kernel{}, returns, {omega, alpha, beta, gamma, initial});
}

}  // namespace

COMMODITY_OPERATOR(egarch_variance,
                   "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor initial) -> Tensor")
