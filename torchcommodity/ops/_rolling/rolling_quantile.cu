// Rolling quantile of (..., T, N): the two order statistics about it, interpolated, and their lags in rows.
//
// Time is cut into blocks of `window` rows, so that every window ends in one block and begins in the one before. The
// rows of both are linked in sorted order: a row leaves or enters in constant time, and the quantile moves by a row or
// two (Suomela, 2014. Median filtering is equivalent to sorting, arXiv:1406.1717).
//   1. The place of every row in its sorted block is counted: comparisons in registers take less than a sort.
//   2. An item links the rows of two blocks of a column, and takes the windows that end in the second.
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

// The place of every row: how many values of its block are less, or equal and older.
template <typename scalar_t, typename Row>
struct SortedPlaces {
  static constexpr int kRows = 8;
  using Count = std::conditional_t<sizeof(Row) == sizeof(int), int, float>;  // floats are added at twice the speed
  FiniteValues<scalar_t> x;
  Row* places;
  int64_t window, items;  // of a block

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t item) const {
    const int64_t start = item / items * window, first = start + item % items * kRows;
    const int64_t end = start + window < x.steps ? start + window : x.steps;
    if (first >= end) return;
    scalar_t value[kRows];
    Count place[kRows] = {};
#pragma unroll
    for (int k = 0; k < kRows; ++k) value[k] = first + k < end ? x(panel, first + k, n) : scalar_t(NAN);
    const auto compare = [&](scalar_t other, int k, bool is_older) {
      place[k] += (is_older ? other <= value[k] : other < value[k]) ? Count(1) : Count(0);
    };
    const auto compare_rows = [&](int64_t from, int64_t to, bool are_older) {
      const scalar_t* address = x.x + x.at(panel, from, n);
#pragma unroll 4
      for (int64_t t = from; t < to; ++t, address += x.assets) {
        const scalar_t row = read(address), other = row + (row - row);
#pragma unroll
        for (int k = 0; k < kRows; ++k) compare(other, k, are_older);
      }
    };
    compare_rows(start, first, true);
#pragma unroll
    for (int k = 0; k < kRows; ++k)
#pragma unroll
      for (int j = 0; j < kRows; ++j)
        if (j != k) compare(value[j], k, j < k);
    compare_rows(first + kRows, end, false);
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (first + k < end) places[x.at(panel, first + k, n)] = static_cast<Row>(place[k]);
  }
};

// Neighbors in sorted order.
template <typename Row>
struct alignas(2 * sizeof(Row)) Link {
  Row previous, next;
};

// The rows of a block that are in the window, linked in sorted order between two ends, and the first of them that is
// not below the quantile. A missing row is its own neighbor: it leaves and enters without effect.
template <typename scalar_t, typename Values, typename Links>
struct SortedRows {
  Values values;
  Links links;
  int row;
  scalar_t value;

  COMMODITY_INLINE void move(int to) { row = to, value = values[to]; }
  COMMODITY_INLINE void advance() { move(links[row].next); }
  COMMODITY_INLINE void retreat() { move(links[row].previous); }
  COMMODITY_INLINE scalar_t previous_value() const { return values[links[row].previous]; }
  COMMODITY_INLINE int remove(int i) const {
    const auto link = links[i];
    links[link.previous].next = link.next, links[link.next].previous = link.previous;
    return link.next;
  }
  COMMODITY_INLINE void restore(int i) const {  // rows removed last are restored first
    const auto link = links[i];
    links[link.previous].next = i, links[link.next].previous = i;
  }
};

template <typename scalar_t, typename Row>
struct RollingQuantile {
  FiniteValues<scalar_t> x;
  const Row* places;
  scalar_t* y;
  int64_t *low_lag, *high_lag, min_periods, interpolation;
  int window;
  double quantile;

  COMMODITY_INLINE int64_t link_bytes() const { return (window + 2) * int64_t(sizeof(Link<Row>)); }
  int64_t bytes() const { return (2 * link_bytes() + (window + 2) * int64_t(sizeof(scalar_t)) + 7) / 8 * 8; }

  // Links the rows of the block that begins with `start`, none of them if it is the newer one. Returns how many have a
  // value.
  template <bool newer, typename Rows>
  COMMODITY_INLINE int link(const Rows& sorted, int64_t panel, int64_t n, int64_t start) const {
    const int last = window, first = window + 1;  // the ends
    const auto& links = sorted.links;
    const int rows = start < 0 ? 0 : static_cast<int>(start + window < x.steps ? window : x.steps - start);
    const int64_t at = x.at(panel, start, n);
    int count = 0, previous = first;
#pragma unroll 4
    for (int i = 0; i < window; ++i) {
      const scalar_t row = i < rows ? read(x.x + at + i * x.assets) : scalar_t(NAN), value = row + (row - row);
      const int place = i < rows ? read(places + at + i * x.assets) : 0;
      if constexpr (!newer) sorted.values[i] = value;
      if (value == value)
        links[place].next = i, ++count;  // the row in this place, for now
      else
        links[i].previous = i;
    }
    for (int place = 0; place < count; ++place) {
      const int row = links[place].next;
      links[row].previous = previous, previous = row;
    }
    links[last].previous = previous;
    for (int i = 0; i <= last; ++i) links[links[i].previous].next = i;
    if constexpr (newer)
      for (int i = window - 1; i >= 0; --i) sorted.remove(i);
    return count;
  }

  template <typename Memory>
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t block, const Memory& memory) const {
    const auto links = memory.template array<Link<Row>>(0),
               newer_links = memory.template array<Link<Row>>(link_bytes());
    // of both blocks: row i of the newer one enters when row i of the older one leaves
    const auto values = memory.template array<scalar_t>(2 * link_bytes());
    SortedRows<scalar_t, decltype(values), decltype(links)> older{values, links}, newer{values, newer_links};
    const int64_t start = block * window, rows = start + window < x.steps ? window : x.steps - start;
    int count = link<false>(older, panel, n, start - window), last_count = -1, below = 0, low = 0;
    double weight = 0;
    link<true>(newer, panel, n, start);
    values[window] = INFINITY, values[window + 1] = -INFINITY;
    older.move(links[window + 1].next), newer.move(window);
    scalar_t next_added = x(panel, start, n);
    for (int i = 0; i < rows; ++i) {
      const scalar_t removed = values[i], added = next_added;
      next_added = x(panel, start + i + 1, n);
      values[i] = added;
      const int next = older.remove(i);
      if (older.row == i)
        older.move(next);
      else
        below -= removed <= older.value;
      newer.restore(i);
      if (added < older.value && added < newer.value)
        ++below;
      else if (added < newer.value)
        newer.row = i, newer.value = added;
      count += (added == added) - (removed == removed);
      if (count != last_count) {
        const double position = quantile * (count - 1);
        low = count > 0 ? static_cast<int>(position) : 0, weight = upper_weight(position, interpolation);
        last_count = count;
      }
#pragma unroll 1
      for (; below > low; --below) older.previous_value() > newer.previous_value() ? older.retreat() : newer.retreat();
#pragma unroll 1
      for (; below < low; ++below) older.value <= newer.value ? older.advance() : newer.advance();
      const bool defined = count >= min_periods, has_next = low + 1 < count;
      write(x.at(panel, start + i, n), i, defined, has_next, weight, older, newer);
    }
  }

  // The row of the lower neighbor, and the next one if there is any.
  template <typename Rows>
  COMMODITY_INLINE void write(int64_t at, int i, bool defined, bool has_next, double weight, Rows older,
                              Rows newer) const {
    double value[2];
    int64_t lag[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const bool is_older = older.value <= newer.value;
      value[k] = is_older ? older.value : newer.value;
      lag[k] = is_older ? i + window - older.row : i - newer.row;
      if (has_next) is_older ? older.advance() : newer.advance();
    }
    y[at] = static_cast<scalar_t>(defined ? value[0] + (value[1] - value[0]) * weight : NAN);
    low_lag[at] = defined ? lag[0] : -1;
    high_lag[at] = defined ? lag[1] : -1;
  }
};

std::tuple<Tensor, Tensor, Tensor> rolling_quantile(const Tensor& x_, int64_t window_, double quantile,
                                                    std::optional<int64_t> min_periods, int64_t interpolation) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window_ >= 1, "rolling_quantile: x (..., T, N), window >= 1");
  STD_TORCH_CHECK(quantile >= 0 && quantile <= 1 && interpolation >= 0 && interpolation <= kNearest,
                  "rolling_quantile: quantile in [0, 1], interpolation in [0, 4]");
  const Tensor x = contiguous(x_);
  const auto new_lags = [&] { return new_empty(x, x.sizes(), torch::headeronly::ScalarType::Long); };
  Tensor y = new_empty(x, x.sizes()), low_lag = new_lags(), high_lag = new_lags();
  const Panels panels(x);
  const int64_t window = clamp_window(panels, window_), blocks = (panels.steps + window - 1) / window;
  const auto run = [&]<typename scalar_t, typename Row>() {
    using Places = SortedPlaces<scalar_t, Row>;
    using Quantile = RollingQuantile<scalar_t, Row>;
    const Tensor memory = scratch(x, (x.numel() * int64_t(sizeof(Row)) + 7) / 8);
    const int64_t items = (window + Places::kRows - 1) / Places::kRows;
    launch_grid(x, Grid(panels.batch, panels.assets, blocks * items),
                Places{finite_values<scalar_t>(x, panels), data_ptr<Row>(memory), window, items});
    const Quantile body{finite_values<scalar_t>(x, panels),
                        data_ptr<Row>(memory),
                        data_ptr<scalar_t>(y),
                        data_ptr<int64_t>(low_lag),
                        data_ptr<int64_t>(high_lag),
                        std::max<int64_t>(1, min_periods.value_or(window_)),
                        interpolation,
                        static_cast<int>(window),
                        quantile};
    const Grid grid(panels.batch, panels.assets, blocks);
    launch_with_memory(x, grid.items(), body.bytes(), GridItem<Quantile>{grid, body});
  };
  dispatch("rolling_quantile", x, [&]<typename scalar_t>() {
    window < std::numeric_limits<uint16_t>::max() ? run.template operator()<scalar_t, uint16_t>()
                                                  : run.template operator()<scalar_t, int>();
  });
  return {y, low_lag, high_lag};
}

}  // namespace

COMMODITY_CUDA(rolling_quantile)
