// h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1} along time, for returns (..., T, N).
#include "native.h"

using namespace commodity;

namespace {

constexpr int64_t kAhead = 8;  // rows to fetch before they are needed: no prefetcher follows a stride of a whole row

// A missing return counts as its expectation: r^2 as h, and half of gamma.
template <typename scalar_t>
COMMODITY_SIMD void recurrence(const scalar_t* const parameters[5], const scalar_t* __restrict r,
                               scalar_t* __restrict h, int64_t steps, int64_t stride, int64_t width) {
  scalar_t omega[kBlock], rising[kBlock], beta[kBlock], falling[kBlock], expected[kBlock], now[kBlock];
  scalar_t* const local[5] = {omega, rising, beta, falling, now};
  for (int i = 0; i < 5; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t n = 0; n < width; ++n) {
    expected[n] = rising[n] + falling[n] / 2 + beta[n];
    falling[n] += rising[n];
  }
  for (int64_t t = 0; t < steps; ++t, r += stride, h += stride) {
    if (t + kAhead < steps)
      for (int64_t n = 0; n < width; n += 64 / sizeof(scalar_t)) {
        __builtin_prefetch(r + kAhead * stride + n);
        __builtin_prefetch(h + kAhead * stride + n, 1);
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

Tensor garch_variance(const Tensor& returns_, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                      const Tensor& gamma, const Tensor& initial) {
  const Tensor returns = contiguous(returns_);
  const Tensor parameters[5] = {contiguous(omega), contiguous(alpha), contiguous(beta), contiguous(gamma),
                                contiguous(initial)};
  const Panels panels(returns);
  for (const Tensor& parameter : parameters)
    STD_TORCH_CHECK(
        parameter.numel() * panels.steps == returns.numel() && parameter.scalar_type() == returns.scalar_type(),
        "garch_variance: parameters must be (..., N) and have the dtype of returns (..., T, N)");
  Tensor h = new_empty(returns, returns.sizes());
  THO_DISPATCH_V2(returns.scalar_type(), "garch_variance", AT_WRAP([&] {
                    const scalar_t* from = returns.const_data_ptr<scalar_t>();
                    scalar_t* to = h.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first, column = panel * panels.assets + first;
                      const scalar_t* columns[5];
                      for (int i = 0; i < 5; ++i) columns[i] = parameters[i].const_data_ptr<scalar_t>() + column;
                      recurrence(columns, from + at, to + at, panels.steps, panels.assets, last - first);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return h;
}

}  // namespace

COMMODITY_OPERATOR(garch_variance,
                   "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor initial) -> Tensor")
