// Gradient of the exponentially weighted mean of (..., T, N): dx_t = b_t L_t with L_t = grad_t + (1 - b_{t+1}) L_{t+1},
// where b_t is the share of x_t in the mean of row t. Gradients of NaN means are ignored.
#include "ewm_device.h"

using namespace commodity;

namespace {

// The share of every value, negative where the mean of its row is NaN, for fewer than `min_periods` values so far.
template <typename scalar_t>
struct EwmShares {
  const scalar_t *x, *alpha;
  double* shares;
  EwmRule rule;
  int64_t assets;
  double min_periods;

  COMMODITY_INLINE double column(int64_t panel, int64_t n) const { return read(alpha + panel * assets + n); }
  COMMODITY_INLINE scalar_t load(double, int64_t i, int64_t) const { return read(x + i); }
  COMMODITY_INLINE WeightMap map(double alpha_n, scalar_t value) const { return rule.map(is_valid(value), alpha_n); }
  COMMODITY_INLINE WeightState initial(double) const { return {0, 0}; }
  COMMODITY_INLINE void write(double alpha_n, int64_t i, int64_t, scalar_t value, const WeightState& previous,
                              const WeightState& state) const {
    double total = previous.total;
    const double share = rule.next_share(total, is_valid(value), alpha_n);
    shares[i] = state.count >= min_periods ? share : -share;
  }
};

// The recurrence of L. Rows are numbered backward, from the last one.
template <typename scalar_t>
struct EwmGradient {
  const scalar_t* grad;
  const double* shares;
  scalar_t* dx;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t back, int64_t n) const {
    return (panel * steps + steps - 1 - back) * assets + n;
  }
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t back, int64_t n) const {
    const int64_t i = at(panel, back, n);
    return {back ? 1 - std::abs(read(shares + i + assets)) : 0, {std::signbit(read(shares + i)) ? 0 : read(grad + i)}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<>&, const State<>& state) const {
    const int64_t i = at(panel, back, n);
    dx[i] = static_cast<scalar_t>(std::abs(read(shares + i)) * state.y[0]);
  }
};

Tensor ewm_mean_backward(const Tensor& grad_, const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na,
                         int64_t min_periods, bool) {
  check_same("ewm_mean_backward", grad_, x_);
  check_rows("ewm_mean_backward", "alpha", alpha_, x_);
  const Tensor grad = contiguous(grad_), x = contiguous(x_), alpha = contiguous(alpha_);
  Tensor dx = new_empty(x, x.sizes());
  const Panels panels(x);
  const Tensor shares = scratch(x, x.numel());
  double* share = data_ptr<double>(shares);
  dispatch("ewm_mean_backward", x, [&]<typename scalar_t>() {
    const EwmShares<scalar_t> weights{x.const_data_ptr<scalar_t>(),
                                      alpha.const_data_ptr<scalar_t>(),
                                      share,
                                      {adjust, ignore_na},
                                      panels.assets,
                                      double(std::max<int64_t>(1, min_periods))};
    run_scan(x, panels.batch, panels.steps, panels.assets, weights);
    const EwmGradient<scalar_t> body{grad.const_data_ptr<scalar_t>(), share, data_ptr<scalar_t>(dx), panels.steps,
                                     panels.assets};
    run_recurrence(x, panels.batch, panels.steps, panels.assets, body, body, body);
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(ewm_mean_backward)
