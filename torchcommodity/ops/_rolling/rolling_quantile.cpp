// The two order statistics about a quantile of the last `window` rows of (..., T, N), and how many rows ago they stood.
//
// Each column keeps its window sorted, equal values by age: the oldest of them leaves first. What leaves and what comes
// are one move of the values between their places; in a short window, a sweep over all places of many columns at once.
#include <memory>

#include "sorted_lanes.h"

using namespace commodity;

namespace {

constexpr int64_t kColumns = 16;  // whose windows stay in the cache together
constexpr int64_t kFew = 64;      // values that are faster counted than bisected
constexpr int64_t kSwept = 1024;  // bytes of a window that are faster swept than searched

enum Interpolation { kLinear, kLower, kHigher, kMidpoint, kNearest };

// A sorted window of one column.
template <typename scalar_t>
struct Sorted {
  scalar_t* values;
  int32_t* rows;
  int64_t size = 0;

  inline scalar_t value(int64_t k, int64_t) const { return values[k]; }
  inline int64_t row(int64_t k, int64_t) const { return rows[k]; }

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

// Where the quantile of so many values stands: between two places, or nowhere where they are too few.
struct Place {
  int64_t low = 0, high = 0;
  double share = NAN;
};

std::vector<Place> places(int64_t window, int64_t least, double quantile, Interpolation interpolation) {
  std::vector<Place> of(window + 1);
  for (int64_t count = least; count <= window; ++count) {
    const double place = quantile * (count - 1);
    const int64_t low = static_cast<int64_t>(place);
    of[count] = {low, std::min(low + 1, count - 1), share(place, interpolation)};
  }
  return of;
}

template <typename scalar_t>
struct Panel {
  const scalar_t* x;
  scalar_t* y;
  int64_t *low, *high;
  const int64_t steps, stride, window;
  const Place* places;

  Panel operator+(int64_t at) const { return {x + at, y + at, low + at, high + at, steps, stride, window, places}; }
  // The value that leaves in row t, if rows before `first` are left out.
  inline scalar_t leaving(int64_t at, int64_t t, int64_t first) const {
    return t - window >= first ? x[at - window * stride] : scalar_t(NAN);
  }
  inline void fetch_row(int64_t at, int64_t width) const {
    prefetch(x + at, width), prefetch(y + at, width), prefetch(low + at, width), prefetch(high + at, width);
  }
  template <typename Sorted>
  inline void put(int64_t at, int64_t t, int64_t count, const Sorted& sorted, int64_t lane) const {
    const Place& place = places[count];
    const bool known = place.share == place.share;
    const double a = sorted.value(place.low, lane), b = sorted.value(place.high, lane);
    y[at] = static_cast<scalar_t>(known ? a + (b - a) * place.share : NAN);
    low[at] = known ? t - sorted.row(place.low, lane) : -1;
    high[at] = known ? t - sorted.row(place.high, lane) : -1;
  }
};

template <typename scalar_t>
inline bool finite(scalar_t x) {
  return x - x == 0;
}

template <typename scalar_t>
void search(const Panel<scalar_t>& p, int64_t begin, int64_t end, int64_t width, scalar_t* values, int32_t* rows) {
  Sorted<scalar_t> sorted[kColumns];
  for (int64_t n = 0; n < width; ++n) sorted[n] = {values + n * p.window, rows + n * p.window};
  for (int64_t t = std::max<int64_t>(0, begin - p.window + 1), first = t; t < end; ++t)
    for (int64_t n = 0; n < width; ++n) {
      const int64_t at = t * p.stride + n;
      Sorted<scalar_t>& window = sorted[n];
      const scalar_t now = p.x[at], old = p.leaving(at, t, first);
      if (finite(old) && finite(now))
        window.replace(old, now, t);
      else if (finite(old))
        window.leave(old);
      else if (finite(now))
        window.come(now, t);
      if (t >= begin) p.put(at, t, window.size, window, 0);
    }
}

template <typename scalar_t>
COMMODITY_SIMD void sweep(const Panel<scalar_t>& p, int64_t begin, int64_t end, int64_t width,
                          SortedLanes<scalar_t>& sorted) {
  constexpr int64_t kLanes = SortedLanes<scalar_t>::kLanes;
  constexpr scalar_t kNone = SortedLanes<scalar_t>::kNone;
  typename SortedLanes<scalar_t>::Values leaving, coming;
  scalar_t *old = reinterpret_cast<scalar_t*>(&leaving), *now = reinterpret_cast<scalar_t*>(&coming);
  std::fill_n(old, kLanes, kNone), std::fill_n(now, kLanes, kNone);
  int64_t count[kLanes] = {};
  sorted.clear();
  for (int64_t t = std::max<int64_t>(0, begin - p.window + 1), first = t; t < end; ++t) {
    const int64_t row = t * p.stride;
    if (t + kPrefetchRows < end) p.fetch_row(row + kPrefetchRows * p.stride, width);
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t comes = p.x[row + n], leaves = p.leaving(row + n, t, first);
      now[n] = finite(comes) ? comes : kNone, old[n] = finite(leaves) ? leaves : kNone;
      count[n] += finite(comes) - finite(leaves);
    }
    sorted.replace(leaving, coming, t);
    for (int64_t n = 0; t >= begin && n < width; ++n) p.put(row + n, t, count[n], sorted, n);
  }
}

template <typename scalar_t>
void all_quantiles(const Panels& panels, const Panel<scalar_t>& panel) {
  if (panels.batch * panels.size() == 0) return;
  const int64_t window = panel.window, steps = panels.steps;
  const bool swept = window * int64_t(sizeof(scalar_t)) <= kSwept;
  // a chunk of rows begins with the window before it; order statistics do not depend on where it begins
  const int64_t chunk = std::max<int64_t>(4096, 4 * window), chunks = (steps + chunk - 1) / chunk;
  const int64_t columns = swept ? SortedLanes<scalar_t>::kLanes : kColumns;
  const int64_t strips = (panels.assets + columns - 1) / columns;
  torch::stable::parallel_for(0, panels.batch * strips * chunks, 1, [&](int64_t first_task, int64_t last_task) {
    SortedLanes<scalar_t> lanes(swept ? window : 0);
    const std::unique_ptr<scalar_t[]> values(new scalar_t[swept ? 0 : kColumns * window]());
    const std::unique_ptr<int32_t[]> rows(new int32_t[swept ? 0 : kColumns * window]());
    for (int64_t i = first_task; i < last_task; ++i) {
      const int64_t begin = i % chunks * chunk, first = i / chunks % strips * columns;
      const int64_t end = std::min(begin + chunk, steps), width = std::min(columns, panels.assets - first);
      const Panel<scalar_t> strip = panel + (i / chunks / strips * panels.size() + first);
      swept ? sweep(strip, begin, end, width, lanes) : search(strip, begin, end, width, values.get(), rows.get());
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
  const int64_t reached = clamp_window(panels, window);
  const std::vector<Place> of_count =
      places(reached, std::max<int64_t>(1, min_periods), quantile, static_cast<Interpolation>(interpolation));
  THO_DISPATCH_V2(x.scalar_type(), "rolling_quantile", AT_WRAP([&] {
                    all_quantiles(panels,
                                  Panel<scalar_t>{x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(),
                                                  low.mutable_data_ptr<int64_t>(), high.mutable_data_ptr<int64_t>(),
                                                  panels.steps, panels.assets, reached, of_count.data()});
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {y, low, high};
}

}  // namespace

COMMODITY_OPERATOR(rolling_quantile,
                   "(Tensor x, SymInt window, SymInt min_periods, float quantile, SymInt interpolation) -> (Tensor, "
                   "Tensor, Tensor)")
