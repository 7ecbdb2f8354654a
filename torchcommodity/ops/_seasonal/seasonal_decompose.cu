// Classical seasonal decomposition of prices (..., T, N), as in seasonal_decompose.cpp.
//
// Three launches: the trend, the phase means, the seasonal and residual. Trend and means are kept in double between
// them, since a float32 trend would lose the digits of the seasonal. The mean of all phases at a row is a window over
// the phase means of the last `period` rows.
#include "device_windows.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Series {
  const scalar_t* x;
  int64_t steps, assets, period;
  bool multiplicative, causal;

  COMMODITY_INLINE int64_t index(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  COMMODITY_INLINE double price(int64_t index) const {  // NaN if missing
    const double price = read(x + index);
    return multiplicative && !(price > 0) ? NAN : price + (price - price);
  }
};

// An even period weighs the two ends by half: the sum at t plus the sum at t - 1.
template <typename scalar_t, int kWindows>
struct Trend {
  static constexpr int kRows = kWindows;
  Series<scalar_t> s;
  double* trend;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const bool even = s.period % 2 == 0;
    const int64_t lead = s.causal ? 0 : s.period / 2, warmup = s.period - s.period % 2;
    const auto add = [&](Sums<double, 2>& sums, int64_t t, int weight) {
      const double price = t >= 0 && t < s.steps ? s.price(s.index(panel, t, n)) : NAN;
      if (price == price) sums.term[0] += weight * price, sums.term[1] += weight;
    };
    const auto visit = [&](Sums<double, 2>& sums, int64_t t) {
      add(sums, t, even ? 1 : 2);
      if (even) add(sums, t - 1, 1);
    };
    for_each_window<kRows, Sums<double, 2>>(first + lead, s.period, visit, [&](int k, const Sums<double, 2>& sums) {
      const int64_t window_end = first + k + lead;
      const bool has_trend = window_end >= warmup && window_end < s.steps &&
                             sums.term[1] >= s.period;  // at least half of the total weight, 2 x period
      if (first + k < s.steps) trend[s.index(panel, first + k, n)] = has_trend ? sums.term[0] / sums.term[1] : NAN;
    });
  }
};

// The mean of each phase over the rows so far, or, two-sided, over all rows.
template <typename scalar_t>
struct PhaseMeans {
  Series<scalar_t> s;
  const double* trend;
  double* mean;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    double sum = 0, count = 0;
#pragma unroll 4
    for (int64_t t = phase; t < s.steps; t += s.period) {
      const int64_t index = s.index(panel, t, n);
      const double price = s.price(index), average = read(trend + index);
      const double detrended = s.multiplicative ? price / average : price - average;
      sum += detrended == detrended ? detrended : 0;
      count += detrended == detrended ? 1 : 0;
      if (s.causal) mean[index] = sum / count;  // NaN before the first row
    }
    for (int64_t t = phase; t < s.steps && !s.causal; t += s.period) mean[s.index(panel, t, n)] = sum / count;
  }
};

template <typename scalar_t, int kWindows>
struct Parts {
  static constexpr int kRows = kWindows;
  Series<scalar_t> s;
  const double *trend, *mean;
  scalar_t *trend_out, *seasonal, *residual;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto visit = [&](Sums<double, 1>& sum, int64_t t) {
      sum.term[0] += t >= 0 && t < s.steps ? read(mean + s.index(panel, t, n)) : NAN;
    };
    Sums<double, 1> all_phases;
    for (int64_t t = s.steps < s.period ? 0 : s.steps - s.period; !s.causal && t < s.steps; ++t) visit(all_phases, t);
    const auto finish = [&](int k, const Sums<double, 1>& sum) {
      if (first + k < s.steps) write(s.index(panel, first + k, n), (s.causal ? sum : all_phases).term[0] / s.period);
    };
    for_each_window<kRows, Sums<double, 1>>(first, s.period, visit, finish);
  }
  COMMODITY_INLINE void write(int64_t index, double center) const {
    const double price = s.price(index), average = read(trend + index), phase_mean = read(mean + index);
    const double seasonal_value = s.multiplicative ? phase_mean / center : phase_mean - center;
    trend_out[index] = static_cast<scalar_t>(average);
    seasonal[index] = static_cast<scalar_t>(seasonal_value);
    residual[index] =
        static_cast<scalar_t>(s.multiplicative ? price / (average * seasonal_value) : price - average - seasonal_value);
  }
};

std::tuple<Tensor, Tensor, Tensor> seasonal_decompose(const Tensor& prices_, int64_t period, bool multiplicative,
                                                      bool causal) {
  STD_TORCH_CHECK(period >= 2, "seasonal_decompose: period must be >= 2");
  const Tensor prices = contiguous(prices_);
  const auto empty = [&] { return new_empty(prices, prices.sizes()); };
  Tensor trend = empty(), seasonal = empty(), residual = empty();
  const Tensor levels = scratch(prices, prices.numel()), phase_means = scratch(prices, prices.numel());
  const Panels panels(prices);
  period = limit_window(period, panels.steps);
  dispatch("seasonal_decompose", prices, [&]<typename scalar_t>() {
    const Series<scalar_t> s{
        prices.const_data_ptr<scalar_t>(), panels.steps, panels.assets, period, multiplicative, causal};
    double *trend_data = data_ptr<double>(levels), *mean = data_ptr<double>(phase_means);
    dispatch_rows<16>(period, [&]<int kRows>() {
      launch_windows(prices, panels, Trend<scalar_t, kRows>{s, trend_data});
      launch_grid(prices, Grid(panels.batch, panels.assets, period), PhaseMeans<scalar_t>{s, trend_data, mean});
      launch_windows(
          prices, panels,
          Parts<scalar_t, kRows>{s, trend_data, mean, trend.mutable_data_ptr<scalar_t>(),
                                 seasonal.mutable_data_ptr<scalar_t>(), residual.mutable_data_ptr<scalar_t>()});
    });
  });
  return {trend, seasonal, residual};
}

}  // namespace

COMMODITY_CUDA(seasonal_decompose)
