// What the parameters and the returns (..., T, N) owe to the gradient of egarch_variance: (..., T + 5, N). Backwards in
// time, L_t is what ln h_{t+1} owes, with all that follows from it. In float64 throughout, as the forward pass.
#include "native.h"
#include "vector_math.h"

using namespace commodity;

namespace {

constexpr int kSums = 5;                                  // by omega, alpha, beta, gamma, ln of the initial variance
constexpr double kMeanAbsolute = 0.79788456080286535588;  // of a standard normal number: sqrt(2 / pi)

template <typename scalar_t>
COMMODITY_SIMD void adjoint(const scalar_t* const parameters[3], const scalar_t* __restrict grad,
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

Tensor egarch_variance_backward(const Tensor& grad_, const Tensor& returns_, const Tensor& alpha, const Tensor& beta,
                                const Tensor& gamma, const Tensor& h_) {
  check_same("egarch_variance_backward", grad_, returns_);
  check_same("egarch_variance_backward", h_, returns_);
  const Tensor grad = contiguous(grad_), returns = contiguous(returns_), h = contiguous(h_);
  const Tensor parameters[3] = {contiguous(alpha), contiguous(beta), contiguous(gamma)};
  Panels panels(returns);
  for (const Tensor& parameter : parameters)
    STD_TORCH_CHECK(
        parameter.numel() * panels.steps == returns.numel() && parameter.scalar_type() == returns.scalar_type(),
        "egarch_variance_backward: parameters must be (..., N) and have the dtype of returns (..., T, N)");
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape[shape.size() - 2] += kSums;
  Tensor y = on_huge_pages(new_empty(returns, shape));
  panels.batch = Panels(y).batch;  // where there is no row the sums are zero, and they are still written
  THO_DISPATCH_V2(returns.scalar_type(), "egarch_variance_backward", AT_WRAP([&] {
                    const scalar_t* of_h = h.const_data_ptr<scalar_t>();
                    const scalar_t* of_grad = grad.const_data_ptr<scalar_t>();
                    const scalar_t* of_r = returns.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first, column = panel * panels.assets + first;
                      const scalar_t* columns[3];
                      for (int i = 0; i < 3; ++i) columns[i] = parameters[i].const_data_ptr<scalar_t>() + column;
                      adjoint(columns, of_grad + at, of_r + at, of_h + at, to + at + panel * kSums * panels.assets,
                              panels.steps, panels.assets, last - first);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(egarch_variance_backward,
                   "(Tensor grad, Tensor returns, Tensor alpha, Tensor beta, Tensor gamma, Tensor h) -> Tensor")
