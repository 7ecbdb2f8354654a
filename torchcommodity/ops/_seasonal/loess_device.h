// LOESS and moving averages along time for the CUDA kernels of stl and its transpose. Definitions as in loess.h.
//
// A thread computes one fit, or one row, of one series. It evaluates the tricube weights of its window itself, which is
// cheaper than reading tables. Smoothing takes three launches: Fits, Fill (windows without weight) and Lines.
#pragma once
#include "device_windows.h"

namespace commodity {

// Fits at every `jump`-th row k of a series with linear interpolation between. With `extend`, also one row before the
// first and one after the last.
struct Smoother {
  int64_t length, degree, jump;
  bool extend;

  COMMODITY_INLINE int64_t step(int64_t rows) const { return jump < rows - 1 ? jump : rows - 1; }
  COMMODITY_INLINE int64_t grid_size(int64_t rows) const { return (rows - 1) / step(rows) + 1; }
  COMMODITY_INLINE int64_t fits(int64_t rows) const {
    return grid_size(rows) + ((rows - 1) % step(rows) != 0) + (extend ? 2 : 0);
  }
  // The row of fit f, and the first row of its window.
  COMMODITY_INLINE int64_t row(int64_t f, int64_t rows) const {
    if (extend && f == 0) return -1;
    if (extend && f == fits(rows) - 1) return rows;
    const int64_t grid_row = (f - extend) * step(rows);
    return grid_row < rows - 1 ? grid_row : rows - 1;
  }
  COMMODITY_INLINE int64_t first(int64_t f, int64_t rows) const {
    const int64_t max_first = rows > length ? rows - length : 0;
    if (extend && f == 0) return 0;
    if (extend && f == fits(rows) - 1) return max_first;
    // As in the Fortran program of Cleveland et al., a last row off the grid uses the window of the last grid row
    const int64_t g = f - extend < grid_size(rows) ? f - extend : grid_size(rows) - 1;
    const int64_t begin = g * step(rows) - length / 2;
    return begin < 0 ? 0 : begin > max_first ? max_first : begin;
  }
  COMMODITY_INLINE static double tricube(double distance, double bandwidth) {
    const double u = (distance < 0 ? -distance : distance) / bandwidth, complement = 1 - u * u * u;
    return u <= 0.001 ? 1 : u <= 0.999 ? complement * complement * complement : 0;
  }

  // The coefficient of a row is weight x tricube x (level - slope x distance) / weight_sum.
  struct Factors {
    double weight_sum, level, slope, bandwidth;
  };
  COMMODITY_INLINE double bandwidth(int64_t f, int64_t rows) const {
    const int64_t fit_row = row(f, rows), begin = first(f, rows), end = begin + length < rows ? begin + length : rows;
    const int64_t before = fit_row - begin, after = end - 1 - fit_row, extra = length > rows ? (length - rows) / 2 : 0;
    return static_cast<double>((before > after ? before : after) + extra);
  }

  // Calls visit(k, w, distance), with w = weight x tricube, for the rows in the window of fit f; returns its factors.
  template <typename Weight, typename Visit>
  COMMODITY_INLINE Factors factors(int64_t f, int64_t rows, const Weight& weight, const Visit& visit) const {
    const int64_t fit_row = row(f, rows), begin = first(f, rows), end = begin + length < rows ? begin + length : rows;
    const double width = bandwidth(f, rows), min_distance = 0.001 * static_cast<double>(rows - 1);
    double weight_sum = 0, moment = 0, square = 0;
    for (int64_t k = begin; k < end; ++k) {
      const double distance = static_cast<double>(k - fit_row), w = weight(k) * tricube(distance, width);
      if (w == 0) continue;
      weight_sum += w, moment += w * distance, square += w * distance * distance;
      visit(k, w, distance);
    }
    if (!(weight_sum > 0)) return {0, 0, 0, width};
    const double center = moment / weight_sum, variance = square / weight_sum - center * center;
    const double slope = degree && variance > min_distance * min_distance ? center / variance : 0;
    return {weight_sum, 1 + slope * center, slope, width};
  }

  // The fit to value(k) under weight(k); NaN where the window has no weight.
  template <typename Value, typename Weight>
  COMMODITY_INLINE double fit(int64_t f, int64_t rows, const Value& value, const Weight& weight) const {
    double sum0 = 0, sum1 = 0;
    const auto visit = [&](int64_t k, double w, double distance) {
      sum0 += w * value(k), sum1 += w * value(k) * distance;
    };
    const Factors c = factors(f, rows, weight, visit);
    return c.weight_sum > 0 ? (sum0 * c.level - sum1 * c.slope) / c.weight_sum : NAN;
  }
};

// The layout of a series: row k of phase j is row k * period + j of its column. The trend has one phase, of period 1.
struct Rows {
  int64_t steps, period, assets;
  COMMODITY_INLINE int64_t count(int64_t phase) const { return (steps - phase + period - 1) / period; }
  COMMODITY_INLINE int64_t offset(int64_t panel, int64_t phase, int64_t k, int64_t n) const {
    return (panel * steps + k * period + phase) * assets + n;
  }
};

// The fits of all phases, at most `max_fits` in each. In a window without weight the fit is the value of its row, if
// any.
struct Fits {
  Smoother smoother;
  Rows rows;
  const double *y, *weights, *present;  // weights may be null
  double* to;
  int64_t max_fits;

  COMMODITY_INLINE int64_t index(int64_t panel, int64_t phase, int64_t f, int64_t n) const {
    return ((panel * rows.period + phase) * max_fits + f) * rows.assets + n;
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item / max_fits, f = item % max_fits, count = rows.count(phase);
    if (f >= smoother.fits(count)) return;
    const auto value = [&](int64_t k) { return y[rows.offset(panel, phase, k, n)]; };
    const auto weight = [&](int64_t k) { return weights ? weights[rows.offset(panel, phase, k, n)] : 1; };
    double fit = smoother.fit(f, count, value, weight);
    const int64_t k = smoother.row(f, count);
    if (fit != fit && k >= 0 && k < count && present[rows.offset(panel, phase, k, n)] != 0) fit = value(k);
    to[index(panel, phase, f, n)] = fit;
  }
};

// Replaces the remaining NaN by the previous fit, else by the next one, else by zero.
struct Fill {
  Fits fits;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    const int64_t size = fits.smoother.fits(fits.rows.count(phase));
    double latest = NAN;
    for (int64_t f = 0; f < size; ++f) {
      double& fit = fits.to[fits.index(panel, phase, f, n)];
      latest = fit = fit == fit ? fit : latest;
    }
    for (int64_t f = size - 1; f >= 0; --f) {
      double& fit = fits.to[fits.index(panel, phase, f, n)];
      latest = fit = fit == fit ? fit : latest == latest ? latest : 0;
    }
  }
};

// Linear interpolation between fits: row k of a phase goes to row k (with `extend`, k + 1) of the same phase in `to`.
struct Lines {
  Fits fits;
  Rows target;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item % fits.rows.period, row_out = item / fits.rows.period, extend = fits.smoother.extend;
    const int64_t count = fits.rows.count(phase), k = row_out - extend;
    if (row_out >= count + 2 * extend) return;
    int64_t f = k < 0 ? 0 : k >= count ? fits.smoother.fits(count) - 1 : k / fits.smoother.step(count) + extend;
    const int64_t row = fits.smoother.row(f, count);
    double y = fits.to[fits.index(panel, phase, f, n)];
    if (row != k) {
      const double share = static_cast<double>(k - row) / static_cast<double>(fits.smoother.row(f + 1, count) - row);
      y += share * (fits.to[fits.index(panel, phase, f + 1, n)] - y);
    }
    to[target.offset(panel, phase, row_out, n)] = y;
  }
};

// Moving averages: to[t] is the mean of x[t .. t + window - 1].
template <int kWindows>
struct MovingAverage {
  static constexpr int kRows = kWindows;
  const double* x;
  double* to;
  int64_t steps, assets, window;  // steps of x; `to` has window - 1 fewer

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t averages = steps - window + 1;
    const auto visit = [&](Sums<double, 1>& sum, int64_t t) {
      if (t < steps) sum.term[0] += x[(panel * steps + t) * assets + n];
    };
    for_each_window<kRows, Sums<double, 1>>(first + window - 1, window, visit, [&](int k, const Sums<double, 1>& sum) {
      if (first + k < averages)
        to[(panel * averages + first + k) * assets + n] = sum.term[0] / static_cast<double>(window);
    });
  }
};

}  // namespace commodity
