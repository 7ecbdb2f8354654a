// LOESS (locally weighted regression) of evenly spaced rows, for kLanes series at once, in double.
//
// A fit at a row is a line (or a constant) through the rows of its window under tricube weights; it is linear in the
// series. The rows are evenly spaced, so the windows and their weights are the same for all series and are tabulated
// once. Without further weights (kCoefficients) a fit is the sum of coefficient x value over its window. With weights
// (missing rows, robustness) it is level x sum0 + slope x sum1, where sum_k adds tricube x distance^k x weight x value
// (kMoment0, kMoment1), and level and slope follow from the weights of the series alone (FitFactors). Between fits the
// smooth is interpolated linearly. Each of these linear maps has its transpose, which the gradient of stl applies.
//
// Up to kGroup fits with overlapping windows are computed together, so that each row is loaded once for all of them.
#pragma once
#include <memory>
#include <utility>

#include "native.h"

namespace commodity {

constexpr int64_t kLanes = 8;  // series per block: two registers of AVX2, one of AVX-512
constexpr int64_t kGroup = 4;  // fits per group

struct Smoother {
  int64_t length, degree, jump;
};

// A fit at `row` over the window [first, first + count); its table entries begin at `offset`, with zeros around them.
struct Fit {
  int64_t row, first, count, offset;
};

enum Table { kCoefficients, kMoment0, kMoment1, kMoment2, kTables };  // coefficients; tricube x distance^k

// The fits of a series of `rows` rows; with `extend`, also one row before the first and one after the last.
struct Loess {
  int64_t rows, degree;
  bool extend;
  std::vector<Fit> fits;
  std::vector<double> tables[kTables];

  Loess(int64_t rows_, const Smoother& smoother, bool extend_, bool weighted)
      : rows(rows_), degree(smoother.degree), extend(extend_) {
    const int64_t max_first = std::max<int64_t>(rows - smoother.length, 0);
    const int64_t step = std::min(smoother.jump, rows - 1);
    if (extend) add(-1, 0, smoother, weighted);
    int64_t row = 0, first = 0;
    for (; row < rows; row += step) {
      first = std::clamp<int64_t>(row - smoother.length / 2, 0, max_first);
      add(row, first, smoother, weighted);
    }
    // As in the Fortran program of Cleveland et al., a last row off the grid uses the window of the last grid row
    if (row - step < rows - 1) add(rows - 1, first, smoother, weighted);
    if (extend) add(rows, max_first, smoother, weighted);
  }

  int64_t size() const { return int64_t(fits.size()); }
  bool fits_every_row() const { return size() == rows + (extend ? 2 : 0); }

 private:
  static double tricube(int64_t distance, double bandwidth) {
    const double u = std::abs(double(distance)) / bandwidth;
    if (u <= 0.001) return 1;
    const double complement = 1 - u * u * u;
    return u <= 0.999 ? complement * complement * complement : 0;
  }

  void add(int64_t row, int64_t first, const Smoother& smoother, bool weighted) {
    const int64_t count = std::min(smoother.length, rows - first);
    const bool interior = smoother.length <= rows && row - first == smoother.length / 2;
    if (interior && interior_offset_ >= 0) return fits.push_back({row, first, count, interior_offset_});
    const int64_t offset = int64_t(tables[kCoefficients].size()) + kGroup - 1;
    if (interior) interior_offset_ = offset;
    fits.push_back({row, first, count, offset});
    for (int k = 0; k < (weighted ? kTables : 1); ++k) tables[k].resize(offset + count + kGroup - 1);
    std::vector<double> weight(count);
    const double extra = std::max<int64_t>(smoother.length - rows, 0) / 2;
    const double bandwidth = double(std::max(row - first, first + count - 1 - row)) + extra;
    for (int64_t j = 0; j < count; ++j) weight[j] = tricube(first + j - row, bandwidth);
    for (int64_t j = 0; weighted && j < count; ++j) {
      const double distance = double(first + j - row);
      tables[kMoment0][offset + j] = weight[j];
      tables[kMoment1][offset + j] = weight[j] * distance;
      tables[kMoment2][offset + j] = weight[j] * distance * distance;
    }
    add_coefficients(weight, double(first - row), tables[kCoefficients].data() + offset);
  }

  void add_coefficients(const std::vector<double>& weight, double first_distance, double* to) const {
    const int64_t count = int64_t(weight.size());
    double weight_sum = 0, center = 0, variance = 0;
    for (const double w : weight) weight_sum += w;
    for (int64_t j = 0; j < count; ++j) center += weight[j] * (first_distance + double(j)) / weight_sum;
    for (int64_t j = 0; j < count; ++j)
      variance += weight[j] * square(first_distance + double(j) - center) / weight_sum;
    const double tilt = degree && variance > square(0.001 * double(rows - 1)) ? -center / variance : 0;
    for (int64_t j = 0; j < count; ++j)
      to[j] = weight[j] / weight_sum * (1 + tilt * (first_distance + double(j) - center));
  }

  static double square(double x) { return x * x; }

  int64_t interior_offset_ = -1;
};

#if defined(__GNUC__)
typedef double Vec4 __attribute__((vector_size(32), aligned(8), may_alias));
#endif

// Computes kFits fits from `count` shared rows; c[r] are the coefficients of fit r, zero outside its window.
template <int kFits>
void sum_rows(const double* const* c, int64_t count, const double* x, int64_t stride, double* fit, int64_t out_stride) {
  Vec4 low[kFits] = {}, high[kFits] = {};
  const double* k[kFits];
  for (int r = 0; r < kFits; ++r) k[r] = c[r];
  for (int64_t j = 0; j < count; ++j, x += stride) {
    const Vec4 a = *reinterpret_cast<const Vec4*>(x), b = *reinterpret_cast<const Vec4*>(x + 4);
    for (int r = 0; r < kFits; ++r) low[r] += k[r][j] * a, high[r] += k[r][j] * b;
  }
  for (int r = 0; r < kFits; ++r, fit += out_stride) {
    *reinterpret_cast<Vec4*>(fit) = low[r];
    *reinterpret_cast<Vec4*>(fit + 4) = high[r];
  }
}

// The transpose: adds coefficient x gradient of each fit to the rows of its window.
template <int kFits>
void sum_rows_transpose(const double* const* c, int64_t count, const double* grad, int64_t grad_stride, double* x,
                        int64_t stride) {
  Vec4 low[kFits], high[kFits];
  for (int r = 0; r < kFits; ++r, grad += grad_stride) {
    low[r] = *reinterpret_cast<const Vec4*>(grad);
    high[r] = *reinterpret_cast<const Vec4*>(grad + 4);
  }
  for (int64_t j = 0; j < count; ++j, x += stride) {
    Vec4 a = *reinterpret_cast<const Vec4*>(x), b = *reinterpret_cast<const Vec4*>(x + 4);
    for (int r = 0; r < kFits; ++r) a += c[r][j] * low[r], b += c[r][j] * high[r];
    *reinterpret_cast<Vec4*>(x) = a;
    *reinterpret_cast<Vec4*>(x + 4) = b;
  }
}

// Calls body(fit, size, coefficients, first, count) for groups of `size` fits whose windows begin within kGroup rows.
template <typename Body>
void for_each_group(const Loess& loess, Table table, const Body& body) {
  const double* base = loess.tables[table].data();
  for (int64_t f = 0; f < loess.size();) {
    const Fit& head = loess.fits[f];
    int64_t size = 1, end = head.first + head.count;
    const auto in_group = [&](const Fit& fit) { return fit.first - head.first < kGroup && fit.first >= head.first; };
    while (size < kGroup && f + size < loess.size() && in_group(loess.fits[f + size])) ++size;
    const double* c[kGroup];
    for (int64_t r = 0; r < size; ++r) {
      const Fit& fit = loess.fits[f + r];
      c[r] = base + fit.offset - (fit.first - head.first);
      end = std::max(end, fit.first + fit.count);
    }
    body(f, size, c, head.first, end - head.first);
    f += size;
  }
}

// Applies a table: the sum of fit f goes to to[f * out_stride].
inline void sum_windows(const Loess& loess, Table table, const double* x, int64_t stride, double* to,
                        int64_t out_stride) {
  for_each_group(loess, table, [&](int64_t f, int64_t size, const double* const* c, int64_t first, int64_t count) {
    const double* from = x + first * stride;
    double* out = to + f * out_stride;
    if (size == 4) return sum_rows<4>(c, count, from, stride, out, out_stride);
    if (size == 3) return sum_rows<3>(c, count, from, stride, out, out_stride);
    if (size == 2) return sum_rows<2>(c, count, from, stride, out, out_stride);
    sum_rows<1>(c, count, from, stride, out, out_stride);
  });
}

inline void sum_windows_transpose(const Loess& loess, Table table, const double* grad, int64_t grad_stride, double* x,
                                  int64_t stride) {
  for_each_group(loess, table, [&](int64_t f, int64_t size, const double* const* c, int64_t first, int64_t count) {
    double* to = x + first * stride;
    const double* fit_grad = grad + f * grad_stride;
    if (size == 4) return sum_rows_transpose<4>(c, count, fit_grad, grad_stride, to, stride);
    if (size == 3) return sum_rows_transpose<3>(c, count, fit_grad, grad_stride, to, stride);
    if (size == 2) return sum_rows_transpose<2>(c, count, fit_grad, grad_stride, to, stride);
    sum_rows_transpose<1>(c, count, fit_grad, grad_stride, to, stride);
  });
}

// Of each fit under weights: fit = level x sum0 + slope x sum1. A window whose weights are all zero has no fit;
// `source` says what replaces it: the value of its own row (kRow), another fit, or zero (kNone).
struct FitFactors {
  enum Source : int64_t { kRow = -1, kNone = -2 };
  std::vector<double> level, slope;
  std::vector<int64_t> source;
  bool all_fitted = true;  // every window has weight
};

COMMODITY_SIMD static inline FitFactors fit_factors(const Loess& loess, const double* weights, const bool* present,
                                                    int64_t stride) {
  const int64_t size = loess.size() * kLanes;
  std::vector<double> sums[3] = {std::vector<double>(size), std::vector<double>(size), std::vector<double>(size)};
  for (int k = 0; k < 3; ++k) sum_windows(loess, Table(kMoment0 + k), weights, stride, sums[k].data(), kLanes);
  FitFactors b{std::vector<double>(size), std::vector<double>(size), std::vector<int64_t>(size)};
  const double min_variance = std::pow(0.001 * double(loess.rows - 1), 2);
  int64_t latest[kLanes];
  std::fill_n(latest, kLanes, FitFactors::kNone);
  for (int64_t i = 0; i < size; ++i) {
    const double weight_sum = sums[0][i], center = sums[1][i] / weight_sum;
    const double variance = sums[2][i] / weight_sum - center * center;
    const double tilt = loess.degree && variance > min_variance ? center / variance : 0;
    const int64_t row = loess.fits[i / kLanes].row, n = i % kLanes;
    const bool fitted = weight_sum > 0, at_row = row >= 0 && row < loess.rows && present[row * stride + n];
    b.level[i] = fitted ? (1 + tilt * center) / weight_sum : 0;
    b.slope[i] = fitted ? -tilt / weight_sum : 0;
    b.all_fitted &= fitted;
    if (fitted || at_row) latest[n] = i;
    b.source[i] = fitted ? i : at_row ? int64_t(FitFactors::kRow) : latest[n];
  }
  for (int64_t i = size - kLanes - 1; i >= 0 && !b.all_fitted; --i)  // no earlier fit: take the next one
    if (b.source[i] == FitFactors::kNone)
      b.source[i] = b.source[i + kLanes] == FitFactors::kRow ? i + kLanes : b.source[i + kLanes];
  return b;
}

// Linear interpolation between fits: row `row` goes to y[(row + extend) * stride].
inline void interpolate(const Loess& loess, const double* fit, double* y, int64_t stride) {
  const auto to = [&](int64_t row) { return y + (row + loess.extend) * stride; };
  for (int64_t f = 0; f < loess.size(); ++f, fit += kLanes) {
    const int64_t row = loess.fits[f].row, steps = f + 1 < loess.size() ? loess.fits[f + 1].row - row : 1;
    for (int64_t k = 0; k < steps; ++k)
      for (int64_t n = 0; n < kLanes; ++n)
        to(row + k)[n] = k ? fit[n] + double(k) / double(steps) * (fit[kLanes + n] - fit[n]) : fit[n];
  }
}

// The transpose, added to `fit`.
inline void interpolate_transpose(const Loess& loess, const double* y, int64_t stride, double* fit) {
  const auto from = [&](int64_t row) { return y + (row + loess.extend) * stride; };
  for (int64_t f = 0; f < loess.size(); ++f, fit += kLanes) {
    const int64_t row = loess.fits[f].row, steps = f + 1 < loess.size() ? loess.fits[f + 1].row - row : 1;
    for (int64_t n = 0; n < kLanes; ++n) fit[n] += from(row)[n];
    for (int64_t k = 1; k < steps; ++k)
      for (int64_t n = 0; n < kLanes; ++n) {
        const double share = double(k) / double(steps) * from(row + k)[n];
        fit[n] += from(row + k)[n] - share;
        fit[kLanes + n] += share;
      }
  }
}

struct Scratch {
  std::vector<double> fit, sums;
};

// The smoothers are compiled on their own, once for all callers, and call sum_windows in one place: it is long.
COMMODITY_SIMD static inline void smooth(const Loess& loess, const double* y, int64_t stride, double* to,
                                         int64_t out_stride, Scratch& scratch) {
  const bool interpolated = !loess.fits_every_row();
  if (interpolated) scratch.fit.resize(loess.size() * kLanes);
  sum_windows(loess, kCoefficients, y, stride, interpolated ? scratch.fit.data() : to,
              interpolated ? kLanes : out_stride);
  if (interpolated) interpolate(loess, scratch.fit.data(), to, out_stride);
}

// The same under weights; `weighted` is y x weights.
COMMODITY_SIMD static inline void smooth(const Loess& loess, const FitFactors& b, const double* y,
                                         const double* weighted, int64_t stride, double* to, int64_t out_stride,
                                         Scratch& scratch) {
  const int64_t size = loess.size() * kLanes;
  scratch.fit.resize(size), scratch.sums.resize(size);
  double *fit = scratch.fit.data(), *sums = scratch.sums.data();
  for (const Table table : {kMoment0, kMoment1})
    sum_windows(loess, table, weighted, stride, table == kMoment0 ? fit : sums, kLanes);
  for (int64_t i = 0; i < size; ++i) fit[i] = b.level[i] * fit[i] + b.slope[i] * sums[i];
  for (int64_t i = 0; i < size && !b.all_fitted; ++i)
    if (b.source[i] == FitFactors::kRow) fit[i] = y[loess.fits[i / kLanes].row * stride + i % kLanes];
  for (int64_t i = 0; i < size && !b.all_fitted; ++i)
    if (b.source[i] != FitFactors::kRow) fit[i] = b.source[i] == FitFactors::kNone ? 0 : fit[b.source[i]];
  interpolate(loess, fit, to, out_stride);
}

// The transpose of both: adds to y.
COMMODITY_SIMD static inline void smooth_transpose(const Loess& loess, const double* grad, int64_t grad_stride,
                                                   double* y, int64_t stride, Scratch& scratch) {
  const bool interpolated = !loess.fits_every_row();
  if (interpolated) {
    scratch.fit.assign(loess.size() * kLanes, 0);
    interpolate_transpose(loess, grad, grad_stride, scratch.fit.data());
  }
  sum_windows_transpose(loess, kCoefficients, interpolated ? scratch.fit.data() : grad,
                        interpolated ? kLanes : grad_stride, y, stride);
}

// Under weights: adds the gradient of y x weights to `weighted`, and what bypasses the weights to y.
COMMODITY_SIMD static inline void smooth_transpose(const Loess& loess, const FitFactors& b, const double* grad,
                                                   int64_t grad_stride, double* y, double* weighted, int64_t stride,
                                                   Scratch& scratch) {
  const int64_t size = loess.size() * kLanes;
  scratch.fit.assign(size, 0), scratch.sums.resize(size);
  double *fit = scratch.fit.data(), *sums = scratch.sums.data();
  interpolate_transpose(loess, grad, grad_stride, fit);
  for (int64_t i = 0; i < size && !b.all_fitted; ++i)
    if (b.source[i] >= 0 && b.source[i] != i) fit[b.source[i]] += std::exchange(fit[i], 0);
  for (int64_t i = 0; i < size && !b.all_fitted; ++i)
    if (b.source[i] == FitFactors::kRow) y[loess.fits[i / kLanes].row * stride + i % kLanes] += fit[i];
  for (int64_t i = 0; i < size; ++i) sums[i] = b.slope[i] * fit[i], fit[i] *= b.level[i];
  for (const Table table : {kMoment0, kMoment1})
    sum_windows_transpose(loess, table, table == kMoment0 ? fit : sums, kLanes, weighted, stride);
}

}  // namespace commodity
