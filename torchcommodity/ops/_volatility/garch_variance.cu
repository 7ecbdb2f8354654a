// GARCH and GJR-GARCH variance: h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1}. With the returns
// known this recursion is linear, so that time is split into chunks (see device.h).
#include "device.h"
#include "variance.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Variance {
  const scalar_t *r, *omega, *alpha, *beta, *gamma, *initial;
  scalar_t* h;
  int64_t steps, assets;

  // h_t -> h_{t+1}. A missing return is replaced by its expectation: r^2 by h, the indicator by 1/2.
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const int64_t column = panel * assets + n;
    const double x = read(r + (panel * steps + t) * assets + n), alpha_n = read(alpha + column);
    const double gamma_n = read(gamma + column), omega_n = read(omega + column), beta_n = read(beta + column);
    if (x != x) return {alpha_n + gamma_n / 2 + beta_n, {omega_n}};
    return {beta_n, {omega_n + (x < 0 ? alpha_n + gamma_n : alpha_n) * x * x}};
  }
  COMMODITY_INLINE State<> operator()(int64_t panel, int64_t n) const { return {read(initial + panel * assets + n)}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, const State<>& state, const State<>&) const {
    h[(panel * steps + t) * assets + n] = static_cast<scalar_t>(state.y[0]);
  }
};

Tensor garch_variance(const Tensor& returns_, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                      const Tensor& gamma, const Tensor& initial) {
  const Tensor returns = contiguous(returns_);
  const auto parameters = check_parameters("garch_variance", returns, {omega, alpha, beta, gamma, initial});
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes());
  dispatch("garch_variance", returns, [&]<typename scalar_t>() {
    const auto p = parameter_pointers<scalar_t>(parameters);
    const Variance<scalar_t> body{returns.const_data_ptr<scalar_t>(), p[0],         p[1],         p[2], p[3], p[4],
                                  h.mutable_data_ptr<scalar_t>(),     panels.steps, panels.assets};
    run_recurrence(h, panels.batch, panels.steps, panels.assets, body, body, body);
  });
  return h;
}

}  // namespace

COMMODITY_CUDA(garch_variance)
