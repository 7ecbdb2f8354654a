// Exponentially weighted mean of (..., T, N), with pandas' rules for missing values and one alpha per column: the
// recurrence y_t = (1 - b_t) y_{t-1} + b_t x_t with the share b_t of x_t, in chunks of time (device.h).
#include "ewm_device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct EwmMean {
  FiniteValues<scalar_t> x;
  const double* shares;
  const int64_t* first_rows;
  scalar_t* y;

  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const double share = read(shares + x.at(panel, t, n)), value = x(panel, t, n);
    return {1 - share, {value == value ? share * value : 0}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, const State<>&, const State<>& state) const {
    const bool defined = t >= read(first_rows + panel * x.assets + n);
    y[x.at(panel, t, n)] = static_cast<scalar_t>(defined ? state.y[0] : NAN);
  }
};

Tensor ewm_mean(const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na, int64_t min_periods, bool) {
  STD_TORCH_CHECK(x_.scalar_type() == alpha_.scalar_type(), "ewm_mean: alpha must have the dtype of x");
  const Tensor x = contiguous(x_), alpha = contiguous(alpha_);
  const Panels panels(x);
  STD_TORCH_CHECK(alpha.numel() == panels.batch * panels.assets || panels.steps == 0, "ewm_mean: alpha (..., N)");
  Tensor y = new_empty(x, x.sizes());
  dispatch("ewm_mean", x, [&]<typename scalar_t>() {
    const auto values = finite_values<scalar_t>(x, panels);
    const Tensor first_rows = first_defined_rows<scalar_t>(x, min_periods);
    const Tensor shares = ewm_shares<scalar_t>(x, alpha, adjust, ignore_na);
    const EwmMean<scalar_t> body{values, data_ptr<double>(shares), data_ptr<int64_t>(first_rows),
                                 data_ptr<scalar_t>(y)};
    run_recurrence(x, panels.batch, panels.steps, panels.assets, body, body, body);
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(ewm_mean)
