// Gradient of stl without robustness weights, in double: the transposed steps of its inner pass in reverse order (see
// stl.h). Each thread gathers the terms of its gradients, so that no two threads add to the same address.
#include "stl_device.h"

using namespace commodity;

namespace {

// sums[r] adds table x terms(f) over the fits f whose windows contain row + r: as Windows::sum.
template <int kRows, int kTerms, typename Terms>
COMMODITY_INLINE void sum_transpose(const Windows& w, int64_t row, const double* table, const Terms& terms,
                                    double (&sums)[kRows][kTerms]) {
  if constexpr (kRows > 1)
    if (row >= w.length && row + kRows <= w.rows - w.length) {  // only in windows of the interior
      const int begin = static_cast<int>(row - w.length + 1 + w.half + w.extend);
      const double* last = table + w.interior * w.stride() + w.count - 1;
      return convolve(
          static_cast<int>(w.count), [&](int s) { return read(last - s); },
          [&](int s, double (&term)[kTerms]) { terms(begin + s, term); }, sums);
    }
  const int64_t before = row < w.count ? 0 : (row + w.half - w.length) / w.step + w.extend;
  const int64_t after = (row + kRows - 1 + w.half) / w.step + w.extend + 2;
  const int64_t end = after < w.fits && row + kRows - 1 < w.max_first ? after : w.fits;
#pragma unroll 4
  for (int64_t f = before; f < end; ++f) {
    const int begin = static_cast<int>(row - w.first(f)), length = static_cast<int>(w.count);  // of the first row
    const double* numbers = table + w.kernel_of(f) * w.stride() + begin;
    double term[kTerms];
    terms(f, term);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const double number = kRows > 1 || (begin >= 0 && begin < length) ? read(numbers + r) : 0;
#pragma unroll
      for (int m = 0; m < kTerms; ++m) sums[r][m] += number * term[m];
    }
  }
}

// Transpose of Interpolate: the gradient of a fit, from the rows interpolated from it.
struct InterpolateTranspose {
  Fits s;
  Layout layout;
  const double* grad;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const Windows& w = s.windows;
    const int64_t phase = item / w.fits, f = item % w.fits, row = w.row(f);
    const auto row_grad = [&](int64_t k) { return read(grad + layout.offset(panel, phase, k + w.extend, n)); };
    double sum = row_grad(row);
    if (f + 1 < w.fits) {
      const int64_t next = w.row(f + 1);
      for (int64_t k = row + 1; k < next; ++k) sum += row_grad(k) * static_cast<double>(next - k) / double(next - row);
    }
    if (f > 0) {
      const int64_t previous = w.row(f - 1);
      for (int64_t k = previous + 1; k < row; ++k)
        sum += row_grad(k) * static_cast<double>(k - previous) / double(row - previous);
    }
    to[s.layout.offset(panel, phase, f, n)] = sum;
  }
};

// Transpose of ReplaceFits: the gradient of a replaced fit goes to the fit that replaced it. Where the weights are
// those of the missing rows, no fit is replaced by the value of its row.
struct ReplaceTranspose {
  Fits s;
  Layout layout;
  double* fit_grad;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    if (s.is_complete(panel, n) || s.missing(panel, n) != kWholeWindows) return;
    for (int64_t f = 0; f < s.windows.fits; ++f) {
      const FitFactors factors = s.factors_of(panel, phase, f, n);
      if (factors.level == factors.level || factors.slope == kZero) continue;
      const int64_t source = static_cast<int64_t>(factors.slope);
      fit_grad[layout.offset(panel, phase, source, n)] += fit_grad[layout.offset(panel, phase, f, n)];
    }
  }
};

// Transpose of Smooth: store(panel, phase, k, n, gradient) takes the gradient of row k.
template <int kRows, typename Store>
struct SmoothTranspose {
  Fits s;
  Layout layout;
  const double* fit_grad;
  Store store;

  COMMODITY_INLINE int64_t groups() const { return (s.windows.rows + kRows - 1) / kRows; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item / groups(), row = item % groups() * kRows;
    const double* grad = fit_grad + layout.offset(panel, phase, 0, n);
    double sums[kRows][2] = {};
    if (s.is_complete(panel, n)) {
      double terms[kRows][1] = {};
      const auto term = [&](int64_t f, double (&to)[1]) { to[0] = read(grad + f * layout.stride()); };
      sum_transpose(s.windows, row, s.windows.coefficients, term, terms);
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r][0] = terms[r][0];
    } else {
      const auto term = [&](int64_t f, double (&to)[2]) {  // fit = level x sum0 + slope x sum1
        const FitFactors factors = s.factors_of(panel, phase, f, n);
        const double g = factors.level == factors.level ? read(grad + f * layout.stride()) : 0;
        to[1] = g == 0 ? 0 : factors.slope * g;
        to[0] = g == 0 ? 0 : factors.level * g + to[1] * static_cast<double>(row - s.windows.row(f));
      };
      sum_transpose(s.windows, row, s.windows.kernel, term, sums);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row + r >= s.windows.rows) continue;
      const double weight =
          s.is_complete(panel, n) ? 1 : read(s.weights.weights + s.rows.offset(panel, phase, row + r, n));
      store(panel, phase, row + r, n, weight * (sums[r][0] + static_cast<double>(r) * sums[r][1]));
    }
  }
};

// Overwrites `grad` if it is that of the fits, which it is where there is one for each row.
template <typename Store>
void smooth_transpose(const Tensor& like, const Loess& loess, const Layout& layout, double* grad, const Store& store) {
  const Fits& fits = loess.fits;
  if (loess.fits_every_row()) {
    if (fits.weights.missing) launch_grid(like, loess.grid(1), ReplaceTranspose{fits, layout, grad});
    const SmoothTranspose<kGroup, Store> body{fits, layout, grad, store};
    return launch_grid(like, loess.grid(body.groups()), body);
  }
  const Tensor memory = scratch(like, loess.numbers());
  double* fit_grad = data_ptr<double>(memory);
  launch_grid(like, loess.grid(fits.windows.fits), InterpolateTranspose{fits, layout, grad, fit_grad});
  if (fits.weights.missing) launch_grid(like, loess.grid(1), ReplaceTranspose{fits, fits.layout, fit_grad});
  launch_grid(like, loess.grid(fits.windows.rows), SmoothTranspose<1, Store>{fits, fits.layout, fit_grad, store});
}

// Gradients accumulated so far, each (B, T, N), and what is missing of each column.
struct Planes {
  double *y, *present, *trend, *seasonal, *missing;
  int64_t steps, assets;
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
};

// forward: residual = y - trend - seasonal
template <typename scalar_t>
struct ReadGradients {
  static constexpr int64_t kRows = kRunRows;
  FiniteValues<scalar_t> x;
  const scalar_t *trend, *seasonal, *residual;
  ColumnSums sums;
  Planes to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const bool complete = sums.total(panel, n).term[1] == static_cast<double>(x.steps);
    to.missing[panel * x.assets + n] = complete ? kNothing : kSomeRows;
    for (int64_t t = first; t < first + kRows && t < x.steps; ++t) {
      const int64_t i = x.at(panel, t, n);
      const scalar_t value = x(panel, t, n);
      const double d_residual = value == value ? read(residual + i) : 0;
      to.present[i] = value == value;
      to.y[i] = d_residual;
      to.trend[i] = read(trend + i) - d_residual, to.seasonal[i] = read(seasonal + i) - d_residual;
    }
  }
};

struct AddTrendInput {  // input = y - seasonal
  Planes planes;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t, int64_t t, int64_t n, double gradient) const {
    const int64_t i = planes.at(panel, t, n);
    planes.y[i] += gradient, planes.seasonal[i] -= gradient;
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
  Layout rows;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t phase, int64_t k, int64_t n, double gradient) const {
    const int64_t i = rows.offset(panel, phase, k, n);
    planes.y[i] += gradient, planes.trend[i] = -gradient, planes.seasonal[i] = 0;
  }
};

// forward: y = x - level, and level is added to the trend. The gradient of the level, and the number of rows.
template <typename scalar_t>
struct LevelGradient {
  const scalar_t* trend;
  Planes planes;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, Sums<double, 2>& sums) const {
    const int64_t i = planes.at(panel, t, n);
    sums.term[0] += read(trend + i) - (planes.present[i] != 0 ? planes.y[i] : 0);
    sums.term[1] += planes.present[i];
  }
};

template <typename scalar_t>
struct Write {
  static constexpr int64_t kRows = kRunRows;
  Planes planes;
  ColumnSums sums;
  scalar_t* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const Sums<double, 2> level = sums.total(panel, n);
    for (int64_t t = first; t < first + kRows && t < planes.steps; ++t) {
      const int64_t i = planes.at(panel, t, n);
      to[i] = static_cast<scalar_t>(planes.present[i] != 0 ? planes.y[i] + level.term[0] / level.term[1] : 0);
    }
  }
};

Tensor stl_backward(const Tensor& trend_, const Tensor& seasonal_, const Tensor& residual_, const Tensor& x_,
                    int64_t period, std::vector<int64_t> lengths, std::vector<int64_t> degrees,
                    std::vector<int64_t> jumps, int64_t inner) {
  STD_TORCH_CHECK(period >= 2 && x_.size(-2) >= 2 * period, "stl_backward: needs T >= 2 period");
  for (const Tensor* grad : {&trend_, &seasonal_, &residual_}) check_same("stl_backward", *grad, x_);
  const Tensor x = contiguous(x_), d_trend = contiguous(trend_), d_seasonal = contiguous(seasonal_);
  const Tensor d_residual = contiguous(residual_);
  Tensor to = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t batch = panels.batch, steps = panels.steps, assets = panels.assets, extended = steps + 2 * period;
  std::vector<Tensor> memory;
  const auto allocate = [&](int64_t doubles) {
    memory.push_back(scratch(x, doubles));
    return data_ptr<double>(memory.back());
  };
  const auto plane = [&](int64_t rows) { return allocate(batch * rows * assets); };
  const Planes planes{plane(steps), plane(steps), plane(steps), plane(steps), plane(1), steps, assets};
  double *cycles = plane(extended), *work = plane(extended);
  const ColumnSums sums(plane(2 * ColumnSums::chunks_of(steps)), panels);
  const Smoothers smoothers(x, allocate, panels, period, lengths, degrees, jumps,
                            {planes.present, planes.present, planes.missing});
  const Layout all{steps, 1, assets, 0};
  const auto inner_pass_transpose = [&] {
    smooth_transpose(x, *smoothers.trend, all, planes.trend, AddTrendInput{planes});
    smooth_transpose(x, *smoothers.low_pass, all, planes.seasonal, StoreRows{all, work});
    moving_average_transpose(x, batch, assets, work, steps + 2, 3, cycles);
    moving_average_transpose(x, batch, assets, cycles, steps + period + 1, period, work);
    moving_average_transpose(x, batch, assets, work, extended, period, cycles);
    launch_grid(x, Grid(batch, assets, extended), CyclesGradient{planes, cycles, period});
    for (const Loess& phases : smoothers.phases) {
      const Layout& rows = phases.fits.rows;
      smooth_transpose(x, phases, {extended, period, assets, rows.first_phase}, cycles, AddCycleInput{planes, rows});
    }
  };
  dispatch("stl_backward", x, [&]<typename scalar_t>() {
    const FiniteValues<scalar_t> values = finite_values<scalar_t>(x, panels);
    const scalar_t* trend = d_trend.const_data_ptr<scalar_t>();
    sum_columns(x, panels, FiniteSum<scalar_t>{values}, sums);
    launch_windows(x, panels,
                   ReadGradients<scalar_t>{values, trend, d_seasonal.const_data_ptr<scalar_t>(),
                                           d_residual.const_data_ptr<scalar_t>(), sums, planes});
    smoothers.update_factors(x);
    for (int64_t pass = 0; pass < inner; ++pass) inner_pass_transpose();
    sum_columns(x, panels, LevelGradient<scalar_t>{trend, planes}, sums);
    launch_windows(x, panels, Write<scalar_t>{planes, sums, to.mutable_data_ptr<scalar_t>()});
  });
  return to;
}

}  // namespace

COMMODITY_CUDA(stl_backward)
