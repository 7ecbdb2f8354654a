// LOESS along time for the CUDA kernels of stl and its transpose. Definitions as in loess.h.
//
// A thread computes a group of consecutive fits of one series, so that each row is loaded once for all of them. Away
// from the ends, a fit has the weights of the fit before it, one row later: there a thread also loads each weight once
// and keeps it in registers until the last fit of the group has used it. Series without missing rows, and smoothers
// without weights, need one sum for each fit, with tabulated coefficients. Others need two sums and the factors of
// each fit, which depend on the weights only.
#pragma once
#include "device_windows.h"

namespace commodity {
inline namespace on_gpu {  // the CPU has types of these names in loess.h

struct Smoother {
  int64_t length, degree, jump;
};

// Where series are in memory: row k of phase j is row k * period + first_phase + j of its column.
struct Layout {
  int64_t steps, period, assets, first_phase;
  COMMODITY_INLINE int64_t offset(int64_t panel, int64_t phase, int64_t k, int64_t n) const {
    return (panel * steps + k * period + first_phase + phase) * assets + n;
  }
  COMMODITY_INLINE int64_t stride() const { return period * assets; }
};

// fit = level x sum0 + slope x sum1, where sum_k adds tricube x distance^k x weight x value.
struct FitFactors {
  double level, slope;
};

// sums[r] adds kernel(s - r) x terms(s) over all s: the kernel, of `length` numbers, is one row later for each r.
template <int kFits, int kTerms, typename Kernel, typename Terms>
COMMODITY_INLINE void convolve(int length, const Kernel& kernel, const Terms& terms, double (&sums)[kFits][kTerms]) {
  double latest[kFits] = {};  // numbers of the kernel, number s at s modulo kFits
  const auto add = [&](int begin, bool inside) {
#pragma unroll
    for (int i = 0; i < kFits; ++i) {
      const int s = begin + i;
      double term[kTerms] = {};
      latest[i] = inside || s < length ? kernel(s) : 0;
      if (inside || s < length + kFits - 1) terms(s, term);
#pragma unroll
      for (int r = 0; r < kFits; ++r)
#pragma unroll
        for (int m = 0; m < kTerms; ++m) sums[r][m] += latest[(i + kFits - r) % kFits] * term[m];
    }
  };
  int s = 0;
  for (; s + kFits <= length; s += kFits) add(s, true);
  for (; s < length + kFits - 1; s += kFits) add(s, false);
}

constexpr int kGroup = 8;           // fits of a thread, where there is one for each row
constexpr int kZeros = 2 * kGroup;  // before, between and after the kernels in memory: groups read beyond their ends

// The windows of the fits of a series: at every `step`-th row and at the last one, with linear interpolation between;
// with `extend`, also one row before the first and one after the last.
struct Windows {
  int64_t rows, length, degree, step, extend;
  int64_t count, half, max_first, grid_size, fits;          // `count` rows in each window
  int64_t interior = 0, interior_end = 0;                   // fits in the center of their window, which share a kernel
  const double *kernel = nullptr, *coefficients = nullptr;  // of kernel i: `count` numbers from i * stride() on

  Windows(int64_t rows, const Smoother& smoother, bool extend)
      : rows(rows),
        length(smoother.length),
        degree(smoother.degree),
        step(std::min(smoother.jump, rows - 1)),
        extend(extend),
        count(std::min(rows, length)),
        half(length / 2),
        max_first(rows - count),
        grid_size((rows - 1) / step + 1),
        fits(grid_size + ((rows - 1) % step != 0) + (extend ? 2 : 0)) {
    const int64_t first = (half + step - 1) / step, end = std::min(grid_size, (max_first + half) / step + 1);
    if (length <= rows && first < end) interior = first + extend, interior_end = end + extend;
  }
  // The kernels: one of the interior, one of each other fit.
  COMMODITY_INLINE int64_t shared_fits() const { return interior < interior_end ? interior_end - interior - 1 : 0; }
  COMMODITY_INLINE int64_t kernels() const { return fits - shared_fits(); }
  COMMODITY_INLINE int64_t stride() const { return count + kZeros; }
  COMMODITY_INLINE int64_t kernel_of(int64_t f) const {
    return f < interior ? f : f < interior_end ? interior : f - shared_fits();
  }
  COMMODITY_INLINE int64_t fit_of(int64_t kernel) const { return kernel <= interior ? kernel : kernel + shared_fits(); }
  COMMODITY_INLINE bool has_row(int64_t f) const { return !extend || (f > 0 && f < fits - 1); }
  // The row of fit f, and the first row of its window.
  COMMODITY_INLINE int64_t row(int64_t f) const {
    if (!has_row(f)) return f == 0 ? -1 : rows;
    const int64_t grid_row = (f - extend) * step;
    return grid_row < rows - 1 ? grid_row : rows - 1;
  }
  COMMODITY_INLINE int64_t first(int64_t f) const {
    if (!has_row(f)) return f == 0 ? 0 : max_first;
    // As in the Fortran program of Cleveland et al., a last row off the grid uses the window of the last grid row
    const int64_t g = f - extend < grid_size ? f - extend : grid_size - 1, begin = g * step - half;
    return begin < 0 ? 0 : begin > max_first ? max_first : begin;
  }
  // The signed distance, and the tricube weight, of row j of a window.
  COMMODITY_INLINE double distance(int64_t f, int64_t j) const { return static_cast<double>(first(f) + j - row(f)); }
  COMMODITY_INLINE double tricube(int64_t f, int64_t j) const {
    const double before = -distance(f, 0), after = distance(f, count - 1);
    const double extra = static_cast<double>(length > rows ? (length - rows) / 2 : 0);
    const double u = std::abs(distance(f, j)) / ((before > after ? before : after) + extra), complement = 1 - u * u * u;
    return u <= 0.001 ? 1 : u <= 0.999 ? complement * complement * complement : 0;
  }
  // From the sums of tricube x distance^k x weight; NaN in a window without weight.
  COMMODITY_INLINE FitFactors factors(double sum0, double sum1, double sum2) const {
    if (!(sum0 > 0)) return {NAN, NAN};
    const double center = sum1 / sum0, variance = sum2 / sum0 - center * center;
    const double min_distance = 0.001 * static_cast<double>(rows - 1);
    const double tilt = degree && variance > min_distance * min_distance ? center / variance : 0;
    return {(1 + tilt * center) / sum0, -tilt / sum0};
  }
  // sums[r] adds table x terms(k) over the rows k in the window of fit f + r.
  template <int kFits, int kTerms, typename Terms>
  COMMODITY_INLINE void sum(int64_t f, const double* table, const Terms& terms, double (&sums)[kFits][kTerms]) const {
    if constexpr (kFits > 1)
      if (f >= interior && f + kFits <= interior_end) {
        const double* numbers = table + interior * stride();
        const int begin = static_cast<int>(first(f));
        return convolve(
            static_cast<int>(count), [&](int s) { return read(numbers + s); },
            [&](int s, double (&term)[kTerms]) { terms(begin + s, term); }, sums);
      }
    int begin[kFits], offset[kFits];  // of the window, and of row 0 in the table
#pragma unroll
    for (int r = 0; r < kFits; ++r) {
      const int64_t fit = f + r < fits ? f + r : fits - 1;
      begin[r] = static_cast<int>(first(fit)), offset[r] = static_cast<int>(kernel_of(fit) * stride()) - begin[r];
    }
    const int end = begin[kFits - 1] + static_cast<int>(count);
#pragma unroll 2
    for (int k = begin[0]; k < end; ++k) {
      double term[kTerms];
      terms(k, term);
#pragma unroll
      for (int r = 0; r < kFits; ++r) {
        const double number = read(table + offset[r] + k);
#pragma unroll
        for (int m = 0; m < kTerms; ++m) sums[r][m] += number * term[m];
      }
    }
  }
};

struct KernelFactors {
  static constexpr int kSums = 3;
  Windows windows;
  FitFactors* to;

  COMMODITY_INLINE void add(int64_t kernel, int64_t j, double* sums) const {
    const int64_t f = windows.fit_of(kernel);
    const double w = windows.tricube(f, j), distance = windows.distance(f, j);
    sums[0] += w, sums[1] += w * distance, sums[2] += w * distance * distance;
  }
  COMMODITY_INLINE void finish(int64_t kernel, const double* sums) const {
    to[kernel] = windows.factors(sums[0], sums[1], sums[2]);
  }
};

struct WriteKernels {
  Windows windows;
  const FitFactors* factors;
  double *kernels, *coefficients;

  COMMODITY_INLINE void operator()(int64_t i) const {
    const int64_t kernel = (i - kZeros) / windows.stride(), j = (i - kZeros) % windows.stride();
    kernels[i] = coefficients[i] = 0;
    if (i < kZeros || j >= windows.count) return;
    const int64_t f = windows.fit_of(kernel);
    kernels[i] = windows.tricube(f, j);
    coefficients[i] = kernels[i] * (factors[kernel].level + factors[kernel].slope * windows.distance(f, j));
  }
};

// What is missing of a series.
constexpr double kNothing = 0, kSomeRows = 1, kWholeWindows = 2;

// Weights of rows, and what is missing of each series (B, N), null for a smoother without weights.
struct RowWeights {
  const double *weights, *present;
  double* missing;
};

// The fits of `phases` series in each column, all of the same length. The factors of each fit are those of the series
// with missing rows.
struct Fits {
  Windows windows;
  Layout rows, layout;
  RowWeights weights;
  FitFactors* factors;

  COMMODITY_INLINE int64_t phases() const { return layout.period; }
  COMMODITY_INLINE int64_t groups(int64_t size) const { return (windows.fits + size - 1) / size; }
  COMMODITY_INLINE double& missing(int64_t panel, int64_t n) const { return weights.missing[panel * rows.assets + n]; }
  COMMODITY_INLINE bool is_complete(int64_t panel, int64_t n) const {
    return !weights.missing || missing(panel, n) == kNothing;
  }
  COMMODITY_INLINE FitFactors& factors_of(int64_t panel, int64_t phase, int64_t f, int64_t n) const {
    return factors[layout.offset(panel, phase, f, n)];
  }
};

// The factors of fits under weights. A fit without weight has level NaN; its slope says what replaces it: the value of
// its own row, zero, or another fit.
constexpr double kOwnRow = -1, kZero = -2;

template <int kFits>
struct ComputeFactors {
  Fits s;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    if (s.is_complete(panel, n)) return;
    const int64_t phase = item / s.groups(kFits), f = item % s.groups(kFits) * kFits, row = s.windows.row(f);
    const double* weight = s.weights.weights + s.rows.offset(panel, phase, 0, n);
    double sums[kFits][3] = {};
    const auto terms = [&](int k, double (&term)[3]) {
      const double distance = static_cast<double>(k - row);
      term[0] = read(weight + k * s.rows.stride()), term[1] = term[0] * distance, term[2] = term[1] * distance;
    };
    s.windows.sum(f, s.windows.kernel, terms, sums);
#pragma unroll
    for (int r = 0; r < kFits; ++r)
      if (f + r < s.windows.fits)
        write(panel, phase, f + r, n, static_cast<double>(s.windows.row(f + r) - row), sums[r]);
  }
  // The distances in the sums are from a row that is `shift` rows before that of the fit.
  COMMODITY_INLINE void write(int64_t panel, int64_t phase, int64_t f, int64_t n, double shift,
                              const double (&sum)[3]) const {
    FitFactors& to = s.factors_of(panel, phase, f, n);
    to = s.windows.factors(sum[0], sum[1] - shift * sum[0], sum[2] - shift * (2 * sum[1] - shift * sum[0]));
    if (to.level == to.level) return;
    const bool has_value =
        s.windows.has_row(f) && s.weights.present[s.rows.offset(panel, phase, s.windows.row(f), n)] != 0;
    to.slope = has_value ? kOwnRow : kZero;
    s.missing(panel, n) = kWholeWindows;
  }
};

// A fit without weight and value is replaced by the last one before it, else by the first one after it.
struct ReplaceFits {
  Fits s;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    if (s.is_complete(panel, n) || s.missing(panel, n) != kWholeWindows) return;
    double latest = kZero;
    const auto replace = [&](int64_t f) {
      FitFactors& fit = s.factors_of(panel, phase, f, n);
      const bool has_value = fit.level == fit.level || fit.slope == kOwnRow;
      if (!has_value && fit.slope == kZero) fit.slope = latest;
      latest = has_value ? static_cast<double>(f) : fit.slope;
    };
    for (int64_t f = 0; f < s.windows.fits; ++f) replace(f);
    for (int64_t f = s.windows.fits - 1; f >= 0; --f) replace(f);
  }
};

// Calls store(panel, phase, f, n, value) with the value of every fit to y.
template <int kFits, typename Store>
struct Smooth {
  Fits s;
  const double* y;
  Store store;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t phase = item / s.groups(kFits), f = item % s.groups(kFits) * kFits;
    const int64_t begin = s.rows.offset(panel, phase, 0, n);
    double fit[kFits] = {};
    if (s.is_complete(panel, n)) {
      double sums[kFits][1] = {};
      const auto terms = [&](int k, double (&term)[1]) { term[0] = read(y + begin + k * s.rows.stride()); };
      s.windows.sum(f, s.windows.coefficients, terms, sums);
#pragma unroll
      for (int r = 0; r < kFits; ++r) fit[r] = sums[r][0];
    } else {
      fit_weighted(panel, phase, f, n, fit);
    }
#pragma unroll
    for (int r = 0; r < kFits; ++r)
      if (f + r < s.windows.fits)
        store(panel, phase, f + r, n, fit[r] == fit[r] ? fit[r] : replacement(panel, phase, f + r, n));
  }
  // NaN for fits without weight.
  template <int kCount>
  COMMODITY_INLINE void fit_weighted(int64_t panel, int64_t phase, int64_t f, int64_t n, double (&fit)[kCount]) const {
    const int64_t begin = s.rows.offset(panel, phase, 0, n), row = s.windows.row(f);
    double sums[kCount][2] = {};
    const auto terms = [&](int k, double (&term)[2]) {
      const int64_t i = begin + k * s.rows.stride();
      term[0] = read(s.weights.weights + i) * read(y + i), term[1] = term[0] * static_cast<double>(k - row);
    };
    s.windows.sum(f, s.windows.kernel, terms, sums);
#pragma unroll
    for (int r = 0; r < kCount; ++r) {
      if (f + r >= s.windows.fits) continue;
      const FitFactors factors = s.factors_of(panel, phase, f + r, n);
      const double shift = static_cast<double>(s.windows.row(f + r) - row);
      fit[r] = factors.level * sums[r][0] + factors.slope * (sums[r][1] - shift * sums[r][0]);
    }
  }
  COMMODITY_INLINE double replacement(int64_t panel, int64_t phase, int64_t f, int64_t n) const {
    if (s.is_complete(panel, n)) return NAN;
    double source = s.factors_of(panel, phase, f, n).slope;
    if (source == kZero) return 0;
    if (source != kOwnRow) f = static_cast<int64_t>(source);
    const FitFactors factors = s.factors_of(panel, phase, f, n);
    if (factors.level != factors.level) return read(y + s.rows.offset(panel, phase, s.windows.row(f), n));
    double fit[1];
    fit_weighted(panel, phase, f, n, fit);
    return fit[0];
  }
};

// Linear interpolation between fits: calls store(panel, phase, k, n, value) for every row k of the smooth, whose first
// is that of the first fit.
template <typename Store>
struct Interpolate {
  Fits s;
  const double* fits;
  Store store;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const Windows& w = s.windows;
    const int64_t phase = item % s.phases(), row_out = item / s.phases(), k = row_out - w.extend;
    const int64_t f = k < 0 ? 0 : k >= w.rows ? w.fits - 1 : k / w.step + w.extend, row = w.row(f);
    double y = read(fits + s.layout.offset(panel, phase, f, n));
    if (row != k) {
      const double share = static_cast<double>(k - row) / static_cast<double>(w.row(f + 1) - row);
      y += share * (read(fits + s.layout.offset(panel, phase, f + 1, n)) - y);
    }
    store(panel, phase, row_out, n, y);
  }
};

// Writes to series in memory.
struct StoreRows {
  Layout layout;
  double* to;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t phase, int64_t k, int64_t n, double value) const {
    to[layout.offset(panel, phase, k, n)] = value;
  }
};

// A smoother of `phases` series in each column, and its launches. allocate(doubles) returns memory for its tables and
// factors.
struct Loess {
  int64_t batch;
  Fits fits;

  template <typename Allocate>
  Loess(const Tensor& like, const Allocate& allocate, int64_t batch, const Layout& rows, int64_t phases, int64_t count,
        const Smoother& smoother, bool extend, const RowWeights& weights)
      : batch(batch), fits{Windows(count, smoother, extend), rows, {}, weights, nullptr} {
    Windows& w = fits.windows;
    fits.layout = {phases * w.fits, phases, rows.assets, 0};
    const int64_t kernels = w.kernels(), size = kernels * w.stride() + kZeros;
    STD_TORCH_CHECK(size <= std::numeric_limits<int>::max(), "stl: the windows at the ends are too many and too long");
    double* kernel = allocate(2 * (size + kernels + (weights.missing ? numbers() : 0)));
    double* coefficients = kernel + size;
    const auto factors = reinterpret_cast<FitFactors*>(coefficients + size);
    launch_rows(like, kernels, w.count, KernelFactors{w, factors});
    launch(like, size, WriteKernels{w, factors, kernel, coefficients});
    w.kernel = kernel + kZeros, w.coefficients = coefficients + kZeros, fits.factors = factors + kernels;
  }
  int64_t numbers() const { return batch * fits.layout.steps * fits.layout.assets; }  // of all fits
  bool fits_every_row() const { return fits.windows.step == 1; }
  Grid grid(int64_t items) const { return Grid(batch, fits.layout.assets, fits.phases() * items); }

  // To be called whenever the weights change.
  void update_factors(const Tensor& like) const {
    constexpr int kFew = kGroup / 2;  // three sums of each
    fits_every_row() ? launch_grid(like, grid(fits.groups(kFew)), ComputeFactors<kFew>{fits})
                     : launch_grid(like, grid(fits.groups(1)), ComputeFactors<1>{fits});
    launch_grid(like, grid(1), ReplaceFits{fits});
  }
  template <typename Store>
  void smooth(const Tensor& like, const double* y, const Store& store) const {
    if (fits_every_row()) return launch_grid(like, grid(fits.groups(kGroup)), Smooth<kGroup, Store>{fits, y, store});
    const Tensor memory = scratch(like, numbers());
    double* values = data_ptr<double>(memory);
    launch_grid(like, grid(fits.groups(1)), Smooth<1, StoreRows>{fits, y, {fits.layout, values}});
    launch_grid(like, grid(fits.windows.rows + 2 * fits.windows.extend), Interpolate<Store>{fits, values, store});
  }
};

}  // namespace on_gpu
}  // namespace commodity
