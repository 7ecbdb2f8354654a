// Rolling quantile of (..., T, N): the two order statistics about it, interpolated, and their lags in rows.
//
// An item takes consecutive windows of a column and keeps the values of the current one sorted, equal values by age:
// the next window replaces the oldest value by the newest and moves those between their places.
#include "device_windows.h"

using namespace commodity;

namespace {

enum Interpolation { kLinear, kLower, kHigher, kMidpoint, kNearest };

COMMODITY_INLINE double upper_weight(double position, int64_t interpolation) {
  const double fraction = position - std::floor(position);
  if (interpolation == kLower) return 0;
  if (interpolation == kHigher) return fraction > 0;
  if (interpolation == kMidpoint) return fraction > 0 ? 0.5 : 0;
  return interpolation == kNearest ? std::nearbyint(position) > position : fraction;
}

template <typename scalar_t>
struct RollingQuantile {
  static constexpr int kRows = 32;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t *low_lag, *high_lag, window, min_periods, interpolation;
  double quantile;

  // The first place whose value is not less than `value`, or greater.
  template <bool greater, typename Values>
  COMMODITY_INLINE static int place(const Values& values, int count, scalar_t value) {
    int low = 0;
    for (int size = count; size > 0;) {
      const int half = size / 2;
      const scalar_t middle = values[low + half];
      const bool right = greater ? middle <= value : middle < value;
      low = right ? low + half + 1 : low, size = right ? size - half - 1 : half;
    }
    return low;
  }
  // Moves `count` places: each from `from` to before `to` takes what is in the next place toward `to`.
  template <typename Values, typename Rows>
  COMMODITY_INLINE static void shift(const Values& values, const Rows& rows, int from, int to, int count) {
    constexpr int kAtOnce = 4;  // loads before the stores, which they might otherwise have to wait for
    const int step = to > from ? 1 : -1;
    for (int i = 0; i < count; i += kAtOnce, from += kAtOnce * step) {
      scalar_t value[kAtOnce];
      int row[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (i + k < count) value[k] = values[from + (k + 1) * step], row[k] = rows[from + (k + 1) * step];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (i + k < count) values[from + k * step] = value[k], rows[from + k * step] = row[k];
    }
  }
  template <typename Memory>
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t chunk, const Memory& memory) const {
    const int64_t first = chunk * kRows, start = first - window + 1 > 0 ? first - window + 1 : 0;
    const int64_t end = first + kRows < x.steps ? first + kRows : x.steps;
    const auto values = memory.template array<scalar_t>(0);
    const auto rows = memory.template array<int>(window * sizeof(scalar_t));
    int count = 0;
    scalar_t next_added = x(panel, start, n), next_removed = NAN;
    for (int64_t t = start; t < end; ++t) {
      const scalar_t added = next_added, removed = next_removed;
      next_added = x(panel, t + 1, n),
      next_removed = t + 1 - window >= start ? x(panel, t + 1 - window, n) : scalar_t(NAN);
      const bool adds = added == added, removes = removed == removed;
      const int from = removes ? place<false>(values, count, removed) : count;
      int to = adds ? place<true>(values, count, added) : count;
      if (to > from) --to;
      shift(values, rows, from, to, adds || removes ? std::abs(to - from) : 0);
      if (adds) values[to] = added, rows[to] = static_cast<int>(t - start);
      count += adds - removes;
      if (t < first) continue;
      const bool defined = count >= min_periods;
      const int low = defined ? static_cast<int>(quantile * (count - 1)) : 0, high = low + 1 < count ? low + 1 : low;
      const double low_value = defined ? values[low] : NAN, high_value = defined ? values[high] : NAN;
      const double weight = upper_weight(quantile * (count - 1), interpolation);
      const int64_t i = x.at(panel, t, n);
      y[i] = static_cast<scalar_t>(low_value + (high_value - low_value) * weight);
      low_lag[i] = defined ? t - start - rows[low] : -1;
      high_lag[i] = defined ? t - start - rows[high] : -1;
    }
  }
};

std::tuple<Tensor, Tensor, Tensor> rolling_quantile(const Tensor& x_, int64_t window, double quantile,
                                                    std::optional<int64_t> min_periods, int64_t interpolation) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_quantile: x (..., T, N), window >= 1");
  STD_TORCH_CHECK(quantile >= 0 && quantile <= 1 && interpolation >= 0 && interpolation <= kNearest,
                  "rolling_quantile: quantile in [0, 1], interpolation in [0, 4]");
  const Tensor x = contiguous(x_);
  const auto new_lags = [&] { return new_empty(x, x.sizes(), torch::headeronly::ScalarType::Long); };
  Tensor y = new_empty(x, x.sizes()), low_lag = new_lags(), high_lag = new_lags();
  const Panels panels(x);
  dispatch("rolling_quantile", x, [&]<typename scalar_t>() {
    const int64_t rows = clamp_window(panels, window), chunk = RollingQuantile<scalar_t>::kRows;
    const Grid grid(panels.batch, panels.assets, (panels.steps + chunk - 1) / chunk);
    const RollingQuantile<scalar_t> body{finite_values<scalar_t>(x, panels),
                                         data_ptr<scalar_t>(y),
                                         data_ptr<int64_t>(low_lag),
                                         data_ptr<int64_t>(high_lag),
                                         rows,
                                         std::max<int64_t>(1, min_periods.value_or(window)),
                                         interpolation,
                                         quantile};
    const int64_t bytes = (rows * int64_t(sizeof(scalar_t) + sizeof(int)) + 7) / 8 * 8;
    launch_with_memory(x, grid.items(), bytes, GridItem<RollingQuantile<scalar_t>>{grid, body});
  });
  return {y, low_lag, high_lag};
}

}  // namespace

COMMODITY_CUDA(rolling_quantile)
