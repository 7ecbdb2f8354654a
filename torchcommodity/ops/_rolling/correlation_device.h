// For the forward and the backward pass of rolling correlation on a GPU: the moments of the columns of each window.
#pragma once
#include "device_windows.h"

namespace commodity {

// A block has the pairs of kTile columns i and kTile columns j, of which a thread has one j and kOwn i's.
constexpr int kTile = kWarp, kWarps = 8, kOwn = kTile / kWarps;

// The mean of a column in a window and 1 / sqrt(sum of squares about it). The mean is NaN where a value is missing, the
// scale also where the column is constant.
struct Moments {
  double mean, scale;
};

template <typename scalar_t, int kWindows>
struct ColumnMoments {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  int64_t window;
  Moments* moments;
  bool* incomplete;  // whether any of the kRows windows misses a value

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const scalar_t anchor = x(panel, first, n);
    const auto add = [&](Sums<double, 2>& sums, int64_t t) {
      const double d = x(panel, t, n) - anchor;
      sums.term[0] += d, sums.term[1] += d * d;
    };
    scalar_t previous = anchor;
    int64_t equal_rows = 1;
    while (equal_rows < window && x(panel, first - equal_rows, n) == previous) ++equal_rows;
    bool missing = false;
    for_each_window<kRows, Sums<double, 2>>(first, window, add, [&](int k, const Sums<double, 2>& sums) {
      if (!x.has_row(first + k)) return;
      const scalar_t value = x(panel, first + k, n);
      if (k > 0) equal_rows = value == previous ? equal_rows + 1 : 1;
      previous = value;
      const double offset = sums.term[0] / window, variation = sums.term[1] - sums.term[0] * offset;
      const bool varies = equal_rows < window && variation > 0;
      moments[x.at(panel, first + k, n)] = {anchor + offset, varies ? 1 / std::sqrt(variation) : NAN};
      missing |= offset != offset;
    });
    incomplete[(panel * ((x.steps + kRows - 1) / kRows) + first / kRows) * x.assets + n] = missing;
  }
};

// Sums of a pair in the window that ends in row t, over the rows in which both values are finite.
struct PairMoments {
  double count = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;  // relative to the first common row
  double first_x = NAN, first_y = NAN;
  bool varies_x = false, varies_y = false;

  template <typename scalar_t>
  COMMODITY_INLINE PairMoments(const FiniteValues<scalar_t>& values, int64_t panel, int64_t t, int64_t window,
                               int64_t i, int64_t j) {
    for (int64_t row = t - window + 1 > 0 ? t - window + 1 : 0; row <= t; ++row) {
      const double u = values(panel, row, i), v = values(panel, row, j);
      if (u != u || v != v) continue;
      if (count == 0) first_x = u, first_y = v;
      const double d = u - first_x, e = v - first_y;
      varies_x |= d != 0, varies_y |= e != 0;
      count += 1, x += d, y += e, xx += d * d, yy += e * e, xy += d * e;
    }
    xx -= x * x / count, yy -= y * y / count, xy -= x * y / count;
  }
  COMMODITY_INLINE bool defined(double min_periods) const {
    return count >= min_periods && varies_x && varies_y && xx > 0 && yy > 0;
  }
};

// Computes the moments of all columns and which groups of kRows windows are incomplete, and calls
// body(moments, incomplete), which may launch kernels that read them.
template <typename scalar_t, int kRows, typename Body>
void with_moments(const Tensor& like, const Panels& panels, const FiniteValues<scalar_t>& x, int64_t window,
                  const Body& body) {
  const int64_t groups = panels.batch * ((panels.steps + kRows - 1) / kRows) * panels.assets;
  const Tensor moments = scratch(like, 2 * panels.batch * panels.steps * panels.assets);
  const Tensor incomplete = new_empty(like, {groups}, torch::headeronly::ScalarType::Bool);
  launch_windows(like, panels,
                 ColumnMoments<scalar_t, kRows>{x, window, data_ptr<Moments>(moments), data_ptr<bool>(incomplete)});
  body(data_ptr<const Moments>(moments), data_ptr<const bool>(incomplete));
}

}  // namespace commodity
