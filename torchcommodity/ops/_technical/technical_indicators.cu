// SMA short, SMA long, RSI and Bollinger half-width of (..., T, N) in one pass: (..., T, N, 4). A missing price makes
// NaN of exactly the windows that hold it; sums are of differences against a row that all of them hold.
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
  const State<2>* before;  // null: RSI is over simple sums
  Row<scalar_t>* y;
  int64_t brief, extended, rsi, band;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t chunk) const {
    State<2> averages = before ? before[chunks.at(panel, chunk, n)] : State<2>{};
    for (int64_t first = chunk * kChunk; first < chunks.end(chunk); first += kRows) {
      Row<scalar_t> rows[kRows];
      average(panel, first, n, brief, 0, rows);
      average(panel, first, n, extended, 1, rows);
      before ? smooth(panel, first, n, averages, rows) : simple(panel, first, n, rows);
      bollinger(panel, first, n, rows);
#pragma unroll
      for (int k = 0; k < kRows; ++k)
        if (first + k < prices.steps) y[(panel * prices.steps + first + k) * prices.assets + n] = rows[k];
    }
  }

  // done(k, mean, variance), against a row that all windows hold: a high level costs no digits
  template <typename Done>
  COMMODITY_INLINE void moments(int64_t panel, int64_t first, int64_t n, int64_t window, const Done& done) const {
    const scalar_t anchor = prices(panel, first, n);
    const auto see = [&](Sums<scalar_t, 2>& sums, int64_t t) {
      const scalar_t d = prices(panel, t, n) - anchor;
      sums.term[0] += d, sums.term[1] += d * d;
    };
    for_each_window<kRows, Sums<scalar_t, 2>>(first, window, see, [&](int k, const Sums<scalar_t, 2>& sums) {
      const scalar_t offset = sums.term[0] / window;
      done(k, anchor + offset, sums.term[1] / window - offset * offset);
    });
  }

  COMMODITY_INLINE void average(int64_t panel, int64_t first, int64_t n, int64_t window, int channel,
                                Row<scalar_t> (&rows)[kRows]) const {
    moments(panel, first, n, window, [&](int k, scalar_t mean, scalar_t) { rows[k].channel[channel] = mean; });
  }

  COMMODITY_INLINE void bollinger(int64_t panel, int64_t first, int64_t n, Row<scalar_t> (&rows)[kRows]) const {
    scalar_t previous = prices(panel, first, n);
    int64_t still = 1;
    while (still < band && prices(panel, first - still, n) == previous) ++still;
    moments(panel, first, n, band, [&](int k, scalar_t, scalar_t variance) {
      const scalar_t price = prices(panel, first + k, n);
      if (k > 0) still = price == previous ? still + 1 : 1;
      previous = price;
      rows[k].channel[3] = 2 * std::sqrt(still < band && variance > 0 ? variance : variance * 0);
    });
  }

  COMMODITY_INLINE void smooth(int64_t panel, int64_t first, int64_t n, State<2>& averages,
                               Row<scalar_t> (&rows)[kRows]) const {
    const int64_t ripe = wilder.ripe[panel * prices.assets + n];
    for (int k = 0; k < kRows; ++k) {
      averages = wilder(panel, first + k, n)(averages);
      rows[k].channel[2] = first + k >= ripe ? index(averages.y[0], averages.y[1]) : NAN;
    }
  }

  COMMODITY_INLINE void simple(int64_t panel, int64_t first, int64_t n, Row<scalar_t> (&rows)[kRows]) const {
    const auto see = [&](Sums<scalar_t, 2>& sums, int64_t t) {
      const scalar_t change = prices(panel, t, n) - prices(panel, t - 1, n);
      sums.term[0] += change > 0 ? change : change * 0;
      sums.term[1] += change < 0 ? -change : change * 0;
    };
    for_each_window<kRows, Sums<scalar_t, 2>>(first, rsi, see, [&](int k, const Sums<scalar_t, 2>& sums) {
      rows[k].channel[2] = index(sums.term[0], sums.term[1]);
    });
  }

  static COMMODITY_INLINE scalar_t index(double gain, double loss) {
    const double total = gain + loss;
    return static_cast<scalar_t>(total == 0 ? 0 : 100 * gain / total);
  }
};

Tensor technical_indicators(const Tensor& prices_, int64_t brief, int64_t extended, int64_t rsi, int64_t band,
                            std::string mode) {
  STD_TORCH_CHECK(std::min({brief, extended, rsi, band}) >= 1, "technical_indicators: windows must be >= 1");
  const Tensor x = contiguous(prices_);
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape.push_back(4);
  Tensor y = new_empty(x, shape);
  const Panels panels(x);
  const Tensor ripe = new_empty(x, {panels.batch * panels.assets}, torch::headeronly::ScalarType::Long);
  const Chunks chunks(panels.steps, panels.assets);
  dispatch("technical_indicators", x, [&]<typename scalar_t>() {
    const auto prices = finite_values<scalar_t>(x, panels);
    const Wilder<scalar_t> wilder{prices, data_ptr<int64_t>(ripe), rsi};
    std::optional<Tensor> before;
    if (mode == "wilder") before = wilder.states_before_chunks(x, panels.batch, chunks);
    const State<2>* states = before ? data_ptr<State<2>>(*before) : nullptr;
    dispatch_rows<8>(std::min({brief, extended, rsi, band}), [&]<int kRows>() {
      launch_grid(x, Grid(panels.batch, panels.assets, chunks.chunks),
                  Indicators<scalar_t, kRows>{prices, wilder, chunks, states, data_ptr<Row<scalar_t>>(y), brief,
                                              extended, rsi, band});
    });
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(technical_indicators)
