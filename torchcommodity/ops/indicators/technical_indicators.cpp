// SMA short, SMA long, RSI and Bollinger half-width of (..., T, N) in one pass over time: (..., T, N, 4).
//
// Sums are of differences against a row that every window of the block holds: neither a high level nor an outlier costs
// digits, so they are kept in the panel's own dtype, twice as many to a vector in float32.
#include "window.h"

using namespace commodity;

namespace {

// Wilder's averages: the mean of the first `period` changes, then a_t = a_{t-1} + (change - a_{t-1}) / period. A
// missing price is no change, and the next change is against the last price there was.
template <typename scalar_t>
struct Wilder {
  const scalar_t period;
  Row<scalar_t> last, seen = {}, gain = {}, loss = {};

  explicit Wilder(int64_t period) : period(period) { std::fill_n(last, kBlock, scalar_t(NAN)); }

  void advance(int64_t t, const Prices<scalar_t>& prices) {
    const scalar_t share = 1 / period;
    for (int64_t n = 0; n < prices.width; ++n) {
      const scalar_t price = prices(t, n), change = price - last[n];
      const bool changed = change == change;
      const scalar_t keep = changed & (seen[n] >= period) ? 1 - share : 1;
      gain[n] = keep * gain[n] + (change > 0 ? change : 0) * share;
      loss[n] = keep * loss[n] + (change < 0 ? -change : 0) * share;
      seen[n] += changed ? 1 : 0;
      last[n] = price == price ? price : last[n];
    }
  }
};

template <typename scalar_t>
struct Indicators {
  const Prices<scalar_t> prices;
  Window<scalar_t, 1> shorter, longer;
  Window<scalar_t, 2> band, changes;
  Wilder<scalar_t> wilder;
  Row<scalar_t> anchor[3], still = {}, previous, channel[4];

  Indicators(Prices<scalar_t> prices, int64_t brief, int64_t extended, int64_t rsi, int64_t band, bool wilder)
      : prices(prices), shorter(brief), longer(extended), band(band), changes(wilder ? 1 : rsi), wilder(rsi) {
    std::fill_n(previous, kBlock, scalar_t(NAN));
  }

  void average(Window<scalar_t, 1>& window, Row<scalar_t>& anchor, int64_t t, scalar_t* to) {
    shift(window.window, anchor, t);
    window.advance(t, prices.width, [&](int, int64_t r, int64_t n) { return prices(r, n) - anchor[n]; });
    const scalar_t share = scalar_t(1) / window.window;
    for (int64_t n = 0; n < prices.width; ++n) to[n] = anchor[n] + window.sum[0][n] * share;
  }

  void shift(int64_t window, Row<scalar_t>& anchor, int64_t t) {
    if (t % window == 0)
      for (int64_t n = 0; n < prices.width; ++n) anchor[n] = prices(t, n);
  }

  void bollinger(int64_t t, scalar_t* to) {
    const Row<scalar_t>& base = anchor[2];
    shift(band.window, anchor[2], t);
    band.advance(t, prices.width, [&](int k, int64_t r, int64_t n) {
      const scalar_t d = prices(r, n) - base[n];
      return k ? d * d : d;
    });
    const scalar_t share = scalar_t(1) / band.window, rows = band.window;
    for (int64_t n = 0; n < prices.width; ++n) {
      const scalar_t price = prices(t, n), mean = band.sum[0][n] * share;
      const scalar_t variance = band.sum[1][n] * share - mean * mean;
      still[n] = price == previous[n] ? still[n] + 1 : 1;
      previous[n] = price;
      const scalar_t flat = variance * 0;  // 0, or NaN
      to[n] = 2 * std::sqrt((still[n] < rows) & (variance > 0) ? variance : flat);
    }
  }

  void strength(int64_t t, bool smooth, scalar_t* to) {
    if (smooth) {
      wilder.advance(t, prices);
      for (int64_t n = 0; n < prices.width; ++n) {
        const scalar_t rsi = index(wilder.gain[n], wilder.loss[n]);
        to[n] = wilder.seen[n] >= wilder.period ? rsi : scalar_t(NAN);
      }
      return;
    }
    changes.advance(t, prices.width, [&](int k, int64_t r, int64_t n) {
      const scalar_t change = r > 0 ? prices(r, n) - prices(r - 1, n) : scalar_t(NAN), moved = k ? -change : change;
      return moved > 0 ? moved : change * 0;
    });
    for (int64_t n = 0; n < prices.width; ++n) to[n] = index(changes.sum[0][n], changes.sum[1][n]);
  }

  static scalar_t index(scalar_t gain, scalar_t loss) {
    const scalar_t total = gain + loss;
    return total == 0 ? 0 : 100 * gain / total;
  }

  void run(int64_t steps, bool smooth, scalar_t* y) {
    for (int64_t t = 0; t < steps; ++t, y += 4 * prices.stride) {
      average(shorter, anchor[0], t, channel[0]);
      average(longer, anchor[1], t, channel[1]);
      strength(t, smooth, channel[2]);
      bollinger(t, channel[3]);
      for (int64_t n = 0; n < prices.width; ++n)
        for (int k = 0; k < 4; ++k) y[4 * n + k] = channel[k][n];
    }
  }
};

COMMODITY_SIMD void run(Indicators<float>& block, int64_t steps, bool wilder, float* y) { block.run(steps, wilder, y); }
COMMODITY_SIMD void run(Indicators<double>& block, int64_t steps, bool wilder, double* y) {
  block.run(steps, wilder, y);
}

Tensor technical_indicators(const Tensor& prices_, int64_t brief, int64_t extended, int64_t rsi, int64_t band,
                            std::string mode) {
  STD_TORCH_CHECK(std::min({brief, extended, rsi, band}) >= 1, "technical_indicators: windows must be >= 1");
  const Tensor prices = contiguous(prices_);
  std::vector<int64_t> shape(prices.sizes().begin(), prices.sizes().end());
  shape.push_back(4);
  Tensor y = on_huge_pages(new_empty(prices, shape));
  const Panels panels(prices);
  const bool wilder = mode == "wilder";
  THO_DISPATCH_V2(prices.scalar_type(), "technical_indicators", AT_WRAP([&] {
                    const scalar_t* from = prices.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first;
                      Indicators<scalar_t> block({from + at, panels.assets, last - first}, brief, extended, rsi, band,
                                                 wilder);
                      run(block, panels.steps, wilder, to + 4 * at);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(technical_indicators,
                   "(Tensor prices, SymInt short, SymInt long, SymInt rsi, SymInt band, str mode) -> Tensor")
