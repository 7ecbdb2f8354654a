// STL of x (..., T, N) in double: the steps of stl.h, each a launch over fits or rows (see loess_device.h).
#include "loess_device.h"

using namespace commodity;

namespace {

// Intermediate results, each (B, T, N), and the mean `level` (B, N), which is subtracted from x.
struct Planes {
  double *y, *present, *weights, *trend, *seasonal, *input, *level;
  int64_t steps, assets;
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
};

template <typename scalar_t>
struct Center {
  FiniteValues<scalar_t> x;
  Planes to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double sum = 0, count = 0;
    for (int64_t t = 0; t < x.steps; ++t) {
      const double value = x(panel, t, n);
      sum += value == value ? value : 0, count += value == value ? 1 : 0;
    }
    const double level = sum / count;  // NaN for an empty series
    to.level[panel * x.assets + n] = level;
    for (int64_t t = 0; t < x.steps; ++t) {
      const double value = x(panel, t, n);
      const int64_t i = x.at(panel, t, n);
      to.y[i] = value == value ? value - level : 0;
      to.present[i] = to.weights[i] = value == value;
      to.trend[i] = to.seasonal[i] = 0;
    }
  }
};

struct SubtractTrend {
  Planes planes;
  COMMODITY_INLINE void operator()(int64_t i) const { planes.input[i] = planes.y[i] - planes.trend[i]; }
};

struct SubtractSeasonal {
  Planes planes;
  const double *cycles, *low;  // cycles are extended by one period i both ends
  int64_t period;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t i = planes.at(panel, t, n);
    planes.seasonal[i] = cycles[(panel * (planes.steps + 2 * period) + t + period) * planes.assets + n] - low[i];
    planes.input[i] = planes.y[i] - planes.seasonal[i];
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

// The launches of one decomposition.
struct Launcher {
  const Tensor& like;
  int64_t batch, steps, assets, period;
  Smoother seasonal, trend, low_pass;
  Planes planes;

  // Smooths y, laid out as `rows`, to `to`, laid out as `target` (longer if the smoother extends).
  void smooth(const Smoother& smoother, const Rows& rows, const double* y, const double* weights, double* to,
              const Rows& target) const {
    const int64_t max_fits = std::max(smoother.fits(rows.count(0)), smoother.fits(rows.count(rows.period - 1)));
    const Tensor memory = scratch(like, batch * rows.period * max_fits * assets);
    const Fits fits{smoother, rows, y, weights, planes.present, data_ptr<double>(memory), max_fits};
    launch_grid(like, Grid(batch, assets, rows.period * max_fits), fits);
    if (weights) launch_grid(like, Grid(batch, assets, rows.period), Fill{fits});
    launch_grid(like, Grid(batch, assets, target.steps), Lines{fits, target, to});
  }
  void moving_average(const double* x, int64_t rows, int64_t window, double* to) const {
    dispatch_rows<8>(window, [&]<int kRows>() {
      launch_windows(like, Panels(batch, rows - window + 1, assets), MovingAverage<kRows>{x, to, rows, assets, window});
    });
  }
  void inner_pass() const {
    const int64_t extended = steps + 2 * period;
    const Tensor cycles = scratch(like, batch * extended * assets), work = scratch(like, batch * extended * assets);
    double *cycle_data = data_ptr<double>(cycles), *average_data = data_ptr<double>(work);
    launch(like, batch * steps * assets, SubtractTrend{planes});
    smooth(seasonal, {steps, period, assets}, planes.input, planes.weights, cycle_data, {extended, period, assets});
    const Tensor first_average = scratch(like, batch * extended * assets);
    moving_average(cycle_data, extended, period, average_data);
    moving_average(average_data, extended - period + 1, period, data_ptr<double>(first_average));
    moving_average(data_ptr<double>(first_average), steps + 2, 3, average_data);
    smooth(low_pass, {steps, 1, assets}, average_data, nullptr, planes.input, {steps, 1, assets});
    launch_grid(like, Grid(batch, assets, steps), SubtractSeasonal{planes, cycle_data, planes.input, period});
    smooth(trend, {steps, 1, assets}, planes.input, planes.weights, planes.trend, {steps, 1, assets});
  }
};

using Parts = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Parts stl(const Tensor& x_, int64_t period, std::vector<int64_t> lengths, std::vector<int64_t> degrees,
          std::vector<int64_t> jumps, int64_t inner, int64_t outer) {
  STD_TORCH_CHECK(period >= 2 && x_.size(-2) >= 2 * period, "stl: needs T >= 2 period");
  STD_TORCH_CHECK(lengths.size() == 3 && degrees.size() == 3 && jumps.size() == 3,
                  "stl: lengths, degrees and jumps must have 3 elements");
  const Tensor x = contiguous(x_);
  const Panels panels(x);
  const int64_t size = x.numel();
  const auto empty = [&] { return new_empty(x, x.sizes()); };
  Tensor parts[4] = {empty(), empty(), empty(), empty()};
  const Tensor memory = scratch(x, 6 * size + panels.batch * panels.assets);
  double* p = data_ptr<double>(memory);
  const Planes planes{
      p, p + size, p + 2 * size, p + 3 * size, p + 4 * size, p + 5 * size, p + 6 * size, panels.steps, panels.assets};
  const auto smoother = [&](int i) { return Smoother{lengths[i], degrees[i], jumps[i], i == 0}; };
  const Launcher launcher{x,           panels.batch, panels.steps, panels.assets, period,
                          smoother(0), smoother(1),  smoother(2),  planes};
  const Grid columns(panels.batch, panels.assets, 1);
  dispatch("stl", x, [&]<typename scalar_t>() {
    launch_grid(x, columns, Center<scalar_t>{finite_values<scalar_t>(x, panels), planes});
    for (int64_t outer_pass = 0; outer_pass <= outer; ++outer_pass) {
      if (outer_pass) launch_grid(x, columns, RobustnessWeights{planes});
      for (int64_t pass = 0; pass < inner; ++pass) launcher.inner_pass();
    }
    Write<scalar_t> write{planes, {}};
    for (int i = 0; i < 4; ++i) write.to[i] = parts[i].mutable_data_ptr<scalar_t>();
    launch_grid(x, Grid(panels.batch, panels.assets, panels.steps), write);
  });
  return {parts[0], parts[1], parts[2], parts[3]};
}

}  // namespace

COMMODITY_CUDA(stl)
