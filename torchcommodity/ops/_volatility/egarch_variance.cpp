// EGARCH variance: h_t = exp(x_t) with x_t = omega + alpha (|z_{t-1}| - sqrt(2 / pi)) + gamma z_{t-1} + beta x_{t-1}
// and z_t = r_t / sqrt(h_t). Computed in float64: exp amplifies the rounding errors of x. Blocks of columns: see
// variance.h.
#include "variance.h"
#include "vector_math.h"

using namespace commodity;

namespace {

// A missing return is replaced by its expectation: |z| by sqrt(2 / pi), z by 0. `state` holds ln h before the first
// row, and then after the last.
template <typename scalar_t>
COMMODITY_SIMD void recursion(const scalar_t* const* parameters, const scalar_t* __restrict r, scalar_t* __restrict h,
                              int64_t steps, int64_t stride, int64_t width, double* state) {
  double omega[kBlock], alpha[kBlock], beta[kBlock], gamma[kBlock], log_h[kBlock];
  double* const local[4] = {omega, alpha, beta, gamma};
  for (int i = 0; i < 4; ++i) std::copy_n(parameters[i], width, local[i]);
  std::copy_n(state, width, log_h);
  for (int64_t t = 0; t < steps; ++t, r += stride, h += stride) {
    COMMODITY_IVDEP
    for (int64_t n = 0; n < width; ++n) {
      const double volatility = fast_exp(log_h[n] / 2), z = r[n] / volatility;
      const double shock = alpha[n] * (std::abs(z) - kMeanAbsolute) + gamma[n] * z;
      h[n] = volatility * volatility;
      log_h[n] = omega[n] + beta[n] * log_h[n] + (z == z ? shock : 0);
    }
  }
  std::copy_n(log_h, width, state);
}

struct Kernel {
  static constexpr const char* kName = "egarch_variance";

  template <typename scalar_t>
  void operator()(const scalar_t* const* parameters, const scalar_t* r, scalar_t* h, int64_t steps, int64_t stride,
                  int64_t width) const {
    double state[kBlock];
    std::copy_n(parameters[4], width, state);
    recursion(parameters, r, h, steps, stride, width, state);
  }
};

Tensor egarch_variance(const Tensor& returns, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                       const Tensor& gamma, const Tensor& initial) {
  return variance(Kernel{}, returns, {omega, alpha, beta, gamma, initial});
}

// The variances of some rows, and ln h (..., N) after them, from that before them.
std::tuple<Tensor, Tensor> egarch_variance_step(const Tensor& returns_, const Tensor& omega, const Tensor& alpha,
                                                const Tensor& beta, const Tensor& gamma, const Tensor& before_) {
  const Tensor returns = contiguous(returns_), before = contiguous(before_);
  const auto parameters = check_parameters("egarch_variance_step", returns, {omega, alpha, beta, gamma});
  STD_TORCH_CHECK(before.scalar_type() == torch::headeronly::ScalarType::Double && before.numel() == omega.numel(),
                  "egarch_variance_step: the state must be float64 (..., N)");
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes()), after = new_empty(before, before.sizes());
  double* state = after.mutable_data_ptr<double>();
  std::copy_n(before.const_data_ptr<double>(), before.numel(), state);
  THO_DISPATCH_V2(returns.scalar_type(), "egarch_variance_step", AT_WRAP([&] {
                    const scalar_t* r_data = returns.const_data_ptr<scalar_t>();
                    scalar_t* h_data = h.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t offset = panel * panels.size() + first, column = panel * panels.assets + first;
                      const auto block = parameter_pointers<scalar_t>(parameters, column);
                      recursion(block.data(), r_data + offset, h_data + offset, panels.steps, panels.assets,
                                last - first, state + column);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {h, after};
}

}  // namespace

COMMODITY_OPERATOR(egarch_variance,
                   "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor initial) -> Tensor")
COMMODITY_OPERATOR(egarch_variance_step,
                   "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor state) -> (Tensor, "
                   "Tensor)")
