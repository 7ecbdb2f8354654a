// h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1} along time, for returns (..., T, N).
#include "variance.h"

using namespace commodity;

namespace {

constexpr int64_t kPrefetchRows =
    8;  // rows to fetch before they are needed: no prefetcher follows a stride of a whole row

// A missing return counts as its expectation: r^2 as h, and half of gamma.
template <typename scalar_t>
COMMODITY_SIMD void recurrence(const scalar_t* const* parameters, const scalar_t* __restrict r, scalar_t* __restrict h,
                               int64_t steps, int64_t stride, int64_t width) {
  scalar_t omega[kBlock], rising[kBlock], beta[kBlock], falling[kBlock], expected[kBlock], now[kBlock];
  scalar_t* const local[5] = {omega, rising, beta, falling, now};
  for (int i = 0; i < 5; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t n = 0; n < width; ++n) {
    expected[n] = rising[n] + falling[n] / 2 + beta[n];
    falling[n] += rising[n];
  }
  for (int64_t t = 0; t < steps; ++t, r += stride, h += stride) {
    if (t + kPrefetchRows < steps)
      for (int64_t n = 0; n < width; n += 64 / sizeof(scalar_t)) {
        __builtin_prefetch(r + kPrefetchRows * stride + n);
        __builtin_prefetch(h + kPrefetchRows * stride + n, 1);
      }
#pragma GCC ivdep
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t x = r[n], variance = now[n];
      const scalar_t seen = (x < 0 ? falling[n] : rising[n]) * x * x + beta[n] * variance;
      h[n] = variance;
      now[n] = omega[n] + (x == x ? seen : expected[n] * variance);
    }
  }
}

struct Body {
  static constexpr const char* kName = "garch_variance";

  template <typename... Block>
  void operator()(Block... block) const {
    recurrence(block...);
  }
};

Tensor garch_variance(const Tensor& returns, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                      const Tensor& gamma, const Tensor& initial) {
  return variance(Body{}, returns, {omega, alpha, beta, gamma, initial});
}

}  // namespace

COMMODITY_OPERATOR(garch_variance,
                   "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor initial) -> Tensor")
