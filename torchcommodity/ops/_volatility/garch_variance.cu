// h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1} along time, for returns (..., T, N).
#include "device.h"
#include "variance.h"

using namespace commodity;

namespace {

// Given the returns, h follows a linear recurrence.
template <typename scalar_t>
struct Variance {
  const scalar_t *r, *omega, *alpha, *beta, *gamma, *initial;
  scalar_t* h;
  int64_t steps, assets;

  // h_t -> h_{t+1}. A missing return counts as its expectation: r^2 as h, and half of gamma.
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const int64_t column = panel * assets + n;
    const double x = read(r + (panel * steps + t) * assets + n), rising = read(alpha + column);
    const double more = read(gamma + column), base = read(omega + column), kept = read(beta + column);
    if (x != x) return {rising + more / 2 + kept, {base}};
    return {kept, {base + (x < 0 ? rising + more : rising) * x * x}};
  }
  COMMODITY_INLINE State<> operator()(int64_t panel, int64_t n) const { return {read(initial + panel * assets + n)}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, const State<>& now, const State<>&) const {
    h[(panel * steps + t) * assets + n] = static_cast<scalar_t>(now.y[0]);
  }
};

Tensor garch_variance(const Tensor& returns_, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                      const Tensor& gamma, const Tensor& initial) {
  const Tensor returns = contiguous(returns_);
  const auto parameters = of_columns("garch_variance", returns, {omega, alpha, beta, gamma, initial});
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes());
  dispatch("garch_variance", returns, [&]<typename scalar_t>() {
    const auto of = data_of_columns<scalar_t>(parameters);
    const Variance<scalar_t> body{returns.const_data_ptr<scalar_t>(), of[0],        of[1],        of[2], of[3], of[4],
                                  h.mutable_data_ptr<scalar_t>(),     panels.steps, panels.assets};
    run_recurrence(h, panels.batch, panels.steps, panels.assets, body, body, body);
  });
  return h;
}

}  // namespace

COMMODITY_CUDA(garch_variance)
