// Classical seasonal decomposition of prices (..., T, N), as in seasonal_decompose.cpp, in three launches: the trend,
// the phase means, the seasonal and residual.
#include "seasonal_device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Parts {
  static constexpr int64_t kRows = kRunRows;
  Season s;
  const scalar_t *detrended, *mean;
  scalar_t *seasonal, *residual;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    for_each_center(s, mean, panel, n, first, [&](int64_t t, double center) {
      const int64_t i = s.index(panel, t, n);
      const double seasonal_value = s.detrend(read(mean + i), center);
      seasonal[i] = static_cast<scalar_t>(seasonal_value);
      residual[i] = static_cast<scalar_t>(s.detrend(read(detrended + i), seasonal_value));
    });
  }
};

std::tuple<Tensor, Tensor, Tensor> seasonal_decompose(const Tensor& prices_, int64_t period, bool multiplicative,
                                                      bool causal) {
  STD_TORCH_CHECK(period >= 2, "seasonal_decompose: period must be >= 2");
  const Tensor prices = contiguous(prices_);
  const auto empty = [&] { return new_empty(prices, prices.sizes()); };
  const Tensor trend = empty(), seasonal = empty(), residual = empty(), detrended_prices = empty(), means = empty();
  const Panels panels(prices);
  period = limit_window(period, panels.steps);
  const Season s{panels.steps, panels.assets, period, multiplicative, causal};
  dispatch("seasonal_decompose", prices, [&]<typename scalar_t>() {
    const auto data = [](const Tensor& x) { return data_ptr<scalar_t>(x); };
    const Prices<scalar_t> price{prices.const_data_ptr<scalar_t>(), multiplicative};
    scalar_t *detrended = data(detrended_prices), *mean = data(means);
    launch_windows(prices, panels, Trend<scalar_t>{s, price, data(trend), detrended, nullptr});
    launch_grid(prices, Grid(panels.batch, panels.assets, period), PhaseMeans<scalar_t>{s, detrended, mean});
    launch_windows(prices, panels, Parts<scalar_t>{s, detrended, mean, data(seasonal), data(residual)});
  });
  return {trend, seasonal, residual};
}

}  // namespace

COMMODITY_CUDA(seasonal_decompose)
