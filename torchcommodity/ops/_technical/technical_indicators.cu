// SMA short, SMA long, RSI and Bollinger half-width of prices (..., T, N): (..., T, N, 4). A thread computes a chunk of
// rows of one column, kRows windows at a time (device_windows.h).
#include "wilder_device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct alignas(4 * sizeof(scalar_t)) Row {
  scalar_t channel[4];
};

template <typename scalar_t, int kRows>
struct Indicators {
  FiniteValues<scalar_t> prices;
  Wilder<scalar_t> wilder;
  Chunks chunks;
  const State<2>* wilder_states;  // null for RSI over simple sums
  Row<scalar_t>* y;
  int64_t short_window, long_window, rsi, band;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t chunk) const {
    State<2> averages = wilder_states ? wilder_states[chunks.at(panel, chunk, n)] : State<2>{};
    for (int64_t first = chunk * kChunk; first < chunks.end(chunk); first += kRows) {
      Row<scalar_t> rows[kRows];
      average(panel, first, n, short_window, 0, rows);
      average(panel, first, n, long_window, 1, rows);
      wilder_states ? wilder_rsi(panel, first, n, averages, rows) : simple_rsi(panel, first, n, rows);
      bollinger(panel, first, n, rows);
#pragma unroll
      for (int k = 0; k < kRows; ++k)
        if (first + k < prices.steps) y[(panel * prices.steps + first + k) * prices.assets + n] = rows[k];
    }
  }

  // Calls finish(k, mean, variance); deviations from a row in all windows preserve precision at high levels.
  template <typename Finish>
  COMMODITY_INLINE void moments(int64_t panel, int64_t first, int64_t n, int64_t window, const Finish& finish) const {
    const scalar_t anchor = prices(panel, first, n);
    const auto visit = [&](Sums<scalar_t, 2>& sums, int64_t t) {
      const scalar_t d = prices(panel, t, n) - anchor;
      sums.term[0] += d, sums.term[1] += d * d;
    };
    for_each_window<kRows, Sums<scalar_t, 2>>(first, window, visit, [&](int k, const Sums<scalar_t, 2>& sums) {
      const scalar_t offset = sums.term[0] / window;
      finish(k, anchor + offset, sums.term[1] / window - offset * offset);
    });
  }

  COMMODITY_INLINE void average(int64_t panel, int64_t first, int64_t n, int64_t window, int channel,
                                Row<scalar_t> (&rows)[kRows]) const {
    moments(panel, first, n, window, [&](int k, scalar_t mean, scalar_t) { rows[k].channel[channel] = mean; });
  }

  COMMODITY_INLINE void bollinger(int64_t panel, int64_t first, int64_t n, Row<scalar_t> (&rows)[kRows]) const {
    scalar_t previous = prices(panel, first, n);
    int64_t unchanged = 1;
    while (unchanged < band && prices(panel, first - unchanged, n) == previous) ++unchanged;
    moments(panel, first, n, band, [&](int k, scalar_t, scalar_t variance) {
      const scalar_t price = prices(panel, first + k, n);
      if (k > 0) unchanged = price == previous ? unchanged + 1 : 1;
      previous = price;
      rows[k].channel[3] = 2 * std::sqrt(unchanged < band && variance > 0 ? variance : variance * 0);
    });
  }

  COMMODITY_INLINE void wilder_rsi(int64_t panel, int64_t first, int64_t n, State<2>& averages,
                                   Row<scalar_t> (&rows)[kRows]) const {
    const int64_t complete_row = wilder.complete_row[panel * prices.assets + n];
    for (int k = 0; k < kRows; ++k) {
      averages = wilder(panel, first + k, n)(averages);
      rows[k].channel[2] = first + k >= complete_row ? index(averages.y[0], averages.y[1]) : NAN;
    }
  }

  COMMODITY_INLINE void simple_rsi(int64_t panel, int64_t first, int64_t n, Row<scalar_t> (&rows)[kRows]) const {
    const auto visit = [&](Sums<scalar_t, 2>& sums, int64_t t) {
      const scalar_t change = prices(panel, t, n) - prices(panel, t - 1, n);
      sums.term[0] += change > 0 ? change : change * 0;
      sums.term[1] += change < 0 ? -change : change * 0;
    };
    for_each_window<kRows, Sums<scalar_t, 2>>(first, rsi, visit, [&](int k, const Sums<scalar_t, 2>& sums) {
      rows[k].channel[2] = index(sums.term[0], sums.term[1]);
    });
  }

  static COMMODITY_INLINE scalar_t index(double gain, double loss) {
    const double total = gain + loss;
    return static_cast<scalar_t>(total == 0 ? 0 : 100 * gain / total);
  }
};

Tensor technical_indicators(const Tensor& prices_, int64_t short_window, int64_t long_window, int64_t rsi, int64_t band,
                            std::string mode) {
  STD_TORCH_CHECK(std::min({short_window, long_window, rsi, band}) >= 1, "technical_indicators: windows must be >= 1");
  const Tensor x = contiguous(prices_);
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape.push_back(4);
  Tensor y = new_empty(x, shape);
  const Panels panels(x);
  for (int64_t* window : {&short_window, &long_window, &rsi, &band}) *window = limit_window(*window, panels.steps);
  const Tensor complete_row = new_empty(x, {panels.batch * panels.assets}, torch::headeronly::ScalarType::Long);
  const Chunks chunks(panels.steps, panels.assets);
  dispatch("technical_indicators", x, [&]<typename scalar_t>() {
    const auto prices = finite_values<scalar_t>(x, panels);
    const Wilder<scalar_t> wilder{prices, data_ptr<int64_t>(complete_row), rsi};
    std::optional<Tensor> state_memory;
    if (mode == "wilder") state_memory = wilder.states_before_chunks(x, panels.batch, chunks);
    const State<2>* states = state_memory ? data_ptr<State<2>>(*state_memory) : nullptr;
    dispatch_rows<8>(std::min({short_window, long_window, rsi, band}), [&]<int kRows>() {
      launch_grid(x, Grid(panels.batch, panels.assets, chunks.chunks),
                  Indicators<scalar_t, kRows>{prices, wilder, chunks, states, data_ptr<Row<scalar_t>>(y), short_window,
                                              long_window, rsi, band});
    });
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(technical_indicators)
