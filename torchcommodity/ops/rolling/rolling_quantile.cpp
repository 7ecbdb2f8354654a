// The two order statistics about a quantile of the last `window` rows of (..., T, N), and how many rows ago they stood.
//
// Each column keeps its window sorted, equal values by age: the oldest of them leaves first. What leaves and what comes
// are one move of the values between their places.
#include <memory>

#include "windows.h"

using namespace commodity;

namespace {

constexpr int64_t kColumns = 16;  // whose windows stay in the cache together
constexpr int64_t kFew = 64;      // values that are faster counted than bisected

enum Interpolation { kLinear, kLower, kHigher, kMidpoint, kNearest };

// A sorted window of one column.
template <typename scalar_t>
struct Sorted {
  scalar_t* values;
  int32_t* rows;
  int64_t size = 0;

  // How many values are less than x, or no more than x.
  inline int64_t below(scalar_t x, bool or_equal) const {
    int64_t from = 0, length = size;
    while (length > kFew) {
      const int64_t half = length / 2;
      const bool right = or_equal ? values[from + half] <= x : values[from + half] < x;
      from = right ? from + half : from, length -= half;
    }
    int32_t count = 0;
    const scalar_t* few = values + from;
    if (or_equal)
      for (int64_t k = 0; k < length; ++k) count += few[k] <= x;
    else
      for (int64_t k = 0; k < length; ++k) count += few[k] < x;
    return from + count;
  }

  inline void move(int64_t to, int64_t from, int64_t count) {
    if (count <= 0) return;
    __builtin_memmove(values + to, values + from, count * sizeof(scalar_t));
    __builtin_memmove(rows + to, rows + from, count * sizeof(int32_t));
  }

  inline void leave(scalar_t x) {
    const int64_t i = below(x, false);
    move(i, i + 1, --size - i);
  }

  inline void come(scalar_t x, int64_t t) {
    const int64_t i = below(x, true);
    move(i + 1, i, size++ - i);
    values[i] = x, rows[i] = static_cast<int32_t>(t);
  }

  inline void replace(scalar_t old, scalar_t x, int64_t t) {
    const int64_t i = below(old, false), j = below(x, true) - (old <= x);
    if (j > i)
      move(i, i + 1, j - i);
    else
      move(j + 1, j, i - j);
    values[j] = x, rows[j] = static_cast<int32_t>(t);
  }
};

inline double share(double place, Interpolation interpolation) {
  const double rest = place - std::floor(place);
  switch (interpolation) {
    case kLower:
      return 0;
    case kHigher:
      return rest > 0;
    case kMidpoint:
      return rest > 0 ? 0.5 : 0;
    case kNearest:
      return std::nearbyint(place) > place;
    default:
      return rest;
  }
}

struct Settings {
  int64_t steps, stride, window, least;
  double quantile;
  Interpolation interpolation;
};

template <typename scalar_t>
void quantiles(const Settings& s, const scalar_t* x, scalar_t* y, int64_t* low, int64_t* high, int64_t begin,
               int64_t end, int64_t width, scalar_t* values, int32_t* rows) {
  Sorted<scalar_t> sorted[kColumns];
  for (int64_t n = 0; n < width; ++n) sorted[n] = {values + n * s.window, rows + n * s.window};
  const auto finite = [](scalar_t v) { return v - v == 0; };
  for (int64_t t = std::max<int64_t>(0, begin - s.window + 1), first = t; t < end; ++t)
    for (int64_t n = 0; n < width; ++n) {
      const int64_t at = t * s.stride + n;
      Sorted<scalar_t>& window = sorted[n];
      const scalar_t now = x[at], old = t - s.window >= first ? x[at - s.window * s.stride] : scalar_t(NAN);
      if (finite(old) && finite(now))
        window.replace(old, now, t);
      else if (finite(old))
        window.leave(old);
      else if (finite(now))
        window.come(now, t);
      if (t < begin) continue;
      const bool known = window.size >= s.least;
      const double place = s.quantile * (window.size - 1);
      const int64_t i = known ? static_cast<int64_t>(place) : 0, j = std::min(i + 1, window.size - 1);
      const double a = window.values[i], b = known ? window.values[j] : a;
      y[at] = static_cast<scalar_t>(known ? a + (b - a) * share(place, s.interpolation) : NAN);
      low[at] = known ? t - window.rows[i] : -1;
      high[at] = known ? t - window.rows[j] : -1;
    }
}

template <typename scalar_t>
void all_quantiles(const Tensor& x, Tensor& y, Tensor& low, Tensor& high, const Settings& s) {
  const Panels panels(x);
  if (x.numel() == 0) return;
  const scalar_t* from = x.const_data_ptr<scalar_t>();
  scalar_t* to = y.mutable_data_ptr<scalar_t>();
  int64_t *to_low = low.mutable_data_ptr<int64_t>(), *to_high = high.mutable_data_ptr<int64_t>();
  // a chunk of rows begins with the window before it; order statistics do not depend on where it begins
  const int64_t chunk = std::max<int64_t>(4096, 4 * s.window), chunks = (s.steps + chunk - 1) / chunk;
  const int64_t strips = (panels.assets + kColumns - 1) / kColumns;
  torch::stable::parallel_for(0, panels.batch * strips * chunks, 1, [&](int64_t first_task, int64_t last_task) {
    const std::unique_ptr<scalar_t[]> values(new scalar_t[kColumns * s.window]());
    const std::unique_ptr<int32_t[]> rows(new int32_t[kColumns * s.window]());
    for (int64_t i = first_task; i < last_task; ++i) {
      const int64_t begin = i % chunks * chunk, first = i / chunks % strips * kColumns;
      const int64_t at = i / chunks / strips * panels.size() + first;
      quantiles(s, from + at, to + at, to_low + at, to_high + at, begin, std::min(begin + chunk, s.steps),
                std::min(kColumns, panels.assets - first), values.get(), rows.get());
    }
  });
}

std::tuple<Tensor, Tensor, Tensor> rolling_quantile(const Tensor& x_, int64_t window, int64_t min_periods,
                                                    double quantile, int64_t interpolation) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_quantile: x (..., T, N), window >= 1");
  STD_TORCH_CHECK(quantile >= 0 && quantile <= 1 && interpolation >= 0 && interpolation <= kNearest,
                  "rolling_quantile: quantile in [0, 1], a known interpolation");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const auto rows = [&] { return on_huge_pages(new_empty(x, x.sizes(), torch::headeronly::ScalarType::Long)); };
  Tensor low = rows(), high = rows();
  const Panels panels(x);
  const Settings s{panels.steps,
                   panels.assets,
                   reach(panels, window),
                   std::max<int64_t>(1, min_periods),
                   quantile,
                   static_cast<Interpolation>(interpolation)};
  THO_DISPATCH_V2(x.scalar_type(), "rolling_quantile", AT_WRAP([&] { all_quantiles<scalar_t>(x, y, low, high, s); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {y, low, high};
}

}  // namespace

COMMODITY_OPERATOR(rolling_quantile,
                   "(Tensor x, SymInt window, SymInt min_periods, float quantile, SymInt interpolation) -> (Tensor, "
                   "Tensor, Tensor)")
