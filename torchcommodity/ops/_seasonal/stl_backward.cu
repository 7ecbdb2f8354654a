// The transpose of stl without robustness weights, in double: every line of its inner pass, last to first. Each item
// gathers what is owed to it, so that no two add to the same number.
#include "loess_device.h"

using namespace commodity;

namespace {

// What a fit is owed by the lines that begin or end in it.
struct FromLines {
  Fits fits;
  Rows target;
  const double* grad;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item / fits.most, f = item % fits.most, count = fits.rows.count(phase);
    const int64_t size = fits.by.fits(count), beyond = fits.by.beyond;
    if (f >= size) return;
    const auto owed = [&](int64_t row) { return grad[target.at(panel, phase, row + beyond, n)]; };
    const int64_t own = fits.by.row(f, count);
    double sum = owed(own);
    if (f + 1 < size) {
      const int64_t next = fits.by.row(f + 1, count);
      for (int64_t k = own + 1; k < next; ++k) sum += owed(k) * static_cast<double>(next - k) / double(next - own);
    }
    if (f > 0) {
      const int64_t last = fits.by.row(f - 1, count);
      for (int64_t k = last + 1; k < own; ++k) sum += owed(k) * static_cast<double>(k - last) / double(own - last);
    }
    to[fits.place(panel, phase, f, n)] = sum;
  }
};

// What the weights make of every fit; a total of -1 says that the fit is its own row, 0 that it is another's.
struct Weigh {
  Fits fits;
  Smoother::Balance* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item / fits.most, f = item % fits.most, count = fits.rows.count(phase);
    if (f >= fits.by.fits(count)) return;
    const auto weight = [&](int64_t k) { return fits.weights ? fits.weights[fits.rows.at(panel, phase, k, n)] : 1; };
    Smoother::Balance b = fits.by.balance(f, count, weight, [](int64_t, double, double) {});
    const int64_t k = fits.by.row(f, count);
    const bool inside = k >= 0 && k < count;
    if (b.total == 0 && inside && fits.present[fits.rows.at(panel, phase, k, n)] != 0) b.total = -1;
    to[fits.place(panel, phase, f, n)] = b;
  }
};

// A fit that was taken from another owes it everything.
struct FromFill {
  Fits fits;
  const Smoother::Balance* balances;
  double* owed;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    const int64_t size = fits.by.fits(fits.rows.count(phase));
    const auto known = [&](int64_t f) { return balances[fits.place(panel, phase, f, n)].total != 0; };
    int64_t source = 0;
    while (source < size && !known(source)) ++source;
    for (int64_t f = 0; f < size; ++f) {
      if (known(f)) source = f;
      if (source == f || known(f)) continue;
      double& own = owed[fits.place(panel, phase, f, n)];
      if (source < size) owed[fits.place(panel, phase, source, n)] += own;
      own = 0;
    }
  }
};

// What a row is owed by the fits that see it.
struct FromFits {
  Fits fits;
  const Smoother::Balance* balances;
  const double* owed;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t phase = t % fits.rows.period, k = t / fits.rows.period, count = fits.rows.count(phase);
    const int64_t size = fits.by.fits(count), step = fits.by.step(count), at = fits.rows.at(panel, phase, k, n);
    const int64_t near = (k - fits.by.length) / step - 2, far = (k + fits.by.length) / step + 4;
    const double own = fits.weights ? fits.weights[at] : 1;
    double sum = 0;
    for (int64_t f = near < 0 ? 0 : near; f < size && f <= far; ++f) sum += share(panel, phase, f, k, n, count, own);
    if (fits.by.beyond && far < size - 1) sum += share(panel, phase, size - 1, k, n, count, own);
    if (fits.by.beyond && near > 0) sum += share(panel, phase, 0, k, n, count, own);
    to[at] = sum;
  }
  COMMODITY_INLINE double share(int64_t panel, int64_t phase, int64_t f, int64_t k, int64_t n, int64_t count,
                                double own) const {
    const int64_t place = fits.place(panel, phase, f, n), begin = fits.by.first(f, count), row = fits.by.row(f, count);
    const Smoother::Balance b = balances[place];
    if (b.total < 0) return k == row ? owed[place] : 0;
    if (b.total == 0 || k < begin || k >= begin + fits.by.length) return 0;
    const double distance = static_cast<double>(k - row);
    return owed[place] * own * Smoother::tricube(distance, b.bandwidth) * (b.tilted - b.tilt * distance) / b.total;
  }
};

// Each row of x is owed by the averages that hold it.
template <int kWindows>
struct FromMoving {
  static constexpr int kRows = kWindows;
  const double* grad;
  double* to;
  int64_t steps, assets, window;  // of x: `grad` has window - 1 rows less

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t left = steps - window + 1;
    const auto see = [&](Sums<double, 1>& sum, int64_t t) {
      if (t >= 0 && t < left) sum.term[0] += grad[(panel * left + t) * assets + n];
    };
    for_each_window<kRows, Sums<double, 1>>(first, window, see, [&](int k, const Sums<double, 1>& sum) {
      if (first + k < steps) to[(panel * steps + first + k) * assets + n] = sum.term[0] / static_cast<double>(window);
    });
  }
};

// What has come so far to y, to the trend and to the seasonal, each (B, T, N).
struct Planes {
  double *y, *present, *trend, *seasonal, *rest, *level;
  int64_t steps, assets;
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
};

template <typename scalar_t>
struct Read {
  FiniteValues<scalar_t> x;
  const scalar_t *trend, *seasonal, *residual;
  Planes to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double sum = 0;
    for (int64_t t = 0; t < x.steps; ++t) {
      const int64_t at = x.at(panel, t, n);
      const scalar_t value = x(panel, t, n);
      to.present[at] = value == value;
      to.y[at] = value == value ? read(residual + at) : 0;
      to.trend[at] = read(trend + at) - to.y[at], to.seasonal[at] = read(seasonal + at) - to.y[at];
      sum += read(trend + at);
    }
    to.level[panel * x.assets + n] = sum;
  }
};

struct ToSeasonal {  // rest = y - seasonal
  Planes of;
  COMMODITY_INLINE void operator()(int64_t at) const { of.y[at] += of.rest[at], of.seasonal[at] -= of.rest[at]; }
};

struct ToCycles {  // seasonal = cycles - low
  Planes of;
  double* cycles;
  int64_t period;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    double& cycle = cycles[(panel * (of.steps + 2 * period) + t) * of.assets + n];
    const bool inside = t >= period && t < of.steps + period;
    cycle = (inside ? of.seasonal[of.at(panel, t - period, n)] : 0) - cycle;
  }
};

struct ToTrend {  // rest = y - trend
  Planes of;
  COMMODITY_INLINE void operator()(int64_t at) const {
    of.y[at] += of.rest[at], of.trend[at] = -of.rest[at], of.seasonal[at] = 0;
  }
};

template <typename scalar_t>
struct Write {
  Planes of;
  scalar_t* to;

  // y = x - level, and the level comes back to the trend
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double level = of.level[panel * of.assets + n], count = 0;
    for (int64_t t = 0; t < of.steps; ++t) {
      const bool there = of.present[of.at(panel, t, n)] != 0;
      level -= there ? of.y[of.at(panel, t, n)] : 0, count += there;
    }
    for (int64_t t = 0; t < of.steps; ++t) {
      const int64_t at = of.at(panel, t, n);
      to[at] = static_cast<scalar_t>(of.present[at] != 0 ? of.y[at] + level / count : 0);
    }
  }
};

struct Course {
  const Tensor& on;
  int64_t batch, steps, assets, period;
  Smoother seasonal, trend, low_pass;
  Planes of;

  void spread(const Smoother& by, const Rows& rows, const double* grad, const Rows& target, const double* weights,
              double* to) const {
    const int64_t most = std::max(by.fits(rows.count(0)), by.fits(rows.count(rows.period - 1)));
    const int64_t size = batch * rows.period * most * assets;
    const Tensor owing = scratch(on, size), memory = scratch(on, 4 * size);
    double* owed = data_ptr<double>(owing);
    const auto balances = data_ptr<Smoother::Balance>(memory);
    const Fits fits{by, rows, nullptr, weights, of.present, nullptr, most};
    launch_grid(on, Grid(batch, assets, rows.period * most), FromLines{fits, target, grad, owed});
    launch_grid(on, Grid(batch, assets, rows.period * most), Weigh{fits, balances});
    launch_grid(on, Grid(batch, assets, rows.period), FromFill{fits, balances, owed});
    launch_grid(on, Grid(batch, assets, rows.steps), FromFits{fits, balances, owed, to});
  }
  void moving(const double* grad, int64_t rows, int64_t window, double* to) const {
    dispatch_rows<8>(window, [&]<int kRows>() {
      launch_windows(on, Panels(batch, rows, assets), FromMoving<kRows>{grad, to, rows, assets, window});
    });
  }
  void inner_pass() const {
    const int64_t longer = steps + 2 * period;
    const Tensor cycles = scratch(on, batch * longer * assets), work = scratch(on, batch * longer * assets);
    double *cycle = data_ptr<double>(cycles), *average = data_ptr<double>(work);
    const Rows all{steps, 1, assets};
    spread(trend, all, of.trend, all, of.present, of.rest);
    launch(on, batch * steps * assets, ToSeasonal{of});
    spread(low_pass, all, of.seasonal, all, nullptr, cycle);
    moving(cycle, steps + 2, 3, average);
    moving(average, steps + period + 1, period, cycle);
    moving(cycle, longer, period, average);
    launch_grid(on, Grid(batch, assets, longer), ToCycles{of, average, period});
    spread(seasonal, {steps, period, assets}, average, {longer, period, assets}, of.present, of.rest);
    launch(on, batch * steps * assets, ToTrend{of});
  }
};

Tensor stl_backward(const Tensor& trend_, const Tensor& seasonal_, const Tensor& residual_, const Tensor& x_,
                    int64_t period, std::vector<int64_t> lengths, std::vector<int64_t> degrees,
                    std::vector<int64_t> jumps, int64_t inner) {
  STD_TORCH_CHECK(period >= 2 && x_.size(-2) >= 2 * period, "stl_backward: needs T >= 2 period");
  STD_TORCH_CHECK(lengths.size() == 3 && degrees.size() == 3 && jumps.size() == 3, "stl: has three smoothers");
  for (const Tensor* grad : {&trend_, &seasonal_, &residual_}) check_same("stl_backward", *grad, x_);
  const Tensor x = contiguous(x_), trend = contiguous(trend_), seasonal = contiguous(seasonal_);
  const Tensor residual = contiguous(residual_);
  Tensor to = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t size = x.numel();
  const Tensor memory = scratch(x, 5 * size + panels.batch * panels.assets);
  double* at = data_ptr<double>(memory);
  const Planes of{at,           at + size,    at + 2 * size, at + 3 * size, at + 4 * size, at + 5 * size,
                  panels.steps, panels.assets};
  const auto by = [&](int i) { return Smoother{lengths[i], degrees[i], jumps[i], i == 0}; };
  const Course course{x, panels.batch, panels.steps, panels.assets, period, by(0), by(1), by(2), of};
  const Grid columns(panels.batch, panels.assets, 1);
  dispatch("stl_backward", x, [&]<typename scalar_t>() {
    launch_grid(x, columns,
                Read<scalar_t>{finite_values<scalar_t>(x, panels), trend.const_data_ptr<scalar_t>(),
                               seasonal.const_data_ptr<scalar_t>(), residual.const_data_ptr<scalar_t>(), of});
    for (int64_t pass = 0; pass < inner; ++pass) course.inner_pass();
    launch_grid(x, columns, Write<scalar_t>{of, to.mutable_data_ptr<scalar_t>()});
  });
  return to;
}

}  // namespace

COMMODITY_CUDA(stl_backward)
