// What technical_indicators and its gradient share: their settings, and the average gains and losses of the RSI.
#pragma once
#include "affine.h"
#include "trailing.h"

namespace commodity {
inline namespace COMMODITY_DEVICE {

struct IndicatorSettings {
  int64_t short_window, long_window, rsi, band;

  IndicatorSettings(const char* operation, int64_t steps, int64_t short_window, int64_t long_window, int64_t rsi,
                    int64_t band)
      : short_window(limit_window(short_window, steps)),
        long_window(limit_window(long_window, steps)),
        rsi(limit_window(rsi, steps)),
        band(limit_window(band, steps)) {
    STD_TORCH_CHECK(shortest() >= 1, operation, ": windows must be >= 1");
  }
  int64_t shortest() const { return std::min({short_window, long_window, rsi, band}); }
};

// The first price of a column, and the row of the `rsi`-th change, from which on Wilder's averages are defined.
struct ColumnStart {
  double price;
  int64_t complete_row;
};
template <typename scalar_t>
COMMODITY_INLINE ColumnStart find_start(const scalar_t* x, int64_t steps, int64_t stride, int64_t rsi) {
  double first = NAN;
  int64_t t = 0;
  for (int64_t prices = 0; t < steps; ++t) {
    const double price = read(x + t * stride);
    if (price - price != 0) continue;
    if (prices == 0) first = price;
    if (prices++ == rsi) break;
  }
  return {first, t};
}

// Wilder's averages: the mean of the first 1 / weight changes, then a_t = a_{t-1} + (change - a_{t-1}) weight, as an
// affine map of the averages of gains and losses. The change is NaN where there is none.
template <typename Average, typename Change, typename Complete, typename Weight>
COMMODITY_INLINE Affine<2, Average> wilder_map(const Change& change, const Complete& is_complete, Weight weight) {
  const Average gain = change > 0 ? change : 0, loss = change < 0 ? -change : 0;
  const auto decays = (change == change) & is_complete;
  return {decays ? 1 - weight : Weight(1), {gain * weight, loss * weight}};
}

// As wide as the numbers, so that a comparison of rows selects among these; a float counts to 2^24 only.
template <typename number_t>
using RowNumber = std::conditional_t<sizeof(number_t) == 4, int32_t, int64_t>;

// The average gain and loss of the changes up to each row, or their sums if they are not Wilder's; NaN where there are
// too few changes. Wilder's averages skip a missing price: the next change is relative to the last price before it.
template <typename scalar_t, typename number_t, int kRows, bool wilder>
struct Strength {
  using Prices = PanelColumns<scalar_t, number_t>;
  using Price = typename Prices::Vec;
  using Real = Number<number_t>;
  using Average = typename PanelColumns<scalar_t, Real>::Vec;
  using Rows = typename PanelColumns<scalar_t, RowNumber<Real>>::Vec;
  Prices prices;
  Rows complete_row;
  State<2, Average> averages;  // before the next row, as the last price
  Price last;
  TrailingSums<number_t, 2, kRows> sums;

  COMMODITY_INLINE Strength(const Prices& prices, const IndicatorSettings& settings, const Rows& complete_row,
                            const State<2, Average>& averages = {}, const Price& last = Price{} + number_t(NAN))
      : prices(prices), complete_row(complete_row), averages(averages), last(last), sums(settings.rsi) {}

  // Calls finish(k, change, gain, loss) for kRows rows from row t on, of which it takes the prices.
  template <typename Finish>
  COMMODITY_INLINE void advance(int64_t t, const Price (&price)[kRows], const Finish& finish) {
    if constexpr (wilder) {
      COMMODITY_UNROLL
      for (int k = 0; k < kRows; ++k) {
        const auto row = static_cast<RowNumber<Real>>(t + k);
        const Real weight = 1 / Real(sums.window);
        const Price change = price[k] - last;
        averages = wilder_map<Average>(change, complete_row < row, weight).apply(averages);
        last = price[k] == price[k] ? price[k] : last;
        const Average gain = complete_row <= row ? averages.y[0] : Real(NAN);
        finish(k, change, gain, averages.y[1]);
      }
    } else {
      const auto split = [&](int64_t r, Price(&moves)[2]) {
        Price change;
        change_of_row(r, change);
        moves[0] = change > 0 ? change : change * 0, moves[1] = change < 0 ? -change : change * 0;
      };
      sums.advance(t, split, [&](int k, const Price(&sum)[2]) {
        Price change;
        change_of_row(t + k, change);
        finish(k, change, Average(sum[0]), Average(sum[1]));
      });
    }
  }

 private:
  COMMODITY_INLINE void change_of_row(int64_t t, Price& change) const {
    Price previous = Price{} + number_t(NAN);
    prices.read(t, change);
    if (t > 0) prices.read(t - 1, previous);
    change -= previous;
  }
};

#if defined(COMMODITY_GPU)
template <typename scalar_t>
struct FindStart {
  FiniteValues<scalar_t> prices;
  int64_t rsi;
  ColumnStart* starts;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    starts[panel * prices.assets + n] = find_start(prices.column(panel, n), prices.steps, prices.assets, rsi);
  }
};

// Wilder's averages before every kRows-th row, where the threads of later launches begin: a scan over time.
template <typename scalar_t, int kRows, bool wilder>
struct WilderStates {
  FiniteValues<scalar_t> prices;
  IndicatorSettings settings;
  const ColumnStart* starts;
  State<2>* states;

  COMMODITY_INLINE const ColumnStart& start(int64_t panel, int64_t n) const {
    return starts[panel * prices.assets + n];
  }
  COMMODITY_INLINE State<2>& state(int64_t panel, int64_t t, int64_t n) const {
    return states[(panel * ((prices.steps + kRows - 1) / kRows) + t / kRows) * prices.assets + n];
  }
  template <typename number_t>
  COMMODITY_INLINE PanelColumns<scalar_t, number_t> column(int64_t panel, int64_t n) const {
    return {prices.column(panel, n), prices.steps, prices.assets};
  }
  template <typename number_t>
  COMMODITY_INLINE Strength<scalar_t, number_t, kRows, wilder> strength(int64_t panel, int64_t n, int64_t first) const {
    const auto values = column<number_t>(panel, n);
    if constexpr (!wilder) return {values, settings, 0};
    return {values, settings, start(panel, n).complete_row, state(panel, first, n), price_before(values, first)};
  }
  template <typename number_t>
  static COMMODITY_INLINE number_t price_before(const PanelColumns<scalar_t, number_t>& values, int64_t t) {
    number_t price = NAN;
    const int64_t row = values.row_before(t);
    if (row >= 0) values.read(row, price);
    return price;
  }

  // The scan.
  struct Column {
    int64_t panel, n, complete_row;
  };
  struct Row {
    scalar_t change;
    bool is_complete;
  };
  COMMODITY_INLINE Column column(int64_t panel, int64_t n) const { return {panel, n, start(panel, n).complete_row}; }
  COMMODITY_INLINE Row load(const Column& column, int64_t, int64_t t) const {
    const auto values = this->column<scalar_t>(column.panel, column.n);
    scalar_t change;
    values.read(t, change);
    if (change == change) change -= price_before(values, t);
    return {change, column.complete_row < t};
  }
  COMMODITY_INLINE Affine<2> map(const Column&, const Row& row) const {
    return wilder_map<double>(row.change, row.is_complete, 1.0 / settings.rsi);
  }
  COMMODITY_INLINE State<2> initial(const Column&) const { return {}; }
  COMMODITY_INLINE void write(const Column& column, int64_t, int64_t t, const Row&, const State<2>& previous,
                              const State<2>&) const {
    if (t % kRows == 0) state(column.panel, t, column.n) = previous;
  }
};

// Calls body(states) with the states of a batch of panels, at every eighth row if all windows are that long.
template <bool wilder, typename scalar_t, typename Body>
void with_wilder_states(const Tensor& x, const Panels& panels, const IndicatorSettings& settings, const Body& body) {
  const auto prices = finite_values<scalar_t>(x, panels);
  const Tensor starts = scratch(x, 2 * panels.batch * panels.assets);
  launch_grid(x, Grid(panels.batch, panels.assets, 1),
              FindStart<scalar_t>{prices, settings.rsi, data_ptr<ColumnStart>(starts)});
  dispatch_rows<8>(settings.shortest(), [&]<int kRows>() {
    const int64_t groups = wilder ? (panels.steps + kRows - 1) / kRows : 0;
    const Tensor memory = scratch(x, 2 * panels.batch * groups * panels.assets);
    const WilderStates<scalar_t, kRows, wilder> states{prices, settings, data_ptr<ColumnStart>(starts),
                                                       data_ptr<State<2>>(memory)};
    if constexpr (wilder) run_scan<scalar_t>(x, panels.batch, panels.steps, panels.assets, states);
    body(states);
  });
}
#else
// Of the columns of a vector, of which the panel has `width`.
template <typename number_t>
struct ColumnStarts {
  Vec<number_t> price = Vec<number_t>{} + number_t(NAN);
  Vec<RowNumber<number_t>> complete_row = {};

  template <typename scalar_t>
  ColumnStarts(const PanelColumns<scalar_t, number_t>& prices, int64_t width, int64_t rsi) {
    for (int64_t n = 0; n < width; ++n) {
      const ColumnStart start = find_start(prices.x + n, prices.steps, prices.stride, rsi);
      price[n] = number_t(start.price), complete_row[n] = static_cast<RowNumber<number_t>>(start.complete_row);
    }
  }
};
#endif

}  // namespace COMMODITY_DEVICE
}  // namespace commodity
