// STL of x (..., T, N) in double: the steps of stl.h, each a launch over fits or rows (see loess_device.h).
#include "stl_device.h"

using namespace commodity;

namespace {

// Intermediate results, each (B, T, N), and of each column the mean, which is subtracted from x, and what is missing.
struct Planes {
  double *y, *present, *weights, *trend, *seasonal, *detrended, *deseasonalized, *level, *missing;
  int64_t steps, assets;
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
};

template <typename scalar_t>
struct Center {
  static constexpr int64_t kRows = kRunRows;
  FiniteValues<scalar_t> x;
  ColumnSums sums;
  Planes to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const Sums<double, 2> total = sums.total(panel, n);
    const double count = total.term[1], level = total.term[0] / count;  // NaN for an empty series
    to.level[panel * x.assets + n] = level;
    to.missing[panel * x.assets + n] = count == static_cast<double>(x.steps) ? kNothing : kSomeRows;
    for (int64_t t = first; t < first + kRows && t < x.steps; ++t) {
      const double value = x(panel, t, n);
      const int64_t i = x.at(panel, t, n);
      to.y[i] = to.detrended[i] = value == value ? value - level : 0;
      to.present[i] = to.weights[i] = value == value;
    }
  }
};

// seasonal = cycles - low pass; the cycles are extended by one period at both ends.
struct StoreSeasonal {
  Planes planes;
  const double* cycles;
  int64_t period;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t, int64_t t, int64_t n, double low) const {
    const int64_t i = planes.at(panel, t, n);
    const double seasonal = read(cycles + (panel * (planes.steps + 2 * period) + t + period) * planes.assets + n) - low;
    planes.seasonal[i] = seasonal;
    planes.deseasonalized[i] = planes.y[i] - seasonal;
  }
};

struct StoreTrend {
  Planes planes;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t, int64_t t, int64_t n, double trend) const {
    const int64_t i = planes.at(panel, t, n);
    planes.trend[i] = trend;
    planes.detrended[i] = planes.y[i] - trend;
  }
};

// Bisquare weights (1 - (r / 6 median r)^2)^2, r = |residual|.
struct RobustnessWeights {
  Planes planes;

  COMMODITY_INLINE double size(int64_t i) const { return std::abs(planes.y[i] - planes.trend[i] - planes.seasonal[i]); }
  // The order statistic of a rank, found bit by bit: non-negative doubles are ordered as their bit patterns.
  COMMODITY_INLINE double order_statistic(int64_t panel, int64_t n, int64_t rank) const {
    uint64_t bits = 0;
    for (int bit = 62; bit >= 0; --bit) {
      const uint64_t candidate = bits | (uint64_t(1) << bit);
      double limit;
      memcpy(&limit, &candidate, sizeof limit);
      int64_t smaller = 0;
      for (int64_t t = 0; t < planes.steps; ++t) {
        const int64_t i = planes.at(panel, t, n);
        smaller += planes.present[i] != 0 && size(i) < limit ? 1 : 0;
      }
      if (smaller <= rank) bits = candidate;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    int64_t count = 0;
    for (int64_t t = 0; t < planes.steps; ++t) count += planes.present[planes.at(panel, t, n)] != 0 ? 1 : 0;
    const double upper = count ? order_statistic(panel, n, count / 2) : 0;
    const double median = count % 2 || !count ? upper : (upper + order_statistic(panel, n, count / 2 - 1)) / 2;
    planes.missing[panel * planes.assets + n] = kSomeRows;
    for (int64_t t = 0; t < planes.steps; ++t) {
      const int64_t i = planes.at(panel, t, n);
      const double u = median > 0 ? size(i) / (6 * median) : 0, complement = 1 - u * u;
      planes.weights[i] = planes.present[i] == 0 ? 0 : u <= 0.001 ? 1 : u <= 0.999 ? complement * complement : 0;
    }
  }
};

template <typename scalar_t>
struct Write {
  Planes planes;
  scalar_t* to[4];

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t i = planes.at(panel, t, n);
    const double level = planes.level[panel * planes.assets + n], nan_if_empty = 0 * level;
    to[0][i] = static_cast<scalar_t>(planes.trend[i] + level);
    to[1][i] = static_cast<scalar_t>(planes.seasonal[i] + nan_if_empty);
    to[2][i] = static_cast<scalar_t>(planes.present[i] != 0 ? planes.y[i] - planes.trend[i] - planes.seasonal[i] : NAN);
    to[3][i] = static_cast<scalar_t>(planes.weights[i]);
  }
};

using Parts = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Parts stl(const Tensor& x_, int64_t period, std::vector<int64_t> lengths, std::vector<int64_t> degrees,
          std::vector<int64_t> jumps, int64_t inner, int64_t outer) {
  STD_TORCH_CHECK(period >= 2 && inner >= 1 && x_.size(-2) >= 2 * period, "stl: needs T >= 2 period and a pass");
  const Tensor x = contiguous(x_);
  const Panels panels(x);
  const int64_t batch = panels.batch, steps = panels.steps, assets = panels.assets, extended = steps + 2 * period;
  const auto empty = [&] { return new_empty(x, x.sizes()); };
  Tensor parts[4] = {empty(), empty(), empty(), empty()};
  std::vector<Tensor> memory;
  const auto plane = [&](int64_t rows) {
    memory.push_back(scratch(x, batch * rows * assets));
    return data_ptr<double>(memory.back());
  };
  const Planes planes{plane(steps), plane(steps), plane(steps), plane(steps), plane(steps), plane(steps),
                      plane(steps), plane(1),     plane(1),     steps,        assets};
  double *cycles = plane(extended), *average = plane(extended), *other_average = plane(extended);
  const ColumnSums sums(plane(2 * ColumnSums::chunks_of(steps)), panels);
  const Smoothers smoothers(x, panels, period, lengths, degrees, jumps,
                            {planes.weights, planes.present, planes.missing});
  const auto inner_pass = [&] {
    for (const Loess& phases : smoothers.phases)
      phases.smooth(planes.detrended, StoreRows{{extended, period, assets, phases.fits.rows.first_phase}, cycles});
    moving_average(x, batch, assets, cycles, extended, period, average);
    moving_average(x, batch, assets, average, extended - period + 1, period, other_average);
    moving_average(x, batch, assets, other_average, steps + 2, 3, average);
    smoothers.low_pass->smooth(average, StoreSeasonal{planes, cycles, period});
    smoothers.trend->smooth(planes.deseasonalized, StoreTrend{planes});
  };
  dispatch("stl", x, [&]<typename scalar_t>() {
    const FiniteValues<scalar_t> values = finite_values<scalar_t>(x, panels);
    sum_columns(x, panels, FiniteSum<scalar_t>{values}, sums);
    launch_windows(x, panels, Center<scalar_t>{values, sums, planes});
    for (int64_t outer_pass = 0; outer_pass <= outer; ++outer_pass) {
      if (outer_pass) launch_grid(x, Grid(batch, assets, 1), RobustnessWeights{planes});
      smoothers.update_factors();
      for (int64_t pass = 0; pass < inner; ++pass) inner_pass();
    }
    Write<scalar_t> write{planes, {}};
    for (int i = 0; i < 4; ++i) write.to[i] = parts[i].mutable_data_ptr<scalar_t>();
    launch_grid(x, Grid(batch, assets, steps), write);
  });
  return {parts[0], parts[1], parts[2], parts[3]};
}

}  // namespace

COMMODITY_CUDA(stl)
