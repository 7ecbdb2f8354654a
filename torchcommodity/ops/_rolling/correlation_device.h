// What the forward and the backward pass of rolling correlation share on a GPU: the columns of each window.
#pragma once
#include "device_windows.h"

namespace commodity {

// Of a column's window: its mean, and 1 / sqrt(sum of squares about it). The mean is NaN where the window has a hole,
// the scale also where the column stands still.
struct Moments {
  double mean, scale;
};

template <typename scalar_t, int kWindows>
struct ColumnMoments {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  int64_t window;
  Moments* to;
  bool* holed;  // any of the kRows windows

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const scalar_t anchor = x(panel, first, n);
    const auto see = [&](Sums<double, 2>& sums, int64_t t) {
      const double d = x(panel, t, n) - anchor;
      sums.term[0] += d, sums.term[1] += d * d;
    };
    scalar_t previous = anchor;
    int64_t still = 1;
    while (still < window && x(panel, first - still, n) == previous) ++still;
    bool holes = false;
    for_each_window<kRows, Sums<double, 2>>(first, window, see, [&](int k, const Sums<double, 2>& sums) {
      if (!x.has_row(first + k)) return;
      const scalar_t now = x(panel, first + k, n);
      if (k > 0) still = now == previous ? still + 1 : 1;
      previous = now;
      const double offset = sums.term[0] / window, variation = sums.term[1] - sums.term[0] * offset;
      const bool moves = still < window && variation > 0;
      to[x.at(panel, first + k, n)] = {anchor + offset, moves ? 1 / std::sqrt(variation) : NAN};
      holes |= offset != offset;
    });
    holed[(panel * ((x.steps + kRows - 1) / kRows) + first / kRows) * x.assets + n] = holes;
  }
};

// Of a pair, over the rows of the window that ends in row t and which both have.
struct PairMoments {
  double count = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;  // about the first such row
  double first_x = NAN, first_y = NAN;
  bool moves_x = false, moves_y = false;

  template <typename scalar_t>
  COMMODITY_INLINE PairMoments(const FiniteValues<scalar_t>& values, int64_t panel, int64_t t, int64_t window,
                               int64_t i, int64_t j) {
    for (int64_t row = t - window + 1 > 0 ? t - window + 1 : 0; row <= t; ++row) {
      const double u = values(panel, row, i), v = values(panel, row, j);
      if (u != u || v != v) continue;
      if (count == 0) first_x = u, first_y = v;
      const double d = u - first_x, e = v - first_y;
      moves_x |= d != 0, moves_y |= e != 0;
      count += 1, x += d, y += e, xx += d * d, yy += e * e, xy += d * e;
    }
    xx -= x * x / count, yy -= y * y / count, xy -= x * y / count;
  }
  COMMODITY_INLINE bool defined(double least) const { return count >= least && moves_x && moves_y && xx > 0 && yy > 0; }
};

// Moments of all columns, and which groups of kRows windows have holes; `body(moments, holed)` may launch on them.
template <typename scalar_t, int kRows, typename Body>
void with_moments(const Tensor& on, const Panels& panels, const FiniteValues<scalar_t>& x, int64_t window,
                  const Body& body) {
  const int64_t groups = panels.batch * ((panels.steps + kRows - 1) / kRows) * panels.assets;
  const Tensor moments = scratch(on, 2 * panels.batch * panels.steps * panels.assets);
  const Tensor holed = new_empty(on, {groups}, torch::headeronly::ScalarType::Bool);
  launch_windows(on, panels,
                 ColumnMoments<scalar_t, kRows>{x, window, data_ptr<Moments>(moments), data_ptr<bool>(holed)});
  body(data_ptr<const Moments>(moments), data_ptr<const bool>(holed));
}

}  // namespace commodity
