// Trend, seasonal and residual of prices (..., T, N): a moving average, and the means of what it leaves by phase.
//
// Three passes over chunks of time, with the trend and the means in double between them: a float32 trend would cost the
// seasonal its digits. The phases known at a row are the means of the last `period` rows: one more window.
#include "device_windows.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Series {
  const scalar_t* x;
  int64_t steps, assets, period;
  bool multiplicative, causal;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  COMMODITY_INLINE double price(int64_t at) const {  // NaN where it is missing
    const double price = read(x + at);
    return multiplicative && !(price > 0) ? NAN : price + (price - price);
  }
};

// An even period counts each of its inner rows twice and the two ends once: the sum at t and the sum at t - 1.
template <typename scalar_t, int kWindows>
struct Trend {
  static constexpr int kRows = kWindows;
  Series<scalar_t> s;
  double* trend;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const bool even = s.period % 2 == 0;
    const int64_t ahead = s.causal ? 0 : s.period / 2, lookback = s.period - s.period % 2;
    const auto add = [&](Sums<double, 2>& sums, int64_t t, int weight) {
      const double price = t >= 0 && t < s.steps ? s.price(s.at(panel, t, n)) : NAN;
      if (price == price) sums.term[0] += weight * price, sums.term[1] += weight;
    };
    const auto see = [&](Sums<double, 2>& sums, int64_t t) {
      add(sums, t, even ? 1 : 2);
      if (even) add(sums, t - 1, 1);
    };
    for_each_window<kRows, Sums<double, 2>>(first + ahead, s.period, see, [&](int k, const Sums<double, 2>& sums) {
      const int64_t last = first + k + ahead;
      const bool enough = last >= lookback && last < s.steps && sums.term[1] >= s.period;  // half of 2 x period
      if (first + k < s.steps) trend[s.at(panel, first + k, n)] = enough ? sums.term[0] / sums.term[1] : NAN;
    });
  }
};

// The mean of each phase over the rows seen so far, or over all.
template <typename scalar_t>
struct Means {
  Series<scalar_t> s;
  const double* trend;
  double* mean;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    double sum = 0, count = 0;
#pragma unroll 4
    for (int64_t t = phase; t < s.steps; t += s.period) {
      const int64_t at = s.at(panel, t, n);
      const double price = s.price(at), level = read(trend + at);
      const double rest = s.multiplicative ? price / level : price - level;
      sum += rest == rest ? rest : 0;
      count += rest == rest ? 1 : 0;
      if (s.causal) mean[at] = sum / count;  // NaN before the first
    }
    for (int64_t t = phase; t < s.steps && !s.causal; t += s.period) mean[s.at(panel, t, n)] = sum / count;
  }
};

template <typename scalar_t, int kWindows>
struct Parts {
  static constexpr int kRows = kWindows;
  Series<scalar_t> s;
  const double *trend, *mean;
  scalar_t *to_trend, *seasonal, *residual;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto see = [&](Sums<double, 1>& sum, int64_t t) {
      sum.term[0] += t >= 0 && t < s.steps ? read(mean + s.at(panel, t, n)) : NAN;
    };
    Sums<double, 1> final;
    for (int64_t t = s.steps - s.period; !s.causal && t < s.steps; ++t) see(final, t);
    const auto done = [&](int k, const Sums<double, 1>& sum) {
      if (first + k < s.steps) write(s.at(panel, first + k, n), (s.causal ? sum : final).term[0] / s.period);
    };
    for_each_window<kRows, Sums<double, 1>>(first, s.period, see, done);
  }
  COMMODITY_INLINE void write(int64_t at, double middle) const {
    const double price = s.price(at), level = read(trend + at), own = read(mean + at);
    const double season = s.multiplicative ? own / middle : own - middle;
    to_trend[at] = static_cast<scalar_t>(level);
    seasonal[at] = static_cast<scalar_t>(season);
    residual[at] = static_cast<scalar_t>(s.multiplicative ? price / (level * season) : price - level - season);
  }
};

std::tuple<Tensor, Tensor, Tensor> seasonal_decompose(const Tensor& prices_, int64_t period, bool multiplicative,
                                                      bool causal) {
  STD_TORCH_CHECK(period >= 2, "seasonal_decompose: period must be >= 2");
  const Tensor prices = contiguous(prices_);
  const auto empty = [&] { return new_empty(prices, prices.sizes()); };
  Tensor trend = empty(), seasonal = empty(), residual = empty();
  const Tensor levels = scratch(prices, prices.numel()), means = scratch(prices, prices.numel());
  const Panels panels(prices);
  dispatch("seasonal_decompose", prices, [&]<typename scalar_t>() {
    const Series<scalar_t> s{
        prices.const_data_ptr<scalar_t>(), panels.steps, panels.assets, period, multiplicative, causal};
    double *level = data_ptr<double>(levels), *mean = data_ptr<double>(means);
    dispatch_rows<16>(period, [&]<int kRows>() {
      launch_windows(prices, panels, Trend<scalar_t, kRows>{s, level});
      launch_grid(prices, Grid(panels.batch, panels.assets, period), Means<scalar_t>{s, level, mean});
      launch_windows(
          prices, panels,
          Parts<scalar_t, kRows>{s, level, mean, trend.mutable_data_ptr<scalar_t>(),
                                 seasonal.mutable_data_ptr<scalar_t>(), residual.mutable_data_ptr<scalar_t>()});
    });
  });
  return {trend, seasonal, residual};
}

}  // namespace

COMMODITY_CUDA(seasonal_decompose)
