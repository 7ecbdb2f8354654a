// Statements over one column of rows in memory, for CUDA: they look back at the rows of their operands. An operation is
// a struct with
//   kOperands
//   kSameRow, if it does not look back after all
//   value(x, t, attribute)            of row t
//   adjoint(x, t, attribute, dy, dx)  adds to the gradients of the operands; row t is not missing
//   gather(dy, t, steps, attribute)   if it can be said without x: what later rows add to the gradient of row t
// Windows are computed anew for each row: there is nothing to subtract, and a window that contains a missing value is
// missing.
#pragma once
#include "operations.h"

namespace commodity::series {

// Rows of one register in one column.
struct Column {
  double* first;
  int64_t stride;
  COMMODITY_INLINE double& operator[](int64_t t) const { return first[t * stride]; }
};

struct Row {
  static constexpr int kOperands = 1;
  static constexpr bool kSameRow = true;
  static COMMODITY_INLINE double value(const Column*, int64_t t, double) { return double(t); }
};

struct Lag {
  static constexpr int kOperands = 1;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double rows) {
    return double(t) < rows ? kMissing : x[0][t - int64_t(rows)];
  }
  static COMMODITY_INLINE void adjoint(const Column*, int64_t t, double rows, double dy, const Column* dx) {
    dx[0][t - int64_t(rows)] += dy;
  }
  template <typename Gradient>
  static COMMODITY_INLINE double gather(const Gradient& dy, int64_t t, int64_t steps, double rows) {
    return double(t) + rows < double(steps) ? dy(t + int64_t(rows)) : 0;
  }
};

// The value that was assigned one row before. Operands: that value, and the register itself.
struct Feedback {
  static constexpr int kOperands = 2;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double initial) {
    return t == 0 ? initial : (missing(x[0][t - 1]) ? x[1][t - 1] : x[0][t - 1]);
  }
  static COMMODITY_INLINE void adjoint(const Column* x, int64_t t, double, double dy, const Column* dx) {
    if (t > 0) dx[missing(x[0][t - 1]) ? 1 : 0][t - 1] += dy;
  }
};

struct Divide {
  static constexpr int kOperands = 2;
  static constexpr bool kSameRow = true;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double zero) {
    return Quotient::value(x[0][t], x[1][t], zero);
  }
  static COMMODITY_INLINE void adjoint(const Column* x, int64_t t, double zero, double dy, const Column* dx) {
    const double a = x[0][t], b = x[1][t], y = value(x, t, zero);
    dx[0][t] += dy * Quotient::d_a(a, b, y);
    dx[1][t] += dy * Quotient::d_b(a, b, y);
  }
};

struct Where {
  static constexpr int kOperands = 3;
  static constexpr bool kSameRow = true;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double) {
    return missing(x[0][t]) ? kMissing : x[x[0][t] != 0 ? 1 : 2][t];
  }
  static COMMODITY_INLINE void adjoint(const Column* x, int64_t t, double, double dy, const Column* dx) {
    dx[x[0][t] != 0 ? 1 : 2][t] += dy;
  }
};

// The windows of W rows [begin, t]; before row 0 there are missing values.
struct WindowRows {
  int64_t begin;
  COMMODITY_INLINE WindowRows(int64_t t, double window)
      : begin(double(t) + 1 < window ? -1 : t + 1 - int64_t(window)) {}
  COMMODITY_INLINE bool incomplete() const { return begin < 0; }
  // The end of the rows whose windows contain row t.
  static COMMODITY_INLINE int64_t end(int64_t t, int64_t steps, double window) {
    return double(t) + window < double(steps) ? t + int64_t(window) : steps;
  }
};

// Mean of a window as a difference from its last row, which is exactly zero if all rows are equal.
COMMODITY_INLINE double mean_offset(const Column& x, int64_t t, double window) {
  double sum = 0;
  for (int64_t i = WindowRows(t, window).begin; i < t; ++i) sum += x[i] - x[t];
  return sum / window;
}

struct WindowSum {
  static constexpr int kOperands = 1;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double window) {
    const WindowRows rows(t, window);
    if (rows.incomplete()) return kMissing;
    double sum = 0;
    for (int64_t i = rows.begin; i <= t; ++i) sum += x[0][i];
    return sum;
  }
  static COMMODITY_INLINE void adjoint(const Column*, int64_t t, double window, double dy, const Column* dx) {
    for (int64_t i = WindowRows(t, window).begin; i <= t; ++i) dx[0][i] += dy;
  }
  template <typename Gradient>
  static COMMODITY_INLINE double gather(const Gradient& dy, int64_t t, int64_t steps, double window) {
    double sum = 0;
    for (int64_t i = t, end = WindowRows::end(t, steps, window); i < end; ++i) sum += dy(i);
    return sum;
  }
};

struct WindowMean {
  static constexpr int kOperands = 1;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double window) {
    return WindowSum::value(x, t, window) / window;
  }
  static COMMODITY_INLINE void adjoint(const Column* x, int64_t t, double window, double dy, const Column* dx) {
    WindowSum::adjoint(x, t, window, dy / window, dx);
  }
  template <typename Gradient>
  static COMMODITY_INLINE double gather(const Gradient& dy, int64_t t, int64_t steps, double window) {
    return WindowSum::gather(dy, t, steps, window) / window;
  }
};

// Weights W of the newest value down to 1 of the oldest.
struct WeightedSum {
  static constexpr int kOperands = 1;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double window) {
    const WindowRows rows(t, window);
    if (rows.incomplete()) return kMissing;
    double sum = 0;
    for (int64_t i = rows.begin; i <= t; ++i) sum += (window - double(t - i)) * x[0][i];
    return sum;
  }
  static COMMODITY_INLINE void adjoint(const Column*, int64_t t, double window, double dy, const Column* dx) {
    for (int64_t i = WindowRows(t, window).begin; i <= t; ++i) dx[0][i] += (window - double(t - i)) * dy;
  }
  template <typename Gradient>
  static COMMODITY_INLINE double gather(const Gradient& dy, int64_t t, int64_t steps, double window) {
    double sum = 0;
    for (int64_t i = t, end = WindowRows::end(t, steps, window); i < end; ++i) sum += (window - double(i - t)) * dy(i);
    return sum;
  }
};

struct WindowProducts {
  static constexpr int kOperands = 2;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double window) {
    const WindowRows rows(t, window);
    if (rows.incomplete()) return kMissing;
    const double a = mean_offset(x[0], t, window), b = mean_offset(x[1], t, window);
    double sum = 0;
    for (int64_t i = rows.begin; i <= t; ++i) sum += (x[0][i] - x[0][t] - a) * (x[1][i] - x[1][t] - b);
    return sum;
  }
  static COMMODITY_INLINE void adjoint(const Column* x, int64_t t, double window, double dy, const Column* dx) {
    const double a = mean_offset(x[0], t, window), b = mean_offset(x[1], t, window);
    for (int64_t i = WindowRows(t, window).begin; i <= t; ++i) {
      dx[0][i] += dy * (x[1][i] - x[1][t] - b);
      dx[1][i] += dy * (x[0][i] - x[0][t] - a);
    }
  }
};

// The mean absolute deviation from the mean of the window.
struct AbsoluteDeviation {
  static constexpr int kOperands = 1;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double window) {
    const WindowRows rows(t, window);
    if (rows.incomplete()) return kMissing;
    const double mean = mean_offset(x[0], t, window);
    double sum = 0;
    for (int64_t i = rows.begin; i <= t; ++i) sum += std::fabs(x[0][i] - x[0][t] - mean);
    return sum / window;
  }
  // Of |x_i - mean| summed over i: each sign, less the mean of the signs.
  static COMMODITY_INLINE void adjoint(const Column* x, int64_t t, double window, double dy, const Column* dx) {
    const double mean = mean_offset(x[0], t, window);
    const int64_t begin = WindowRows(t, window).begin;
    double signs = 0;
    for (int64_t i = begin; i <= t; ++i) signs += Sign::value(x[0][i] - x[0][t] - mean);
    for (int64_t i = begin; i <= t; ++i)
      dx[0][i] += dy / window * (Sign::value(x[0][i] - x[0][t] - mean) - signs / window);
  }
};

// The row of the extreme, the newest of equals; -1 if the window is missing.
template <bool largest>
COMMODITY_INLINE int64_t extreme_row(const Column& x, int64_t t, double window) {
  const WindowRows rows(t, window);
  if (rows.incomplete()) return -1;
  int64_t row = t;
  for (int64_t i = t; i >= rows.begin; --i) {
    if (missing(x[i])) return -1;
    if (largest ? x[i] > x[row] : x[i] < x[row]) row = i;
  }
  return row;
}

template <bool largest>
struct Extreme {
  static constexpr int kOperands = 1;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double window) {
    const int64_t row = extreme_row<largest>(x[0], t, window);
    return row < 0 ? kMissing : x[0][row];
  }
  static COMMODITY_INLINE void adjoint(const Column* x, int64_t t, double window, double dy, const Column* dx) {
    dx[0][extreme_row<largest>(x[0], t, window)] += dy;
  }
};

template <bool largest>
struct RowsSince {
  static constexpr int kOperands = 1;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double window) {
    const int64_t row = extreme_row<largest>(x[0], t, window);
    return row < 0 ? kMissing : double(t - row);
  }
};

// The number of the W previous values that are less than this one.
struct Rank {
  static constexpr int kOperands = 1;
  static COMMODITY_INLINE double value(const Column* x, int64_t t, double window) {
    if (double(t) < window || missing(x[0][t])) return kMissing;
    double less = 0;
    for (int64_t i = t - int64_t(window); i < t; ++i) less += missing(x[0][i]) ? kMissing : (x[0][i] < x[0][t] ? 1 : 0);
    return less;
  }
};

using Highest = Extreme<true>;
using Lowest = Extreme<false>;
using SinceHighest = RowsSince<true>;
using SinceLowest = RowsSince<false>;

}  // namespace commodity::series
