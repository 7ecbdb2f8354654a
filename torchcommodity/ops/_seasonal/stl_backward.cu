// Gradient of stl without robustness weights, in double: the transposed steps of its inner pass in reverse order (see
// stl.h). Each thread gathers the terms of one gradient, so that no two threads add to the same address.
#include "loess_device.h"

using namespace commodity;

namespace {

// Transpose of Lines: the gradient of a fit, from the rows interpolated from it.
struct LinesTranspose {
  Fits fits;
  Rows target;
  const double* grad;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item / fits.max_fits, f = item % fits.max_fits, count = fits.rows.count(phase);
    const int64_t size = fits.smoother.fits(count), extend = fits.smoother.extend;
    if (f >= size) return;
    const auto row_grad = [&](int64_t k) { return grad[target.offset(panel, phase, k + extend, n)]; };
    const int64_t row = fits.smoother.row(f, count);
    double sum = row_grad(row);
    if (f + 1 < size) {
      const int64_t next = fits.smoother.row(f + 1, count);
      for (int64_t k = row + 1; k < next; ++k) sum += row_grad(k) * static_cast<double>(next - k) / double(next - row);
    }
    if (f > 0) {
      const int64_t previous = fits.smoother.row(f - 1, count);
      for (int64_t k = previous + 1; k < row; ++k)
        sum += row_grad(k) * static_cast<double>(k - previous) / double(row - previous);
    }
    to[fits.index(panel, phase, f, n)] = sum;
  }
};

// The factors of every fit. A weight_sum of -1 marks a fit replaced by the value of its row, 0 one replaced by another.
struct ComputeFactors {
  Fits fits;
  Smoother::Factors* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item / fits.max_fits, f = item % fits.max_fits, count = fits.rows.count(phase);
    if (f >= fits.smoother.fits(count)) return;
    const auto weight = [&](int64_t k) {
      return fits.weights ? fits.weights[fits.rows.offset(panel, phase, k, n)] : 1;
    };
    Smoother::Factors c = fits.smoother.factors(f, count, weight, [](int64_t, double, double) {});
    const int64_t k = fits.smoother.row(f, count);
    const bool inside = k >= 0 && k < count;
    if (c.weight_sum == 0 && inside && fits.present[fits.rows.offset(panel, phase, k, n)] != 0) c.weight_sum = -1;
    to[fits.index(panel, phase, f, n)] = c;
  }
};

// Transpose of Fill: the gradient of a replaced fit goes to the fit that replaced it.
struct FillTranspose {
  Fits fits;
  const Smoother::Factors* factors;
  double* fit_grad;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    const int64_t size = fits.smoother.fits(fits.rows.count(phase));
    const auto has_value = [&](int64_t f) { return factors[fits.index(panel, phase, f, n)].weight_sum != 0; };
    int64_t source = 0;
    while (source < size && !has_value(source)) ++source;
    for (int64_t f = 0; f < size; ++f) {
      if (has_value(f)) source = f;
      if (source == f || has_value(f)) continue;
      double& gradient = fit_grad[fits.index(panel, phase, f, n)];
      if (source < size) fit_grad[fits.index(panel, phase, source, n)] += gradient;
      gradient = 0;
    }
  }
};

// Transpose of Fits: the gradient of a row, from the fits whose windows contain it.
struct FitsTranspose {
  Fits fits;
  const Smoother::Factors* factors;
  const double* fit_grad;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t phase = t % fits.rows.period, k = t / fits.rows.period, count = fits.rows.count(phase);
    const int64_t size = fits.smoother.fits(count), step = fits.smoother.step(count),
                  i = fits.rows.offset(panel, phase, k, n);
    const int64_t first_fit = (k - fits.smoother.length) / step - 2, last_fit = (k + fits.smoother.length) / step + 4;
    const double weight = fits.weights ? fits.weights[i] : 1;
    double sum = 0;
    for (int64_t f = first_fit < 0 ? 0 : first_fit; f < size && f <= last_fit; ++f)
      sum += term(panel, phase, f, k, n, count, weight);
    if (fits.smoother.extend && last_fit < size - 1) sum += term(panel, phase, size - 1, k, n, count, weight);
    if (fits.smoother.extend && first_fit > 0) sum += term(panel, phase, 0, k, n, count, weight);
    to[i] = sum;
  }
  COMMODITY_INLINE double term(int64_t panel, int64_t phase, int64_t f, int64_t k, int64_t n, int64_t count,
                               double weight) const {
    const int64_t index = fits.index(panel, phase, f, n), begin = fits.smoother.first(f, count),
                  row = fits.smoother.row(f, count);
    const Smoother::Factors c = factors[index];
    if (c.weight_sum < 0) return k == row ? fit_grad[index] : 0;
    if (c.weight_sum == 0 || k < begin || k >= begin + fits.smoother.length) return 0;
    const double distance = static_cast<double>(k - row);
    return fit_grad[index] * weight * Smoother::tricube(distance, c.bandwidth) * (c.level - c.slope * distance) /
           c.weight_sum;
  }
};

// Transpose of MovingAverage.
template <int kWindows>
struct MovingAverageTranspose {
  static constexpr int kRows = kWindows;
  const double* grad;
  double* to;
  int64_t steps, assets, window;  // steps of x; `grad` has window - 1 fewer

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t averages = steps - window + 1;
    const auto visit = [&](Sums<double, 1>& sum, int64_t t) {
      if (t >= 0 && t < averages) sum.term[0] += grad[(panel * averages + t) * assets + n];
    };
    for_each_window<kRows, Sums<double, 1>>(first, window, visit, [&](int k, const Sums<double, 1>& sum) {
      if (first + k < steps) to[(panel * steps + first + k) * assets + n] = sum.term[0] / static_cast<double>(window);
    });
  }
};

// Gradients accumulated so far, each (B, T, N), and that of the mean `level` (B, N).
struct Planes {
  double *y, *present, *trend, *seasonal, *input, *level;
  int64_t steps, assets;
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
};

template <typename scalar_t>
struct ReadGradients {
  FiniteValues<scalar_t> x;
  const scalar_t *trend, *seasonal, *residual;
  Planes to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double sum = 0;
    for (int64_t t = 0; t < x.steps; ++t) {
      const int64_t i = x.at(panel, t, n);
      const scalar_t value = x(panel, t, n);
      to.present[i] = value == value;
      to.y[i] = value == value ? read(residual + i) : 0;
      to.trend[i] = read(trend + i) - to.y[i], to.seasonal[i] = read(seasonal + i) - to.y[i];
      sum += read(trend + i);
    }
    to.level[panel * x.assets + n] = sum;
  }
};

struct AddTrendInput {  // input = y - seasonal
  Planes planes;
  COMMODITY_INLINE void operator()(int64_t i) const {
    planes.y[i] += planes.input[i], planes.seasonal[i] -= planes.input[i];
  }
};

struct CyclesGradient {  // seasonal = cycles - low
  Planes planes;
  double* cycles;
  int64_t period;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    double& cycle = cycles[(panel * (planes.steps + 2 * period) + t) * planes.assets + n];
    const bool inside = t >= period && t < planes.steps + period;
    cycle = (inside ? planes.seasonal[planes.at(panel, t - period, n)] : 0) - cycle;
  }
};

struct AddCycleInput {  // input = y - trend
  Planes planes;
  COMMODITY_INLINE void operator()(int64_t i) const {
    planes.y[i] += planes.input[i], planes.trend[i] = -planes.input[i], planes.seasonal[i] = 0;
  }
};

template <typename scalar_t>
struct Write {
  Planes planes;
  scalar_t* to;

  // forward: y = x - level, and level is added to the trend
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double level = planes.level[panel * planes.assets + n], count = 0;
    for (int64_t t = 0; t < planes.steps; ++t) {
      const bool present = planes.present[planes.at(panel, t, n)] != 0;
      level -= present ? planes.y[planes.at(panel, t, n)] : 0, count += present;
    }
    for (int64_t t = 0; t < planes.steps; ++t) {
      const int64_t i = planes.at(panel, t, n);
      to[i] = static_cast<scalar_t>(planes.present[i] != 0 ? planes.y[i] + level / count : 0);
    }
  }
};

struct Launcher {
  const Tensor& like;
  int64_t batch, steps, assets, period;
  Smoother seasonal, trend, low_pass;
  Planes planes;

  void smooth_transpose(const Smoother& smoother, const Rows& rows, const double* grad, const Rows& target,
                        const double* weights, double* to) const {
    const int64_t max_fits = std::max(smoother.fits(rows.count(0)), smoother.fits(rows.count(rows.period - 1)));
    const int64_t size = batch * rows.period * max_fits * assets;
    const Tensor fit_grads = scratch(like, size), memory = scratch(like, 4 * size);
    double* fit_grad = data_ptr<double>(fit_grads);
    const auto factors = data_ptr<Smoother::Factors>(memory);
    const Fits fits{smoother, rows, nullptr, weights, planes.present, nullptr, max_fits};
    launch_grid(like, Grid(batch, assets, rows.period * max_fits), LinesTranspose{fits, target, grad, fit_grad});
    launch_grid(like, Grid(batch, assets, rows.period * max_fits), ComputeFactors{fits, factors});
    launch_grid(like, Grid(batch, assets, rows.period), FillTranspose{fits, factors, fit_grad});
    launch_grid(like, Grid(batch, assets, rows.steps), FitsTranspose{fits, factors, fit_grad, to});
  }
  void moving_average_transpose(const double* grad, int64_t rows, int64_t window, double* to) const {
    dispatch_rows<8>(window, [&]<int kRows>() {
      launch_windows(like, Panels(batch, rows, assets), MovingAverageTranspose<kRows>{grad, to, rows, assets, window});
    });
  }
  void inner_pass_transpose() const {
    const int64_t extended = steps + 2 * period;
    const Tensor cycles = scratch(like, batch * extended * assets), work = scratch(like, batch * extended * assets);
    double *cycle_data = data_ptr<double>(cycles), *average_data = data_ptr<double>(work);
    const Rows all{steps, 1, assets};
    smooth_transpose(trend, all, planes.trend, all, planes.present, planes.input);
    launch(like, batch * steps * assets, AddTrendInput{planes});
    smooth_transpose(low_pass, all, planes.seasonal, all, nullptr, cycle_data);
    moving_average_transpose(cycle_data, steps + 2, 3, average_data);
    moving_average_transpose(average_data, steps + period + 1, period, cycle_data);
    moving_average_transpose(cycle_data, extended, period, average_data);
    launch_grid(like, Grid(batch, assets, extended), CyclesGradient{planes, average_data, period});
    smooth_transpose(seasonal, {steps, period, assets}, average_data, {extended, period, assets}, planes.present,
                     planes.input);
    launch(like, batch * steps * assets, AddCycleInput{planes});
  }
};

Tensor stl_backward(const Tensor& trend_, const Tensor& seasonal_, const Tensor& residual_, const Tensor& x_,
                    int64_t period, std::vector<int64_t> lengths, std::vector<int64_t> degrees,
                    std::vector<int64_t> jumps, int64_t inner) {
  STD_TORCH_CHECK(period >= 2 && x_.size(-2) >= 2 * period, "stl_backward: needs T >= 2 period");
  STD_TORCH_CHECK(lengths.size() == 3 && degrees.size() == 3 && jumps.size() == 3,
                  "stl_backward: lengths, degrees and jumps must have 3 elements");
  for (const Tensor* grad : {&trend_, &seasonal_, &residual_}) check_same("stl_backward", *grad, x_);
  const Tensor x = contiguous(x_), trend = contiguous(trend_), seasonal = contiguous(seasonal_);
  const Tensor residual = contiguous(residual_);
  Tensor to = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t size = x.numel();
  const Tensor memory = scratch(x, 5 * size + panels.batch * panels.assets);
  double* p = data_ptr<double>(memory);
  const Planes planes{p, p + size, p + 2 * size, p + 3 * size, p + 4 * size, p + 5 * size, panels.steps, panels.assets};
  const auto smoother = [&](int i) { return Smoother{lengths[i], degrees[i], jumps[i], i == 0}; };
  const Launcher launcher{x,           panels.batch, panels.steps, panels.assets, period,
                          smoother(0), smoother(1),  smoother(2),  planes};
  const Grid columns(panels.batch, panels.assets, 1);
  dispatch("stl_backward", x, [&]<typename scalar_t>() {
    launch_grid(
        x, columns,
        ReadGradients<scalar_t>{finite_values<scalar_t>(x, panels), trend.const_data_ptr<scalar_t>(),
                                seasonal.const_data_ptr<scalar_t>(), residual.const_data_ptr<scalar_t>(), planes});
    for (int64_t pass = 0; pass < inner; ++pass) launcher.inner_pass_transpose();
    launch_grid(x, columns, Write<scalar_t>{planes, to.mutable_data_ptr<scalar_t>()});
  });
  return to;
}

}  // namespace

COMMODITY_CUDA(stl_backward)
