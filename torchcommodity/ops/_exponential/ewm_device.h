// Shares of exponentially weighted means on a GPU: the total weight of the values so far is a linear recurrence.
#pragma once
#include "device_scan.h"
#include "device_windows.h"
#include "ewm_weights.h"

namespace commodity {

template <typename scalar_t>
struct EwmShares {
  FiniteValues<scalar_t> x;
  const scalar_t* alpha;
  bool adjust, ignore_na;
  double* shares;  // of each value in the mean of its row; zero where it is missing

  COMMODITY_INLINE bool valid(int64_t panel, int64_t t, int64_t n) const {
    const scalar_t value = x(panel, t, n);
    return value == value;
  }
  COMMODITY_INLINE double alpha_of(int64_t panel, int64_t n) const { return read(alpha + panel * x.assets + n); }

  // EwmWeight::next as an affine map of the total weight.
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const bool adds = valid(panel, t, n);
    if (adds && !adjust) return {0, {1}};
    return {adds || !ignore_na ? 1 - alpha_of(panel, n) : 1, {adds ? 1.0 : 0.0}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, const State<>& previous, const State<>&) const {
    EwmWeight weight{previous.y[0]};
    shares[x.at(panel, t, n)] = weight.next(valid(panel, t, n), alpha_of(panel, n), adjust, ignore_na);
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

// The first row with `min_periods` valid values so far, or the number of rows.
template <typename scalar_t>
struct FirstDefined {
  FiniteValues<scalar_t> x;
  int64_t min_periods;
  int64_t* rows;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    int64_t t = 0;
    for (int64_t count = 0; t < x.steps; ++t) {
      const scalar_t value = x(panel, t, n);
      if (value == value && ++count == min_periods) break;
    }
    rows[panel * x.assets + n] = t;
  }
};

template <typename scalar_t>
Tensor first_defined_rows(const Tensor& x, int64_t min_periods) {
  const Panels panels(x);
  const Tensor rows = scratch(x, panels.batch * panels.assets);
  launch_grid(x, Grid(panels.batch, panels.assets, 1),
              FirstDefined<scalar_t>{finite_values<scalar_t>(x, panels), std::max<int64_t>(1, min_periods),
                                     data_ptr<int64_t>(rows)});
  return rows;
}

}  // namespace commodity
