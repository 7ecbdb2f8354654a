// LOESS and moving averages along time on a GPU, for stl and its transpose. An item takes a row of a column, or a fit;
// what a fit sees is weighed anew by each, which is cheaper than tables are to read.
#pragma once
#include "device_windows.h"

namespace commodity {

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

  // What a fit makes of the weights of its rows; its coefficients are weight x tricube x (tilted - tilt x distance).
  struct Balance {
    double total, tilted, tilt, bandwidth;
  };
  COMMODITY_INLINE double bandwidth(int64_t f, int64_t rows) const {
    const int64_t at = row(f, rows), begin = first(f, rows), end = begin + length < rows ? begin + length : rows;
    const int64_t before = at - begin, after = end - 1 - at, extra = length > rows ? (length - rows) / 2 : 0;
    return static_cast<double>((before > after ? before : after) + extra);
  }

  // see(k, w, distance) for the rows that a fit sees, then what they make.
  template <typename Weight, typename See>
  COMMODITY_INLINE Balance balance(int64_t f, int64_t rows, const Weight& weight, const See& see) const {
    const int64_t at = row(f, rows), begin = first(f, rows), end = begin + length < rows ? begin + length : rows;
    const double wide = bandwidth(f, rows), least = 0.001 * static_cast<double>(rows - 1);
    double total = 0, moment = 0, square = 0;
    for (int64_t k = begin; k < end; ++k) {
      const double distance = static_cast<double>(k - at), w = weight(k) * tricube(distance, wide);
      if (w == 0) continue;
      total += w, moment += w * distance, square += w * distance * distance;
      see(k, w, distance);
    }
    if (!(total > 0)) return {0, 0, 0, wide};
    const double center = moment / total, spread = square / total - center * center;
    const double tilt = degree && spread > least * least ? center / spread : 0;
    return {total, 1 + tilt * center, tilt, wide};
  }

  // value(k) and weight(k) of row k; NaN where the window has no weight.
  template <typename Value, typename Weight>
  COMMODITY_INLINE double fit(int64_t f, int64_t rows, const Value& value, const Weight& weight) const {
    double level = 0, slope = 0;
    const auto see = [&](int64_t k, double w, double distance) {
      level += w * value(k), slope += w * value(k) * distance;
    };
    const Balance b = balance(f, rows, weight, see);
    return b.total > 0 ? (level * b.tilted - slope * b.tilt) / b.total : NAN;
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
      if (t < steps) sum.term[0] += x[(panel * steps + t) * assets + n];
    };
    for_each_window<kRows, Sums<double, 1>>(first + window - 1, window, see, [&](int k, const Sums<double, 1>& sum) {
      if (first + k < left) to[(panel * left + first + k) * assets + n] = sum.term[0] / static_cast<double>(window);
    });
  }
};

}  // namespace commodity
