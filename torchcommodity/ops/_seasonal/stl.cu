// Seasonal-trend decomposition by LOESS of x (..., T, N), in double. An item takes a row of a column, or a fit; what a
// fit sees is weighed anew by each, which is cheaper than tables are to read.
#include "loess_device.h"

using namespace commodity;

namespace {

// The planes of a decomposition on its way, each (B, T, N). x is taken less its level.
struct Planes {
  double *y, *present, *weights, *trend, *seasonal, *rest, *level;
  int64_t steps, assets;
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
};

template <typename scalar_t>
struct Read {
  FiniteValues<scalar_t> x;
  Planes to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double sum = 0, count = 0;
    for (int64_t t = 0; t < x.steps; ++t) {
      const double value = x(panel, t, n);
      sum += value == value ? value : 0, count += value == value ? 1 : 0;
    }
    const double level = sum / count;  // NaN: nothing is there
    to.level[panel * x.assets + n] = level;
    for (int64_t t = 0; t < x.steps; ++t) {
      const double value = x(panel, t, n);
      const int64_t at = x.at(panel, t, n);
      to.y[at] = value == value ? value - level : 0;
      to.present[at] = to.weights[at] = value == value;
      to.trend[at] = to.seasonal[at] = 0;
    }
  }
};

struct LessTrend {
  Planes of;
  COMMODITY_INLINE void operator()(int64_t at) const { of.rest[at] = of.y[at] - of.trend[at]; }
};

struct LessSeasonal {
  Planes of;
  const double *cycles, *low;  // cycles: a period more before and after
  int64_t period;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t at = of.at(panel, t, n);
    of.seasonal[at] = cycles[(panel * (of.steps + 2 * period) + t + period) * of.assets + n] - low[at];
    of.rest[at] = of.y[at] - of.seasonal[at];
  }
};

// (1 - (r / 6 medians)^2)^2, where r is the size of the residual.
struct WeighOutliers {
  Planes of;

  COMMODITY_INLINE double size(int64_t at) const { return std::abs(of.y[at] - of.trend[at] - of.seasonal[at]); }
  // The value with `rank` smaller ones, found bit by bit: doubles that are not negative are ordered as their bits are.
  COMMODITY_INLINE double ranked(int64_t panel, int64_t n, int64_t rank) const {
    uint64_t bits = 0;
    for (int bit = 62; bit >= 0; --bit) {
      const uint64_t above = bits | (uint64_t(1) << bit);
      double limit;
      memcpy(&limit, &above, sizeof limit);
      int64_t below = 0;
      for (int64_t t = 0; t < of.steps; ++t) {
        const int64_t at = of.at(panel, t, n);
        below += of.present[at] != 0 && size(at) < limit ? 1 : 0;
      }
      if (below <= rank) bits = above;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    int64_t count = 0;
    for (int64_t t = 0; t < of.steps; ++t) count += of.present[of.at(panel, t, n)] != 0 ? 1 : 0;
    const double upper = count ? ranked(panel, n, count / 2) : 0;
    const double median = count % 2 || !count ? upper : (upper + ranked(panel, n, count / 2 - 1)) / 2;
    for (int64_t t = 0; t < of.steps; ++t) {
      const int64_t at = of.at(panel, t, n);
      const double far = median > 0 ? size(at) / (6 * median) : 0, fall = 1 - far * far;
      of.weights[at] = of.present[at] == 0 ? 0 : far <= 0.001 ? 1 : far <= 0.999 ? fall * fall : 0;
    }
  }
};

template <typename scalar_t>
struct Write {
  Planes of;
  scalar_t* to[4];

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t at = of.at(panel, t, n);
    const double level = of.level[panel * of.assets + n], nothing = 0 * level;
    to[0][at] = static_cast<scalar_t>(of.trend[at] + level);
    to[1][at] = static_cast<scalar_t>(of.seasonal[at] + nothing);
    to[2][at] = static_cast<scalar_t>(of.present[at] != 0 ? of.y[at] - of.trend[at] - of.seasonal[at] : NAN);
    to[3][at] = static_cast<scalar_t>(of.weights[at]);
  }
};

// Launches of one decomposition.
struct Course {
  const Tensor& on;
  int64_t batch, steps, assets, period;
  Smoother seasonal, trend, low_pass;
  Planes of;

  // y by rows to `to`; `target` differs from rows where it reaches beyond them.
  void smooth(const Smoother& by, const Rows& rows, const double* y, const double* weights, double* to,
              const Rows& target) const {
    const int64_t most = std::max(by.fits(rows.count(0)), by.fits(rows.count(rows.period - 1)));
    const Tensor memory = scratch(on, batch * rows.period * most * assets);
    const Fits fits{by, rows, y, weights, of.present, data_ptr<double>(memory), most};
    launch_grid(on, Grid(batch, assets, rows.period * most), fits);
    if (weights) launch_grid(on, Grid(batch, assets, rows.period), Fill{fits});
    launch_grid(on, Grid(batch, assets, target.steps), Lines{fits, target, to});
  }
  void moving(const double* x, int64_t rows, int64_t window, double* to) const {
    dispatch_rows<8>(window, [&]<int kRows>() {
      launch_windows(on, Panels(batch, rows - window + 1, assets), Moving<kRows>{x, to, rows, assets, window});
    });
  }
  void inner_pass() const {
    const int64_t longer = steps + 2 * period;
    const Tensor cycles = scratch(on, batch * longer * assets), work = scratch(on, batch * longer * assets);
    double *cycle = data_ptr<double>(cycles), *average = data_ptr<double>(work);
    launch(on, batch * steps * assets, LessTrend{of});
    smooth(seasonal, {steps, period, assets}, of.rest, of.weights, cycle, {longer, period, assets});
    const Tensor once = scratch(on, batch * longer * assets);
    moving(cycle, longer, period, average);
    moving(average, longer - period + 1, period, data_ptr<double>(once));
    moving(data_ptr<double>(once), steps + 2, 3, average);
    smooth(low_pass, {steps, 1, assets}, average, nullptr, of.rest, {steps, 1, assets});
    launch_grid(on, Grid(batch, assets, steps), LessSeasonal{of, cycle, of.rest, period});
    smooth(trend, {steps, 1, assets}, of.rest, of.weights, of.trend, {steps, 1, assets});
  }
};

using Parts = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Parts stl(const Tensor& x_, int64_t period, std::vector<int64_t> lengths, std::vector<int64_t> degrees,
          std::vector<int64_t> jumps, int64_t inner, int64_t outer) {
  STD_TORCH_CHECK(period >= 2 && x_.size(-2) >= 2 * period, "stl: needs T >= 2 period");
  STD_TORCH_CHECK(lengths.size() == 3 && degrees.size() == 3 && jumps.size() == 3, "stl: has three smoothers");
  const Tensor x = contiguous(x_);
  const Panels panels(x);
  const int64_t size = x.numel();
  const auto empty = [&] { return new_empty(x, x.sizes()); };
  Tensor parts[4] = {empty(), empty(), empty(), empty()};
  const Tensor memory = scratch(x, 6 * size + panels.batch * panels.assets);
  double* at = data_ptr<double>(memory);
  const Planes of{at,           at + size,    at + 2 * size, at + 3 * size, at + 4 * size, at + 5 * size, at + 6 * size,
                  panels.steps, panels.assets};
  const auto by = [&](int i) { return Smoother{lengths[i], degrees[i], jumps[i], i == 0}; };
  const Course course{x, panels.batch, panels.steps, panels.assets, period, by(0), by(1), by(2), of};
  const Grid columns(panels.batch, panels.assets, 1);
  dispatch("stl", x, [&]<typename scalar_t>() {
    launch_grid(x, columns, Read<scalar_t>{finite_values<scalar_t>(x, panels), of});
    for (int64_t outside = 0; outside <= outer; ++outside) {
      if (outside) launch_grid(x, columns, WeighOutliers{of});
      for (int64_t inside = 0; inside < inner; ++inside) course.inner_pass();
    }
    Write<scalar_t> write{of, {}};
    for (int i = 0; i < 4; ++i) write.to[i] = parts[i].mutable_data_ptr<scalar_t>();
    launch_grid(x, Grid(panels.batch, panels.assets, panels.steps), write);
  });
  return {parts[0], parts[1], parts[2], parts[3]};
}

}  // namespace

COMMODITY_CUDA(stl)
