// Stages of seasonal_decompose and its gradient on a GPU: each is a launch over columns and either kRunRows rows, along
// which a window slides, or one phase. Panels between stages have the dtype of the prices; sums are double.
#pragma once
#include "device_windows.h"

namespace commodity {

struct Season {
  int64_t steps, assets, period;
  bool multiplicative, causal;

  COMMODITY_INLINE int64_t index(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  COMMODITY_INLINE int64_t lead() const { return causal ? 0 : period / 2; }
  COMMODITY_INLINE int64_t last(int64_t first) const { return first + kRunRows < steps ? first + kRunRows : steps; }
  COMMODITY_INLINE double detrend(double price, double trend) const {
    return multiplicative ? price / trend : price - trend;
  }
};

// NaN where a value is not finite.
template <typename scalar_t>
COMMODITY_INLINE double read_finite(const scalar_t* address) {
  const double value = read(address);
  return value + (value - value);
}

template <typename scalar_t>
struct Prices {
  const scalar_t* x;
  bool multiplicative;

  COMMODITY_INLINE double operator()(int64_t index) const {  // NaN if missing
    const double price = read_finite(x + index);
    return multiplicative && !(price > 0) ? NAN : price;
  }
};

// The sum and the number of values, of which NaN are missing.
using SumAndCount = Sums<double, 2>;
COMMODITY_INLINE void add_value(SumAndCount& sums, double value, double sign) {
  sums.term[0] += value == value ? sign * value : 0;
  sums.term[1] += value == value ? sign : 0;
}

// Calls finish(t, sums) with the sums over a window of weight 2 x period whose last row is t, for rows from `first` on:
// an even period weighs the two ends by half, as the sum at t plus the sum at t - 1.
template <typename Value, typename Finish>
COMMODITY_INLINE void slide_trend_window(const Season& s, int64_t first, int64_t last, const Value& value,
                                         const Finish& finish) {
  const bool even = s.period % 2 == 0;
  const auto add = [&](SumAndCount& sums, int64_t t, double sign) { add_value(sums, value(t), sign); };
  slide_window<SumAndCount>(first, last, s.period, s.steps, add,
                            [&](int64_t t, const SumAndCount& sums, const SumAndCount& previous) {
                              SumAndCount total;
                              for (int i = 0; i < 2; ++i)
                                total.term[i] = sums.term[i] + (even ? previous.term[i] : sums.term[i]);
                              finish(t, total);
                            });
}

// Trend, detrended price and, for the gradient, the number of prices in the trend's window, twice.
template <typename scalar_t>
struct Trend {
  static constexpr int64_t kRows = kRunRows;
  Season s;
  Prices<scalar_t> price;
  scalar_t *trend, *detrended, *weight;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t lead = s.lead(), warmup = s.period - s.period % 2;
    const auto value = [&](int64_t t) { return price(s.index(panel, t, n)); };
    const auto finish = [&](int64_t end, const SumAndCount& sums) {
      const int64_t i = s.index(panel, end - lead, n);
      const bool has_trend =
          end >= warmup && end < s.steps && sums.term[1] >= s.period;  // at least half of the total weight, 2 x period
      const double mean = has_trend ? sums.term[0] / sums.term[1] : NAN;
      trend[i] = static_cast<scalar_t>(mean);
      detrended[i] = static_cast<scalar_t>(s.detrend(price(i), mean));
      if (weight) weight[i] = static_cast<scalar_t>(sums.term[1]);
    };
    slide_trend_window(s, first + lead, s.last(first) + lead, value, finish);
  }
};

// The mean of each phase over the rows so far, or, two-sided, over all rows; NaN before the first row.
template <typename scalar_t>
struct PhaseMeans {
  Season s;
  const scalar_t* detrended;
  scalar_t* mean;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t phase) const {
    SumAndCount sums;
#pragma unroll 4
    for (int64_t t = phase; t < s.steps; t += s.period) {
      const int64_t i = s.index(panel, t, n);
      add_value(sums, read(detrended + i), 1);
      if (s.causal) mean[i] = static_cast<scalar_t>(sums.term[0] / sums.term[1]);
    }
    for (int64_t t = phase; t < s.steps && !s.causal; t += s.period)
      mean[s.index(panel, t, n)] = static_cast<scalar_t>(sums.term[0] / sums.term[1]);
  }
};

// Calls visit(t, center) for the rows from `first` on, with the mean of the latest means of all phases, NaN if one has
// none.
template <typename scalar_t, typename Visit>
COMMODITY_INLINE void for_each_center(const Season& s, const scalar_t* mean, int64_t panel, int64_t n, int64_t first,
                                      const Visit& visit) {
  const auto add = [&](SumAndCount& sums, int64_t t, double sign) {
    add_value(sums, read(mean + s.index(panel, t, n)), sign);
  };
  const auto finish = [&](int64_t t, const SumAndCount& sums, const SumAndCount&) {
    visit(t, sums.term[1] == s.period ? sums.term[0] / s.period : NAN);
  };
  if (s.causal) return slide_window<SumAndCount>(first, s.last(first), s.period, s.steps, add, finish);
  SumAndCount all_phases;
  for (int64_t t = s.steps < s.period ? 0 : s.steps - s.period; t < s.steps; ++t) add(all_phases, t, 1);
  for (int64_t t = first; t < s.last(first); ++t) finish(t, all_phases, all_phases);
}

}  // namespace commodity
