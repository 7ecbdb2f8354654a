// SMA short, SMA long, RSI and Bollinger half-width of prices (..., T, N) in one pass over time: (..., T, N, 4).
//
// Window sums (trailing.h) are of differences from a row that all windows of the block contain. A high level or an
// outlier then costs no precision, so that sums are in the dtype of the panel, in float32 twice as many per vector; and
// a constant has no variance.
#include "technical_indicators.h"

using namespace commodity;

namespace {

// The indicators of kRows rows of a column on a GPU, of a row of a vector of columns on the CPU.
template <typename scalar_t, int kRows, bool wilder>
struct Indicators {
  using Prices = PanelColumns<scalar_t, scalar_t>;
  using Price = typename Prices::Vec;
  using Changes = Strength<scalar_t, scalar_t, kRows, wilder>;
  using Average = typename Changes::Average;
  Changes strength;
  TrailingSums<scalar_t, 1, kRows> short_sums, long_sums;
  TrailingSums<scalar_t, 2, kRows> band;
  Price anchor[3] = {};

  COMMODITY_INLINE Indicators(const Changes& strength, const IndicatorSettings& settings)
      : strength(strength), short_sums(settings.short_window), long_sums(settings.long_window), band(settings.band) {}

  COMMODITY_INLINE void advance(int64_t t, Price (&rows)[kRows][4]) {
    const Prices& prices = strength.prices;
    Price price[kRows];
    COMMODITY_UNROLL
    for (int k = 0; k < kRows; ++k) prices.read(t + k, price[k]);
    prices.prefetch(t + kPrefetchColumnRows);
    average(short_sums, t, price[0], 0, rows);
    average(long_sums, t, price[0], 1, rows);
    strength.advance(t, price, [&](int k, const Price&, const Average& gain, const Average& loss) {
      const Average total = gain + loss, index = total == 0 ? 0 : 100 * gain / total;
      rows[k][2] = index;
    });
    if (band.starts_block(t)) anchor[2] = price[0];
    const auto moments = [&](int64_t r, Price(&terms)[2]) {
      prices.read(r, terms[0]), terms[0] -= anchor[2];
      terms[1] = terms[0] * terms[0];
    };
    band.advance(t, moments, [&](int k, const Price(&sum)[2]) {
      const scalar_t inverse = 1 / scalar_t(band.window);
      const Price mean = sum[0] * inverse, variance = sum[1] * inverse - mean * mean;
      Price half = variance > 0 ? variance : variance * 0;  // 0 or NaN
      Prices::root(half);
      rows[k][3] = 2 * half;
    });
  }

 private:
  COMMODITY_INLINE void average(TrailingSums<scalar_t, 1, kRows>& window, int64_t t, const Price& price, int channel,
                                Price (&rows)[kRows][4]) {
    if (window.starts_block(t)) anchor[channel] = price;
    const auto difference = [&](int64_t r, Price(&terms)[1]) {
      strength.prices.read(r, terms[0]), terms[0] -= anchor[channel];
    };
    window.advance(t, difference, [&](int k, const Price(&sum)[1]) {
      rows[k][channel] = anchor[channel] + sum[0] * (1 / scalar_t(window.window));
    });
  }
};

#if defined(COMMODITY_GPU)
template <typename scalar_t, int kWindows, bool wilder>
struct RowsOfColumn {
  static constexpr int kRows = kWindows;
  WilderStates<scalar_t, kRows, wilder> in;
  scalar_t* y;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    Indicators<scalar_t, kRows, wilder> indicators(in.template strength<scalar_t>(panel, n, first), in.settings);
    scalar_t rows[kRows][4];
    indicators.advance(first, rows);
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (in.prices.has_row(first + k)) write_four(rows[k], y + 4 * in.prices.at(panel, first + k, n));
  }
};

template <bool wilder, typename scalar_t>
void run(const Tensor& x, const Panels& panels, const IndicatorSettings& settings, Tensor& y) {
  with_wilder_states<wilder, scalar_t>(
      x, panels, settings, [&]<int kRows>(const WilderStates<scalar_t, kRows, wilder>& states) {
        launch_windows(x, panels, RowsOfColumn<scalar_t, kRows, wilder>{states, data_ptr<scalar_t>(y)});
      });
}
#else
template <bool wilder, typename scalar_t>
COMMODITY_SIMD void run_vector(const IndicatorSettings& settings, const PanelColumns<scalar_t, scalar_t>& prices,
                               int64_t width, scalar_t* y) {
  const ColumnStarts<scalar_t> start(prices, width, settings.rsi);
  Indicators<scalar_t, 1, wilder> indicators({prices, settings, start.complete_row}, settings);
  for (int64_t t = 0; t < prices.steps; ++t) {
    Vec<scalar_t> rows[1][4];
    indicators.advance(t, rows);
    write_four<scalar_t>(rows[0], y + 4 * t * prices.stride);
  }
}

template <bool wilder, typename scalar_t>
void run(const Tensor& x_, const Panels& panels, const IndicatorSettings& settings, Tensor& y_) {
  constexpr int64_t count = Simd<scalar_t>::count;
  for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
    const scalar_t* x = x_.const_data_ptr<scalar_t>() + panel * panels.size();
    scalar_t* y = y_.mutable_data_ptr<scalar_t>() + 4 * panel * panels.size();
    for (; first + count <= last; first += count)
      run_vector<wilder, scalar_t>(settings, {x + first, panels.steps, panels.assets}, count, y + 4 * first);
    if (first == last) return;
    PaddedColumns<scalar_t, count> prices(panels.steps, panels.assets, last - first);
    PaddedColumns<scalar_t, count, 4> indicators(panels.steps, panels.assets, last - first);
    run_vector<wilder, scalar_t>(settings, {prices.read(x + first), panels.steps, count}, last - first,
                                 indicators.rows.data());
    indicators.write(y + 4 * first);
  });
}
#endif

Tensor technical_indicators(const Tensor& prices_, int64_t short_window, int64_t long_window, int64_t rsi, int64_t band,
                            std::string mode) {
  const Tensor prices = contiguous(prices_);
  std::vector<int64_t> shape(prices.sizes().begin(), prices.sizes().end());
  shape.push_back(4);
  Tensor y = new_output(prices, shape);
  const Panels panels(prices);
  const IndicatorSettings settings("technical_indicators", panels.steps, short_window, long_window, rsi, band);
  dispatch("technical_indicators", prices, [&]<typename scalar_t>() {
    mode == "wilder" ? run<true, scalar_t>(prices, panels, settings, y)
                     : run<false, scalar_t>(prices, panels, settings, y);
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(
    technical_indicators,
    "(Tensor prices, SymInt short=10, SymInt long=30, SymInt rsi=14, SymInt band=20, str mode=\"wilder\") -> Tensor")
