// Wilder's averages of gains and losses for the CUDA kernels of technical_indicators and its gradient.
#pragma once
#include "device_scan.h"
#include "device_windows.h"

namespace commodity {

// The mean of the first `period` changes, then a_t = a_{t-1} + (change - a_{t-1}) / period, as an affine map of the two
// averages in each row. A missing price is skipped: the next change is relative to the last price before it.
template <typename scalar_t>
struct Wilder {
  FiniteValues<scalar_t> prices;
  int64_t* complete_row;  // row of the `period`-th change, from which on the averages are defined
  int64_t period;

  COMMODITY_INLINE Affine<2> operator()(int64_t panel, int64_t t, int64_t n) const {
    const scalar_t price = prices(panel, t, n);
    int64_t previous = t - 1;
    while (previous >= 0 && prices(panel, previous, n) != prices(panel, previous, n)) --previous;
    const scalar_t change = price - prices(panel, previous, n);
    const bool has_average = change == change && t > complete_row[panel * prices.assets + n];
    const double weight = 1.0 / period;
    return {has_average ? 1 - weight : 1, {change > 0 ? weight * change : 0, change < 0 ? -weight * change : 0}};
  }
  COMMODITY_INLINE State<2> operator()(int64_t, int64_t) const { return {}; }

  Tensor states_before_chunks(const Tensor& like, int64_t batch, const Chunks& chunks) const;
};

template <typename scalar_t>
struct FindCompleteRow {
  FiniteValues<scalar_t> prices;
  int64_t period;
  int64_t* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    int64_t t = 0;
    for (int64_t count = -1; t < prices.steps; ++t) {
      const scalar_t price = prices(panel, t, n);
      if (price == price && ++count == period) break;
    }
    to[panel * prices.assets + n] = t;
  }
};

template <typename scalar_t>
Tensor Wilder<scalar_t>::states_before_chunks(const Tensor& like, int64_t batch, const Chunks& chunks) const {
  launch_grid(like, Grid(batch, chunks.columns, 1), FindCompleteRow<scalar_t>{prices, period, complete_row});
  return states_before<2>(like, batch, chunks, *this, *this);
}

}  // namespace commodity
