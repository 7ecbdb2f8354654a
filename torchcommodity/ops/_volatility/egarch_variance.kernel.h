// EGARCH variance: h_t = exp(x_t) with x_t = omega + alpha (|z_{t-1}| - sqrt(2 / pi)) + gamma z_{t-1} + beta x_{t-1}
// and z_t = r_t / sqrt(h_t). In float64: exp amplifies the rounding errors of x. The recursion is not affine in x,
// since z depends on h.
#include "kernel.h"
#include "variance.h"
#include "vector_math.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct LogVariance {
  using State = commodity::State<>;
  const scalar_t *r, *omega, *alpha, *beta, *gamma, *initial_data;
  scalar_t* h;
  int64_t assets;
  const double* before = nullptr;  // of a live update: the state before its rows, and after them
  double* after = nullptr;

  COMMODITY_INLINE int64_t column(int64_t panel, int64_t n) const { return panel * assets + n; }
  COMMODITY_INLINE State initial(int64_t column) const {
    return {before ? read(before + column) : double(read(initial_data + column))};
  }
  void finish(int64_t column, const State& log_h) const {
    if (after) after[column] = log_h.y[0];
  }
  // A missing return is replaced by its expectation: |z| by sqrt(2 / pi), z by 0.
  COMMODITY_INLINE State advance(int64_t column, int64_t i, int64_t, const State& log_h) const {
    const double volatility = fast_exp(log_h.y[0] / 2), z = read(r + i) / volatility;
    const double shock = read(alpha + column) * (std::abs(z) - kMeanAbsolute) + read(gamma + column) * z;
    const double next = read(omega + column) + read(beta + column) * log_h.y[0] + (z == z ? shock : 0);
    h[i] = static_cast<scalar_t>(volatility * volatility);
    return {next};
  }
};

Tensor egarch_variance(const Tensor& returns_, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                       const Tensor& gamma, const Tensor& initial) {
  const Tensor returns = contiguous(returns_);
  const auto parameters = check_parameters("egarch_variance", returns, {omega, alpha, beta, gamma, initial});
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes());
  dispatch("egarch_variance", returns, [&]<typename scalar_t>() {
    const auto p = parameter_pointers<scalar_t>(parameters);
    const LogVariance<scalar_t> body{returns.const_data_ptr<scalar_t>(), p[0],         p[1], p[2], p[3], p[4],
                                     h.mutable_data_ptr<scalar_t>(),     panels.assets};
    run_series(h, panels.batch, panels.steps, panels.assets, body);
  });
  return h;
}

#if !defined(COMMODITY_GPU)
// The variances of some rows, and ln h (..., N) after them, from that before them.
std::tuple<Tensor, Tensor> egarch_variance_step(const Tensor& returns_, const Tensor& omega, const Tensor& alpha,
                                                const Tensor& beta, const Tensor& gamma, const Tensor& before_) {
  const Tensor returns = contiguous(returns_), before = contiguous(before_);
  const auto parameters = check_parameters("egarch_variance_step", returns, {omega, alpha, beta, gamma});
  STD_TORCH_CHECK(before.scalar_type() == torch::headeronly::ScalarType::Double && before.numel() == omega.numel(),
                  "egarch_variance_step: the state must be float64 (..., N)");
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes()), after = new_empty(before, before.sizes());
  dispatch("egarch_variance_step", returns, [&]<typename scalar_t>() {
    const auto p = parameter_pointers<scalar_t>(parameters);
    const LogVariance<scalar_t> body{returns.const_data_ptr<scalar_t>(),
                                     p[0],
                                     p[1],
                                     p[2],
                                     p[3],
                                     nullptr,
                                     h.mutable_data_ptr<scalar_t>(),
                                     panels.assets,
                                     before.const_data_ptr<double>(),
                                     after.mutable_data_ptr<double>()};
    run_series(h, count_panels(returns), panels.steps,  // the state passes through no rows, too
               panels.assets, body);
  });
  return {h, after};
}
#endif

}  // namespace

COMMODITY_KERNEL(egarch_variance,
                 "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor initial) -> Tensor")
#if !defined(COMMODITY_GPU)
COMMODITY_OPERATOR(egarch_variance_step,
                   "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor state) -> (Tensor, "
                   "Tensor)")
#endif
