// h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1} along time, for returns (..., T, N).
#include "native.h"

using namespace commodity;

namespace {

// A missing return counts as its expectation: r^2 as h, and half of gamma.
template <typename scalar_t>
COMMODITY_SIMD void recurrence(const scalar_t* const parameters[5], const scalar_t* __restrict r,
                               scalar_t* __restrict h, int64_t steps, int64_t stride, int64_t width) {
  scalar_t omega[kBlock], alpha[kBlock], beta[kBlock], gamma[kBlock], now[kBlock];
  scalar_t* const local[5] = {omega, alpha, beta, gamma, now};
  for (int i = 0; i < 5; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t t = 0; t < steps; ++t, r += stride, h += stride) {
    for (int64_t n = 0; n < width; ++n) {
      const bool missing = r[n] != r[n];
      const scalar_t falling = missing ? scalar_t(0.5) : (r[n] < 0 ? scalar_t(1) : scalar_t(0));
      const scalar_t square = missing ? now[n] : r[n] * r[n];
      h[n] = now[n];
      now[n] = omega[n] + (alpha[n] + gamma[n] * falling) * square + beta[n] * now[n];
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
