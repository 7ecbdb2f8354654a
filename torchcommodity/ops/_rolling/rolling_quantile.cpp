// Rolling quantile of (..., T, N): the two order statistics about it, interpolated, and their lags in rows.
//
// Each column keeps its window sorted, equal values by age, so that the oldest of them leaves first. Short windows are
// updated by one sweep over all positions of many columns at once (sorted_lanes.h); long ones by a binary search and
// one move of the values between the old and the new position.
#include <memory>

#include "sorted_lanes.h"

using namespace commodity;

namespace {

constexpr int64_t kColumns = 16;       // columns per task, whose sorted windows fit in the cache together
constexpr int64_t kLinearSearch = 64;  // values that are counted faster than bisected
constexpr int64_t kSweepBytes = 1024;  // windows up to this size are swept

enum Interpolation { kLinear, kLower, kHigher, kMidpoint, kNearest };

// The sorted window of one column.
template <typename scalar_t>
struct SortedWindow {
  scalar_t* values;
  int32_t* rows;
  int64_t size = 0;

  inline scalar_t value(int64_t k, int64_t) const { return values[k]; }
  inline int64_t row(int64_t k, int64_t) const { return rows[k]; }

  // Number of values that are less than x, or at most x (`inclusive`).
  inline int64_t count_below(scalar_t x, bool inclusive) const {
    int64_t first = 0, length = size;
    while (length > kLinearSearch) {
      const int64_t half = length / 2;
      const bool right = inclusive ? values[first + half] <= x : values[first + half] < x;
      first = right ? first + half : first, length -= half;
    }
    int32_t count = 0;
    const scalar_t* candidates = values + first;
    if (inclusive)
      for (int64_t k = 0; k < length; ++k) count += candidates[k] <= x;
    else
      for (int64_t k = 0; k < length; ++k) count += candidates[k] < x;
    return first + count;
  }

  inline void move(int64_t to, int64_t from, int64_t count) {
    if (count <= 0) return;
    __builtin_memmove(values + to, values + from, count * sizeof(scalar_t));
    __builtin_memmove(rows + to, rows + from, count * sizeof(int32_t));
  }

  inline void remove(scalar_t x) {
    const int64_t i = count_below(x, false);
    move(i, i + 1, --size - i);
  }

  inline void insert(scalar_t x, int64_t t) {
    const int64_t i = count_below(x, true);
    move(i + 1, i, size++ - i);
    values[i] = x, rows[i] = static_cast<int32_t>(t);
  }

  inline void replace(scalar_t removed, scalar_t x, int64_t t) {
    const int64_t i = count_below(removed, false), j = count_below(x, true) - (removed <= x);
    if (j > i)
      move(i, i + 1, j - i);
    else
      move(j + 1, j, i - j);
    values[j] = x, rows[j] = static_cast<int32_t>(t);
  }
};

// Weight of the upper neighbor.
inline double upper_weight(double position, Interpolation interpolation) {
  const double fraction = position - std::floor(position);
  switch (interpolation) {
    case kLower:
      return 0;
    case kHigher:
      return fraction > 0;
    case kMidpoint:
      return fraction > 0 ? 0.5 : 0;
    case kNearest:
      return std::nearbyint(position) > position;
    default:
      return fraction;
  }
}

// Where the quantile of a number of sorted values is: between two positions. The weight is NaN if there are too few.
struct Position {
  int64_t low = 0, high = 0;
  double weight = NAN;
};

// By the number of values.
std::vector<Position> quantile_positions(int64_t window, int64_t min_periods, double quantile,
                                         Interpolation interpolation) {
  std::vector<Position> positions(window + 1);
  for (int64_t count = min_periods; count <= window; ++count) {
    const double position = quantile * (count - 1);
    const int64_t low = static_cast<int64_t>(position);
    positions[count] = {low, std::min(low + 1, count - 1), upper_weight(position, interpolation)};
  }
  return positions;
}

// The input and the outputs from one column of a panel on.
template <typename scalar_t>
struct PanelPointers {
  const scalar_t* x;
  scalar_t* y;
  int64_t *low_lag, *high_lag;
  const int64_t steps, stride, window;
  const Position* positions;

  PanelPointers operator+(int64_t offset) const {
    return {x + offset, y + offset, low_lag + offset, high_lag + offset, steps, stride, window, positions};
  }
  // The value that leaves the window in row t; rows before `first` were never inserted.
  inline scalar_t leaving(int64_t offset, int64_t t, int64_t first) const {
    return t - window >= first ? x[offset - window * stride] : scalar_t(NAN);
  }
  inline void prefetch_row(int64_t offset, int64_t width) const {
    prefetch(x + offset, width), prefetch(y + offset, width);
    prefetch(low_lag + offset, width), prefetch(high_lag + offset, width);
  }
  template <typename Sorted>
  inline void write(int64_t offset, int64_t t, int64_t count, const Sorted& sorted, int64_t lane) const {
    const Position& position = positions[count];
    const bool defined = position.weight == position.weight;
    const double low = sorted.value(position.low, lane), high = sorted.value(position.high, lane);
    y[offset] = static_cast<scalar_t>(defined ? low + (high - low) * position.weight : NAN);
    low_lag[offset] = defined ? t - sorted.row(position.low, lane) : -1;
    high_lag[offset] = defined ? t - sorted.row(position.high, lane) : -1;
  }
};

template <typename scalar_t>
inline bool finite(scalar_t x) {
  return x - x == 0;
}

template <typename scalar_t>
void quantiles_by_search(const PanelPointers<scalar_t>& p, int64_t begin, int64_t end, int64_t width, scalar_t* values,
                         int32_t* rows) {
  SortedWindow<scalar_t> windows[kColumns];
  for (int64_t n = 0; n < width; ++n) windows[n] = {values + n * p.window, rows + n * p.window};
  for (int64_t t = std::max<int64_t>(0, begin - p.window + 1), first = t; t < end; ++t)
    for (int64_t n = 0; n < width; ++n) {
      const int64_t offset = t * p.stride + n;
      SortedWindow<scalar_t>& window = windows[n];
      const scalar_t entering = p.x[offset], leaving = p.leaving(offset, t, first);
      if (finite(leaving) && finite(entering))
        window.replace(leaving, entering, t);
      else if (finite(leaving))
        window.remove(leaving);
      else if (finite(entering))
        window.insert(entering, t);
      if (t >= begin) p.write(offset, t, window.size, window, 0);
    }
}

template <typename scalar_t>
COMMODITY_SIMD void quantiles_by_sweep(const PanelPointers<scalar_t>& p, int64_t begin, int64_t end, int64_t width,
                                       SortedLanes<scalar_t>& sorted) {
  constexpr int64_t kLanes = SortedLanes<scalar_t>::kLanes;
  constexpr scalar_t kEmpty = SortedLanes<scalar_t>::kEmpty;
  typename SortedLanes<scalar_t>::Values leaving, entering;
  scalar_t *removed = reinterpret_cast<scalar_t*>(&leaving), *inserted = reinterpret_cast<scalar_t*>(&entering);
  std::fill_n(removed, kLanes, kEmpty), std::fill_n(inserted, kLanes, kEmpty);
  int64_t count[kLanes] = {};
  sorted.clear();
  for (int64_t t = std::max<int64_t>(0, begin - p.window + 1), first = t; t < end; ++t) {
    const int64_t row = t * p.stride;
    if (t + kPrefetchRows < end) p.prefetch_row(row + kPrefetchRows * p.stride, width);
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t enters = p.x[row + n], leaves = p.leaving(row + n, t, first);
      inserted[n] = finite(enters) ? enters : kEmpty, removed[n] = finite(leaves) ? leaves : kEmpty;
      count[n] += finite(enters) - finite(leaves);
    }
    sorted.replace(leaving, entering, t);
    for (int64_t n = 0; t >= begin && n < width; ++n) p.write(row + n, t, count[n], sorted, n);
  }
}

template <typename scalar_t>
void rolling_quantiles(const Panels& panels, const PanelPointers<scalar_t>& panel) {
  if (panels.batch * panels.size() == 0) return;
  const int64_t window = panel.window, steps = panels.steps;
  const bool sweep = window * int64_t(sizeof(scalar_t)) <= kSweepBytes;
  // A chunk of rows first fills its window from the rows before it: order statistics do not depend on the start.
  const int64_t chunk = std::max<int64_t>(4096, 4 * window), chunks = (steps + chunk - 1) / chunk;
  const int64_t columns = sweep ? SortedLanes<scalar_t>::kLanes : kColumns;
  const int64_t strips = (panels.assets + columns - 1) / columns;
  parallel_for(0, panels.batch * strips * chunks, 1, [&](int64_t first_task, int64_t last_task) {
    SortedLanes<scalar_t> lanes(sweep ? window : 0);
    const std::unique_ptr<scalar_t[]> values(new scalar_t[sweep ? 0 : kColumns * window]());
    const std::unique_ptr<int32_t[]> rows(new int32_t[sweep ? 0 : kColumns * window]());
    for (int64_t i = first_task; i < last_task; ++i) {
      const int64_t begin = i % chunks * chunk, first = i / chunks % strips * columns;
      const int64_t end = std::min(begin + chunk, steps), width = std::min(columns, panels.assets - first);
      const PanelPointers<scalar_t> strip = panel + (i / chunks / strips * panels.size() + first);
      if (sweep)
        quantiles_by_sweep(strip, begin, end, width, lanes);
      else
        quantiles_by_search(strip, begin, end, width, values.get(), rows.get());
    }
  });
}

std::tuple<Tensor, Tensor, Tensor> rolling_quantile(const Tensor& x_, int64_t window, double quantile,
                                                    std::optional<int64_t> min_periods, int64_t interpolation) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_quantile: x (..., T, N), window >= 1");
  STD_TORCH_CHECK(quantile >= 0 && quantile <= 1 && interpolation >= 0 && interpolation <= kNearest,
                  "rolling_quantile: quantile in [0, 1], interpolation in [0, 4]");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const auto new_lags = [&] { return on_huge_pages(new_empty(x, x.sizes(), torch::headeronly::ScalarType::Long)); };
  Tensor low_lag = new_lags(), high_lag = new_lags();
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  const int64_t min_count = std::max<int64_t>(1, min_periods.value_or(window));
  const std::vector<Position> positions =
      quantile_positions(rows, min_count, quantile, static_cast<Interpolation>(interpolation));
  THO_DISPATCH_V2(
      x.scalar_type(), "rolling_quantile", AT_WRAP([&] {
        rolling_quantiles(
            panels, PanelPointers<scalar_t>{x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(),
                                            low_lag.mutable_data_ptr<int64_t>(), high_lag.mutable_data_ptr<int64_t>(),
                                            panels.steps, panels.assets, rows, positions.data()});
      }),
      AT_EXPAND(AT_FLOATING_TYPES));
  return {y, low_lag, high_lag};
}

}  // namespace

COMMODITY_OPERATOR(rolling_quantile,
                   "(Tensor x, SymInt window, float quantile, SymInt? min_periods=None, SymInt interpolation=0) -> "
                   "(Tensor, Tensor, Tensor)")
