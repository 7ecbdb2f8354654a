// The two order statistics about a quantile of the last `window` rows of (..., T, N), and how many rows ago they stood.
//
// A GPU counts faster than it sorts: the bits of an order statistic are found one after the other, from the highest, by
// counting how many values of the window are less than what they make. An item takes a few windows and reads what they
// hold once for all of them.
#include "device_windows.h"

using namespace commodity;

namespace {

enum Interpolation { kLinear, kLower, kHigher, kMidpoint, kNearest };

COMMODITY_INLINE double share_of(double place, int64_t interpolation) {
  const double rest = place - std::floor(place);
  if (interpolation == kLower) return 0;
  if (interpolation == kHigher) return rest > 0;
  if (interpolation == kMidpoint) return rest > 0 ? 0.5 : 0;
  return interpolation == kNearest ? std::nearbyint(place) > place : rest;
}

// Bits that are ordered as their values are; zeros are alike.
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
struct Quantiles {
  static constexpr int kRows = 8;
  using Key = decltype(key_of(scalar_t()));
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t *low, *high, window, least, interpolation;
  double quantile;

  // see(k, key, t) for every value of window k, from the oldest
  template <typename See>
  COMMODITY_INLINE void visit(int64_t panel, int64_t n, int64_t first, const See& see) const {
    for (int64_t t = first - window + 1 > 0 ? first - window + 1 : 0; t < first + kRows; ++t) {
      const scalar_t value = x(panel, t, n);
      if (value != value) continue;
      const Key key = key_of(value);
#pragma unroll
      for (int k = 0; k < kRows; ++k)
        if (t > first + k - window && t <= first + k) see(k, key, t);
    }
  }
  // The row of the value with ranks[k] before it: smaller ones, or older ones that are equal.
  COMMODITY_INLINE void find(int64_t panel, int64_t n, int64_t first, int (&ranks)[kRows],
                             int64_t (&rows)[kRows]) const {
    Key keys[kRows] = {};
    for (int bit = 8 * sizeof(Key) - 1; bit >= 0; --bit) {
      int below[kRows] = {};
      const Key one = Key(1) << bit;
      visit(panel, n, first, [&](int k, Key key, int64_t) { below[k] += key < (keys[k] | one); });
#pragma unroll
      for (int k = 0; k < kRows; ++k) keys[k] |= below[k] <= ranks[k] ? one : 0;
    }
    visit(panel, n, first, [&](int k, Key key, int64_t) { ranks[k] -= key < keys[k]; });
    visit(panel, n, first, [&](int k, Key key, int64_t t) {
      if (key == keys[k] && ranks[k]-- == 0) rows[k] = t;
    });
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    int held[kRows] = {}, lower[kRows], upper[kRows];
    int64_t row[kRows] = {}, next[kRows] = {};
    visit(panel, n, first, [&](int k, Key, int64_t) { held[k] += 1; });
    bool any = false;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const bool known = held[k] >= least;
      lower[k] = known ? static_cast<int>(quantile * (held[k] - 1)) : 0;
      upper[k] = lower[k] + 1 < held[k] ? lower[k] + 1 : held[k] - 1;
      any |= known;
    }
    if (any) find(panel, n, first, lower, row), find(panel, n, first, upper, next);
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (x.has_row(first + k)) write(panel, first + k, n, held[k], row[k], next[k]);
  }
  COMMODITY_INLINE void write(int64_t panel, int64_t t, int64_t n, int held, int64_t row, int64_t next) const {
    const bool known = held >= least;
    const double a = known ? x(panel, row, n) : NAN, b = known ? x(panel, next, n) : NAN;
    const int64_t at = x.at(panel, t, n);
    y[at] = static_cast<scalar_t>(a + (b - a) * share_of(quantile * (held - 1), interpolation));
    low[at] = known ? t - row : -1;
    high[at] = known ? t - next : -1;
  }
};

std::tuple<Tensor, Tensor, Tensor> rolling_quantile(const Tensor& x_, int64_t window, int64_t min_periods,
                                                    double quantile, int64_t interpolation) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_quantile: x (..., T, N), window >= 1");
  STD_TORCH_CHECK(quantile >= 0 && quantile <= 1 && interpolation >= 0 && interpolation <= kNearest,
                  "rolling_quantile: quantile in [0, 1], a known interpolation");
  const Tensor x = contiguous(x_);
  const auto rows = [&] { return new_empty(x, x.sizes(), torch::headeronly::ScalarType::Long); };
  Tensor y = new_empty(x, x.sizes()), low = rows(), high = rows();
  const Panels panels(x);
  dispatch("rolling_quantile", x, [&]<typename scalar_t>() {
    launch_windows(x, panels,
                   Quantiles<scalar_t>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y),
                                       data_ptr<int64_t>(low), data_ptr<int64_t>(high), clamp_window(panels, window),
                                       std::max<int64_t>(1, min_periods), interpolation, quantile});
  });
  return {y, low, high};
}

}  // namespace

COMMODITY_CUDA(rolling_quantile)
