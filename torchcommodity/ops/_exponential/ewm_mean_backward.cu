// Gradient of the exponentially weighted mean of (..., T, N): dx_t = b_t L_t with L_t = grad_t + (1 - b_{t+1}) L_{t+1},
// where b_t is the share of x_t in the mean of row t. Gradients of NaN means are ignored.
#include "ewm_device.h"

using namespace commodity;

namespace {

// The recurrence of L. Rows are numbered backward, from the last one.
template <typename scalar_t>
struct EwmGradient {
  const scalar_t* grad;
  const double* shares;
  const int64_t* first_rows;
  scalar_t* dx;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t back, int64_t n) const {
    return (panel * steps + steps - 1 - back) * assets + n;
  }
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t back, int64_t n) const {
    const bool defined = steps - 1 - back >= read(first_rows + panel * assets + n);
    return {back ? 1 - read(shares + at(panel, back - 1, n)) : 0, {defined ? read(grad + at(panel, back, n)) : 0}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<>&, const State<>& state) const {
    dx[at(panel, back, n)] = static_cast<scalar_t>(read(shares + at(panel, back, n)) * state.y[0]);
  }
};

Tensor ewm_mean_backward(const Tensor& grad_, const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na,
                         int64_t min_periods, bool) {
  check_same("ewm_mean_backward", grad_, x_);
  check_rows("ewm_mean_backward", "alpha", alpha_, x_);
  const Tensor grad = contiguous(grad_), x = contiguous(x_), alpha = contiguous(alpha_);
  Tensor dx = new_empty(x, x.sizes());
  const Panels panels(x);
  dispatch("ewm_mean_backward", x, [&]<typename scalar_t>() {
    const Tensor first_rows = first_defined_rows<scalar_t>(x, min_periods);
    const Tensor shares = ewm_shares<scalar_t>(x, alpha, adjust, ignore_na);
    const EwmGradient<scalar_t> body{grad.const_data_ptr<scalar_t>(),
                                     data_ptr<double>(shares),
                                     data_ptr<int64_t>(first_rows),
                                     data_ptr<scalar_t>(dx),
                                     panels.steps,
                                     panels.assets};
    run_recurrence(x, panels.batch, panels.steps, panels.assets, body, body, body);
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(ewm_mean_backward)
