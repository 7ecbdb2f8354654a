// Seasonal-trend decomposition by LOESS of x (..., T, N), in double. An item takes a row of a column, or a fit; what a
// fit sees is weighed anew by each, which is cheaper than tables are to read.
#include "device_windows.h"

using namespace commodity;

namespace {

// Rows k = 0, 1, ... of a column or of one of its phases, which are fitted at every `jump`-th of them and joined by
// straight lines. With `beyond`, the row before the first and the row after the last are fitted too.
struct Smoother {
  int64_t length, degree, jump;
  bool beyond;

  COMMODITY_INLINE int64_t step(int64_t rows) const { return jump < rows - 1 ? jump : rows - 1; }
  COMMODITY_INLINE int64_t on_grid(int64_t rows) const { return (rows - 1) / step(rows) + 1; }
  COMMODITY_INLINE int64_t fits(int64_t rows) const {
    return on_grid(rows) + ((rows - 1) % step(rows) != 0) + (beyond ? 2 : 0);
  }
  // The row of fit f, and the first row that it sees.
  COMMODITY_INLINE int64_t row(int64_t f, int64_t rows) const {
    if (beyond && f == 0) return -1;
    if (beyond && f == fits(rows) - 1) return rows;
    const int64_t on = (f - beyond) * step(rows);
    return on < rows - 1 ? on : rows - 1;
  }
  COMMODITY_INLINE int64_t first(int64_t f, int64_t rows) const {
    const int64_t room = rows > length ? rows - length : 0;
    if (beyond && f == 0) return 0;
    if (beyond && f == fits(rows) - 1) return room;
    // a last row off the grid is fitted in the window of the grid's last row, as the authors' program does
    const int64_t g = f - beyond < on_grid(rows) ? f - beyond : on_grid(rows) - 1;
    const int64_t begin = g * step(rows) - length / 2;
    return begin < 0 ? 0 : begin > room ? room : begin;
  }
  COMMODITY_INLINE static double tricube(double distance, double bandwidth) {
    const double far = (distance < 0 ? -distance : distance) / bandwidth, fall = 1 - far * far * far;
    return far <= 0.001 ? 1 : far <= 0.999 ? fall * fall * fall : 0;
  }

  // value(k) and weight(k) of row k; NaN where the window has no weight.
  template <typename Value, typename Weight>
  COMMODITY_INLINE double fit(int64_t f, int64_t rows, const Value& value, const Weight& weight) const {
    const int64_t at = row(f, rows), begin = first(f, rows), end = begin + length < rows ? begin + length : rows;
    const int64_t before = at - begin, after = end - 1 - at, extra = length > rows ? (length - rows) / 2 : 0;
    const double bandwidth = static_cast<double>((before > after ? before : after) + extra);
    double total = 0, moment = 0, square = 0, level = 0, slope = 0;
    for (int64_t k = begin; k < end; ++k) {
      const double distance = static_cast<double>(k - at), w = weight(k) * tricube(distance, bandwidth);
      if (w == 0) continue;
      total += w, moment += w * distance, square += w * distance * distance;
      level += w * value(k), slope += w * value(k) * distance;
    }
    if (!(total > 0)) return NAN;
    const double centre = moment / total, spread = square / total - centre * centre;
    const double least = 0.001 * static_cast<double>(rows - 1);
    const double tilt = degree && spread > least * least ? centre / spread : 0;
    return (level * (1 + tilt * centre) - slope * tilt) / total;
  }
};

// Where a series lies: row k of phase j is row k * period + j of its column. A trend has one phase, of period 1.
struct Rows {
  int64_t steps, period, assets;
  COMMODITY_INLINE int64_t count(int64_t phase) const { return (steps - phase + period - 1) / period; }
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t phase, int64_t k, int64_t n) const {
    return (panel * steps + k * period + phase) * assets + n;
  }
};

// Fits of all phases; `most` is how many the longest phase has. A window without weight takes its fit from its own row.
struct Fits {
  Smoother by;
  Rows rows;
  const double *y, *weights, *present;  // weights: null if all rows count alike
  double* to;
  int64_t most;

  COMMODITY_INLINE int64_t place(int64_t panel, int64_t phase, int64_t f, int64_t n) const {
    return ((panel * rows.period + phase) * most + f) * rows.assets + n;
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item / most, f = item % most, count = rows.count(phase);
    if (f >= by.fits(count)) return;
    const auto value = [&](int64_t k) { return y[rows.at(panel, phase, k, n)]; };
    const auto weight = [&](int64_t k) { return weights ? weights[rows.at(panel, phase, k, n)] : 1; };
    double fit = by.fit(f, count, value, weight);
    const int64_t k = by.row(f, count);
    if (fit != fit && k >= 0 && k < count && present[rows.at(panel, phase, k, n)] != 0) fit = value(k);
    to[place(panel, phase, f, n)] = fit;
  }
};

// What is left takes the fit before it, else the first after it, else it is zero.
struct Fill {
  Fits fits;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    const int64_t size = fits.by.fits(fits.rows.count(phase));
    double last = NAN;
    for (int64_t f = 0; f < size; ++f) {
      double& fit = fits.to[fits.place(panel, phase, f, n)];
      last = fit = fit == fit ? fit : last;
    }
    for (int64_t f = size - 1; f >= 0; --f) {
      double& fit = fits.to[fits.place(panel, phase, f, n)];
      last = fit = fit == fit ? fit : last == last ? last : 0;
    }
  }
};

// Straight lines between fits, for row k of a phase to row k (or, with `beyond`, k + 1) of the same phase in `to`.
struct Lines {
  Fits fits;
  Rows target;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item % fits.rows.period, place = item / fits.rows.period, beyond = fits.by.beyond;
    const int64_t count = fits.rows.count(phase), k = place - beyond;
    if (place >= count + 2 * beyond) return;
    int64_t f = k < 0 ? 0 : k >= count ? fits.by.fits(count) - 1 : k / fits.by.step(count) + beyond;
    const int64_t row = fits.by.row(f, count);
    double y = fits.to[fits.place(panel, phase, f, n)];
    if (row != k) {
      const double share = static_cast<double>(k - row) / static_cast<double>(fits.by.row(f + 1, count) - row);
      y += share * (fits.to[fits.place(panel, phase, f + 1, n)] - y);
    }
    to[target.at(panel, phase, place, n)] = y;
  }
};

// Averages of `window` rows each, of x[t .. t + window - 1] to to[t].
template <int kWindows>
struct Moving {
  static constexpr int kRows = kWindows;
  const double* x;
  double* to;
  int64_t steps, assets, window;  // of x: `to` has window - 1 rows less

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t left = steps - window + 1;
    const auto see = [&](Sums<double, 1>& sum, int64_t t) {
      if (t < steps) sum.of[0] += x[(panel * steps + t) * assets + n];
    };
    over_windows<kRows, Sums<double, 1>>(first + window - 1, window, see, [&](int k, const Sums<double, 1>& sum) {
      if (first + k < left) to[(panel * left + first + k) * assets + n] = sum.of[0] / static_cast<double>(window);
    });
  }
};

// The planes of a decomposition on its way, each (B, T, N). x is taken less its level.
struct Planes {
  double *y, *present, *weights, *trend, *seasonal, *rest, *level;
  int64_t steps, assets;
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
};

template <typename scalar_t>
struct Read {
  Values<scalar_t> x;
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
    const Fits fits{by, rows, y, weights, of.present, data_of<double>(memory), most};
    launch_grid(on, Grid(batch, assets, rows.period * most), fits);
    if (weights) launch_grid(on, Grid(batch, assets, rows.period), Fill{fits});
    launch_grid(on, Grid(batch, assets, target.steps), Lines{fits, target, to});
  }
  void moving(const double* x, int64_t rows, int64_t window, double* to) const {
    with_rows<8>(window, [&]<int kRows>() {
      launch_windows(on, Panels(batch, rows - window + 1, assets), Moving<kRows>{x, to, rows, assets, window});
    });
  }
  void inner_pass() const {
    const int64_t longer = steps + 2 * period;
    const Tensor cycles = scratch(on, batch * longer * assets), work = scratch(on, batch * longer * assets);
    double *cycle = data_of<double>(cycles), *average = data_of<double>(work);
    launch(on, batch * steps * assets, LessTrend{of});
    smooth(seasonal, {steps, period, assets}, of.rest, of.weights, cycle, {longer, period, assets});
    const Tensor once = scratch(on, batch * longer * assets);
    moving(cycle, longer, period, average);
    moving(average, longer - period + 1, period, data_of<double>(once));
    moving(data_of<double>(once), steps + 2, 3, average);
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
  double* at = data_of<double>(memory);
  const Planes of{at,           at + size,    at + 2 * size, at + 3 * size, at + 4 * size, at + 5 * size, at + 6 * size,
                  panels.steps, panels.assets};
  const auto by = [&](int i) { return Smoother{lengths[i], degrees[i], jumps[i], i == 0}; };
  const Course course{x, panels.batch, panels.steps, panels.assets, period, by(0), by(1), by(2), of};
  const Grid columns(panels.batch, panels.assets, 1);
  dispatch("stl", x, [&]<typename scalar_t>() {
    launch_grid(x, columns, Read<scalar_t>{values_of<scalar_t>(x, panels), of});
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
