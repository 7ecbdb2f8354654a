// Rolling quantile of (..., T, N): the two order statistics about it, interpolated, and their lags in rows.
//
// A GPU counts faster than it sorts: an order statistic is found bit by bit, from the highest, by counting the values
// of the window that are less than the bits so far. An item takes a few consecutive windows and reads their rows once.
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

// Unsigned integers in the order of the values; both zeros have one key.
COMMODITY_INLINE uint32_t key_of(float x) {
  uint32_t bits;
  x = x == 0 ? 0.0f : x;
  memcpy(&bits, &x, sizeof x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
COMMODITY_INLINE uint64_t key_of(double x) {
  uint64_t bits;
  x = x == 0 ? 0.0 : x;
  memcpy(&bits, &x, sizeof x);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}

template <typename scalar_t>
struct RollingQuantile {
  static constexpr int kRows = 8;
  using Key = decltype(key_of(scalar_t()));
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t *low_lag, *high_lag, window, min_periods, interpolation;
  double quantile;

  // Calls body(k, key, t) for every value of window k, from the oldest on.
  template <typename Body>
  COMMODITY_INLINE void for_each_value(int64_t panel, int64_t n, int64_t first, const Body& body) const {
    for (int64_t t = first - window + 1 > 0 ? first - window + 1 : 0; t < first + kRows; ++t) {
      const scalar_t value = x(panel, t, n);
      if (value != value) continue;
      const Key key = key_of(value);
#pragma unroll
      for (int k = 0; k < kRows; ++k)
        if (t > first + k - window && t <= first + k) body(k, key, t);
    }
  }
  // The row of the value with rank ranks[k] in window k; equal values are ranked by age, the oldest first.
  COMMODITY_INLINE void find(int64_t panel, int64_t n, int64_t first, int (&ranks)[kRows],
                             int64_t (&rows)[kRows]) const {
    Key keys[kRows] = {};
    for (int bit = 8 * sizeof(Key) - 1; bit >= 0; --bit) {
      int below[kRows] = {};
      const Key one = Key(1) << bit;
      for_each_value(panel, n, first, [&](int k, Key key, int64_t) { below[k] += key < (keys[k] | one); });
#pragma unroll
      for (int k = 0; k < kRows; ++k) keys[k] |= below[k] <= ranks[k] ? one : 0;
    }
    for_each_value(panel, n, first, [&](int k, Key key, int64_t) { ranks[k] -= key < keys[k]; });
    for_each_value(panel, n, first, [&](int k, Key key, int64_t t) {
      if (key == keys[k] && ranks[k]-- == 0) rows[k] = t;
    });
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    int count[kRows] = {}, low_rank[kRows], high_rank[kRows];
    int64_t low_row[kRows] = {}, high_row[kRows] = {};
    for_each_value(panel, n, first, [&](int k, Key, int64_t) { count[k] += 1; });
    bool any = false;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const bool defined = count[k] >= min_periods;
      low_rank[k] = defined ? static_cast<int>(quantile * (count[k] - 1)) : 0;
      high_rank[k] = low_rank[k] + 1 < count[k] ? low_rank[k] + 1 : count[k] - 1;
      any |= defined;
    }
    if (any) find(panel, n, first, low_rank, low_row), find(panel, n, first, high_rank, high_row);
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (x.has_row(first + k)) write(panel, first + k, n, count[k], low_row[k], high_row[k]);
  }
  COMMODITY_INLINE void write(int64_t panel, int64_t t, int64_t n, int count, int64_t low_row, int64_t high_row) const {
    const bool defined = count >= min_periods;
    const double low = defined ? x(panel, low_row, n) : NAN, high = defined ? x(panel, high_row, n) : NAN;
    const int64_t i = x.at(panel, t, n);
    y[i] = static_cast<scalar_t>(low + (high - low) * upper_weight(quantile * (count - 1), interpolation));
    low_lag[i] = defined ? t - low_row : -1;
    high_lag[i] = defined ? t - high_row : -1;
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
    launch_windows(
        x, panels,
        RollingQuantile<scalar_t>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), data_ptr<int64_t>(low_lag),
                                  data_ptr<int64_t>(high_lag), clamp_window(panels, window),
                                  std::max<int64_t>(1, min_periods.value_or(window)), interpolation, quantile});
  });
  return {y, low_lag, high_lag};
}

}  // namespace

COMMODITY_CUDA(rolling_quantile)
