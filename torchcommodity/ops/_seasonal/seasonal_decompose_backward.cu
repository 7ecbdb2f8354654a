// Gradient of seasonal_decompose with respect to the prices. Scheme: see seasonal_adjoint.h; here each step is a
// launch.
#include "seasonal_device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_INLINE double finite_or_zero(const scalar_t* address) {
  const double value = read_finite(address);
  return value == value ? value : 0;
}

// Gradients of residual and seasonal with respect to the detrended price, the mean of its phase and minus the center.
template <typename scalar_t>
struct RowGradients {
  static constexpr int64_t kRows = kRunRows;
  Season s;
  const scalar_t *detrended, *mean, *seasonal_gradient, *residual_gradient;
  scalar_t *d_detrended, *d_mean, *d_center;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    for_each_center(s, mean, panel, n, first, [&](int64_t t, double center) { write(panel, t, n, center); });
  }
  COMMODITY_INLINE void write(int64_t panel, int64_t t, int64_t n, double center) const {
    const int64_t i = s.index(panel, t, n);
    const double price = read(detrended + i), seasonal = s.detrend(read(mean + i), center);
    const bool has_price = price == price, has_seasonal = seasonal == seasonal;
    double d_seasonal = finite_or_zero(seasonal_gradient + i), d_residual = finite_or_zero(residual_gradient + i);
    if (!has_price || !has_seasonal || d_residual == 0)
      d_residual = 0;
    else if (s.multiplicative)
      d_residual /= seasonal;
    d_seasonal -= d_residual * (!s.multiplicative ? 1 : has_price ? price / seasonal : 0);
    if (!has_seasonal) d_seasonal = 0;
    const double d_phase = s.multiplicative && has_seasonal ? d_seasonal / center : d_seasonal;
    d_detrended[i] = static_cast<scalar_t>(d_residual);
    d_mean[i] = static_cast<scalar_t>(d_phase);
    d_center[i] = static_cast<scalar_t>(s.multiplicative && has_seasonal ? d_phase * seasonal : d_phase);
  }
};

// Subtracts the gradient of the centers that contain the phase mean of a row. Two-sided, these are all, and contain the
// means of the last rows.
template <typename scalar_t>
struct CenterTranspose {
  static constexpr int64_t kRows = kRunRows;
  Season s;
  const scalar_t *d_center, *d_mean;
  scalar_t* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto add = [&](Sums<double, 1>& sum, int64_t t, double sign) {
      sum.term[0] += sign * read(d_center + s.index(panel, t, n));
    };
    const auto finish = [&](int64_t t, const Sums<double, 1>& sum) {
      const int64_t i = s.index(panel, t, n);
      to[i] = static_cast<scalar_t>(read(d_mean + i) - sum.term[0] / s.period);
    };
    const int64_t ahead = s.period - 1, last = s.last(first);
    if (s.causal)
      return slide_window<Sums<double, 1>>(
          first + ahead, last + ahead, s.period, s.steps, add,
          [&](int64_t end, const Sums<double, 1>& sum, const Sums<double, 1>&) { finish(end - ahead, sum); });
    const int64_t latest = s.steps - s.period;
    Sums<double, 1> none, all;
#pragma unroll 8
    for (int64_t t = 0; t < s.steps && last > latest; ++t) add(all, t, 1);
    for (int64_t t = first; t < last; ++t) finish(t, t < latest ? none : all);
  }
};

// From the gradients of phase means to those of prices and of the sums in the trends. A row is part of the mean of its
// phase at all later rows, or, two-sided, at all.
template <typename scalar_t>
struct PhaseTranspose {
  Season s;
  const scalar_t *trend, *detrended, *weight, *d_detrended, *d_mean, *trend_gradient;
  scalar_t *price_gradient, *sum_gradient;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    if (phase >= s.steps) return;
    double observed = 0, d_phase = 0;
    const auto is_observed = [&](int64_t i) { return read(detrended + i) == read(detrended + i); };
    for (int64_t t = phase; t < s.steps; t += s.period) observed += is_observed(s.index(panel, t, n)) ? 1 : 0;
    for (int64_t t = phase; t < s.steps && !s.causal; t += s.period)
      d_phase += read(d_mean + s.index(panel, t, n)) / (observed > 1 ? observed : 1);
#pragma unroll 4
    for (int64_t t = phase + (s.steps - 1 - phase) / s.period * s.period; t >= phase; t -= s.period) {
      const int64_t i = s.index(panel, t, n);
      if (s.causal) d_phase += read(d_mean + i) / (observed > 1 ? observed : 1);
      observed -= is_observed(i) ? 1 : 0;
      write(i, finite_or_zero(trend_gradient + i), is_observed(i) ? read(d_detrended + i) + d_phase : 0);
    }
  }
  COMMODITY_INLINE void write(int64_t i, double d_trend, double d_price) const {
    const double average = read(trend + i), price = read(detrended + i);
    if (s.multiplicative && price == price) d_price /= average;
    d_trend -= (!s.multiplicative ? d_price : price == price ? d_price * price : 0);
    price_gradient[i] = static_cast<scalar_t>(d_price);
    sum_gradient[i] = static_cast<scalar_t>(average == average ? d_trend / read(weight + i) : 0);
  }
};

// Adds the gradients of the trends whose windows contain a row.
template <typename scalar_t>
struct TrendTranspose {
  static constexpr int64_t kRows = kRunRows;
  Season s;
  Prices<scalar_t> price;
  const scalar_t *d_price, *d_sum;
  scalar_t* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t ahead = s.period - s.period % 2 - s.lead();
    const auto value = [&](int64_t t) { return static_cast<double>(read(d_sum + s.index(panel, t, n))); };
    slide_trend_window(s, first + ahead, s.last(first) + ahead, value, [&](int64_t end, const SumAndCount& sums) {
      const int64_t t = end - ahead, i = s.index(panel, t, n);
      const double x = price(i);
      to[i] = static_cast<scalar_t>(x == x ? read(d_price + i) + sums.term[0] : 0);
    });
  }
};

Tensor seasonal_decompose_backward(const Tensor& prices_, const Tensor& d_trend_, const Tensor& d_seasonal_,
                                   const Tensor& d_residual_, int64_t period, bool multiplicative, bool causal) {
  STD_TORCH_CHECK(period >= 2, "seasonal_decompose_backward: period must be >= 2");
  for (const Tensor* grad : {&d_trend_, &d_seasonal_, &d_residual_})
    check_same("seasonal_decompose_backward", prices_, *grad);
  const Tensor prices = contiguous(prices_), d_trend = contiguous(d_trend_), d_seasonal = contiguous(d_seasonal_);
  const Tensor d_residual = contiguous(d_residual_);
  const Panels panels(prices);
  period = limit_window(period, panels.steps);
  const auto empty = [&] { return new_empty(prices, prices.sizes()); };
  const Tensor planes[] = {empty(), empty(), empty(), empty(), empty(), empty(), empty()}, dx = empty();
  const Season s{panels.steps, panels.assets, period, multiplicative, causal};
  const Grid phases(panels.batch, panels.assets, period);
  dispatch("seasonal_decompose_backward", prices, [&]<typename scalar_t>() {
    const auto data = [](const Tensor& x) { return x.const_data_ptr<scalar_t>(); };
    const Prices<scalar_t> price{data(prices), multiplicative};
    scalar_t* p[7];
    for (int i = 0; i < 7; ++i) p[i] = data_ptr<scalar_t>(planes[i]);
    const auto [trend, detrended, weight, mean, d_detrended, d_mean, d_center] = p;
    scalar_t *d_phase = mean, *d_price = d_mean, *d_sum = d_center;  // once those are no longer needed
    launch_windows(prices, panels, Trend<scalar_t>{s, price, trend, detrended, weight});
    launch_grid(prices, phases, PhaseMeans<scalar_t>{s, detrended, mean});
    launch_windows(
        prices, panels,
        RowGradients<scalar_t>{s, detrended, mean, data(d_seasonal), data(d_residual), d_detrended, d_mean, d_center});
    launch_windows(prices, panels, CenterTranspose<scalar_t>{s, d_center, d_mean, d_phase});
    launch_grid(
        prices, phases,
        PhaseTranspose<scalar_t>{s, trend, detrended, weight, d_detrended, d_phase, data(d_trend), d_price, d_sum});
    launch_windows(prices, panels, TrendTranspose<scalar_t>{s, price, d_price, d_sum, dx.mutable_data_ptr<scalar_t>()});
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(seasonal_decompose_backward)
