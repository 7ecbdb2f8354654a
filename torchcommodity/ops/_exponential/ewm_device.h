// The shares of exponential averages on a GPU: what was weighs as much as a linear recurrence says.
#pragma once
#include "device_windows.h"
#include "ewm_weights.h"

namespace commodity {

template <typename scalar_t>
struct EwmShares {
  FiniteValues<scalar_t> x;
  const scalar_t* alpha;
  bool adjust, ignore_na;
  double* to;  // the share of each value in the average of its row, zero where it is missing

  COMMODITY_INLINE bool present(int64_t panel, int64_t t, int64_t n) const {
    const scalar_t value = x(panel, t, n);
    return value == value;
  }
  COMMODITY_INLINE double by(int64_t panel, int64_t n) const { return read(alpha + panel * x.assets + n); }

  // EwmWeight::next as a map of the old weight
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const bool here = present(panel, t, n);
    if (here && !adjust) return {0, {1}};
    return {here || !ignore_na ? 1 - by(panel, n) : 1, {here ? 1.0 : 0.0}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, const State<>& before, const State<>&) const {
    EwmWeight weight{before.y[0]};
    to[x.at(panel, t, n)] = weight.next(present(panel, t, n), by(panel, n), adjust, ignore_na);
  }
};

template <typename scalar_t>
Tensor ewm_shares(const Tensor& x, const Tensor& alpha, bool adjust, bool ignore_na) {
  const Panels panels(x);
  const Tensor shares = scratch(x, x.numel());
  const EwmShares<scalar_t> body{finite_values<scalar_t>(x, panels), alpha.const_data_ptr<scalar_t>(), adjust,
                                 ignore_na, data_ptr<double>(shares)};
  run_recurrence(x, panels.batch, panels.steps, panels.assets, body, body, body);
  return shares;
}

// The row with which a column has as many values as are asked for.
template <typename scalar_t>
struct Known {
  FiniteValues<scalar_t> x;
  int64_t least;
  int64_t* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    int64_t t = 0;
    for (int64_t count = 0; t < x.steps; ++t) {
      const scalar_t value = x(panel, t, n);
      if (value == value && ++count == least) break;
    }
    to[panel * x.assets + n] = t;
  }
};

template <typename scalar_t>
Tensor known_rows(const Tensor& x, int64_t min_periods) {
  const Panels panels(x);
  const Tensor known = scratch(x, panels.batch * panels.assets);
  launch_grid(
      x, Grid(panels.batch, panels.assets, 1),
      Known<scalar_t>{finite_values<scalar_t>(x, panels), std::max<int64_t>(1, min_periods), data_ptr<int64_t>(known)});
  return known;
}

}  // namespace commodity
