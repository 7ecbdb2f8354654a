// GARCH and GJR-GARCH variance: h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1}. Blocks of
// columns: see variance.h.
#include "variance.h"

using namespace commodity;

namespace {

constexpr int64_t kPrefetchRows = 8;  // rows to prefetch: the hardware does not follow a stride of a whole row

// A missing return is replaced by its expectation: r^2 by h, the indicator by 1/2.
template <typename scalar_t>
COMMODITY_SIMD void recursion(const scalar_t* const* parameters, const scalar_t* __restrict r, scalar_t* __restrict h,
                              int64_t steps, int64_t stride, int64_t width) {
  scalar_t omega[kBlock], alpha[kBlock], beta[kBlock], alpha_negative[kBlock], persistence[kBlock], state[kBlock];
  scalar_t* const local[5] = {omega, alpha, beta, alpha_negative, state};
  for (int i = 0; i < 5; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t n = 0; n < width; ++n) {
    persistence[n] = alpha[n] + alpha_negative[n] / 2 + beta[n];  // alpha_negative holds gamma so far
    alpha_negative[n] += alpha[n];
  }
  for (int64_t t = 0; t < steps; ++t, r += stride, h += stride) {
    if (t + kPrefetchRows < steps)
      for (int64_t n = 0; n < width; n += 64 / sizeof(scalar_t)) {
        __builtin_prefetch(r + kPrefetchRows * stride + n);
        __builtin_prefetch(h + kPrefetchRows * stride + n, 1);
      }
    COMMODITY_IVDEP
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t x = r[n], variance = state[n];
      const scalar_t negative = alpha_negative[n], positive = alpha[n], kept = persistence[n];  // else clang branches
      const scalar_t next = (x < 0 ? negative : positive) * x * x + beta[n] * variance;
      h[n] = variance;
      state[n] = omega[n] + (x == x ? next : kept * variance);
    }
  }
}

struct Kernel {
  static constexpr const char* kName = "garch_variance";

  template <typename... Block>
  void operator()(Block... block) const {
    recursion(block...);
  }
};

Tensor garch_variance(const Tensor& returns, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                      const Tensor& gamma, const Tensor& initial) {
  return variance(Kernel{}, returns, {omega, alpha, beta, gamma, initial});
}

}  // namespace

COMMODITY_OPERATOR(garch_variance,
                   "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor initial) -> Tensor")
