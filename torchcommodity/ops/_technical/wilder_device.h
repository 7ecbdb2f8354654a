// Wilder's averages of gains and losses on a GPU, for technical_indicators and its gradient.
#pragma once
#include "device_windows.h"

namespace commodity {

// Wilder's averages of gains and losses: the mean of the first `period` changes, then a_t = a_{t-1} + (change -
// a_{t-1}) / period. A missing price is no change, and the next change is against the last price there was.
template <typename scalar_t>
struct Wilder {
  FiniteValues<scalar_t> prices;
  int64_t* ripe;  // the row of the change with which the first average is complete
  int64_t period;

  COMMODITY_INLINE Affine<2> operator()(int64_t panel, int64_t t, int64_t n) const {
    const scalar_t price = prices(panel, t, n);
    int64_t last = t - 1;
    while (last >= 0 && prices(panel, last, n) != prices(panel, last, n)) --last;
    const scalar_t change = price - prices(panel, last, n);
    const bool smooth = change == change && t > ripe[panel * prices.assets + n];
    const double share = 1.0 / period;
    return {smooth ? 1 - share : 1, {change > 0 ? share * change : 0, change < 0 ? -share * change : 0}};
  }
  COMMODITY_INLINE State<2> operator()(int64_t, int64_t) const { return {}; }

  Tensor states_before_chunks(const Tensor& on, int64_t batch, const Chunks& chunks) const;
};

template <typename scalar_t>
struct Ripe {
  FiniteValues<scalar_t> prices;
  int64_t period;
  int64_t* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    int64_t t = 0;
    for (int64_t seen = -1; t < prices.steps; ++t) {
      const scalar_t price = prices(panel, t, n);
      if (price == price && ++seen == period) break;
    }
    to[panel * prices.assets + n] = t;
  }
};

template <typename scalar_t>
Tensor Wilder<scalar_t>::states_before_chunks(const Tensor& on, int64_t batch, const Chunks& chunks) const {
  launch_grid(on, Grid(batch, chunks.columns, 1), Ripe<scalar_t>{prices, period, ripe});
  return states_before<2>(on, batch, chunks, *this, *this);
}

}  // namespace commodity
