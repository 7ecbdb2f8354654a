// x_t = omega + alpha (|z_{t-1}| - sqrt(2 / pi)) + gamma z_{t-1} + beta x_{t-1} and h_t = exp(x_t), for returns
// (..., T, N), with z_t = r_t / sqrt(h_t). In float64 throughout: what x loses, exp makes larger.
#include "native.h"
#include "vector_math.h"

using namespace commodity;

namespace {

constexpr double kMeanAbsolute = 0.79788456080286535588;  // of a standard normal number: sqrt(2 / pi)

// A missing return counts as its expectation: |z| as sqrt(2 / pi), z as 0.
template <typename scalar_t>
COMMODITY_SIMD void recurrence(const scalar_t* const parameters[5], const scalar_t* __restrict r,
                               scalar_t* __restrict h, int64_t steps, int64_t stride, int64_t width) {
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

Tensor egarch_variance(const Tensor& returns_, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                       const Tensor& gamma, const Tensor& initial) {
  const Tensor returns = contiguous(returns_);
  const Tensor parameters[5] = {contiguous(omega), contiguous(alpha), contiguous(beta), contiguous(gamma),
                                contiguous(initial)};
  const Panels panels(returns);
  for (const Tensor& parameter : parameters)
    STD_TORCH_CHECK(
        parameter.numel() * panels.steps == returns.numel() && parameter.scalar_type() == returns.scalar_type(),
        "egarch_variance: parameters must be (..., N) and have the dtype of returns (..., T, N)");
  Tensor h = new_empty(returns, returns.sizes());
  THO_DISPATCH_V2(returns.scalar_type(), "egarch_variance", AT_WRAP([&] {
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

COMMODITY_OPERATOR(egarch_variance,
                   "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor initial) -> Tensor")
