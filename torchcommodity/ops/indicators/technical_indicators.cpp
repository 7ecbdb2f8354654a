// SMA short, SMA long, RSI and Bollinger half-width of (..., T, N) in one pass over time: (..., T, N, 4).
//
// Time is cut into blocks of a window's length. A window that starts in one block ends in the next, so its sum is a
// suffix of the first plus a prefix of the second: nothing is subtracted, a spike leaves with its row, and the bits
// depend on the rows of the window alone. A missing price makes NaN of exactly the sums that hold it.
#include "native.h"

using namespace commodity;

namespace {

using Row = double[kBlock];

// A block of columns; a price that is not finite, or before the first row, reads as NaN.
template <typename scalar_t>
struct Prices {
  const scalar_t* x;
  int64_t stride, width;

  double operator()(int64_t t, int64_t n) const {
    const double price = x[t * stride + n];
    return price + (price - price);  // infinity - infinity is NaN
  }
};

// Sums of `kTerms` terms over the last `window` rows.
template <int kTerms>
struct Window {
  const int64_t window;
  Row sum[kTerms] = {};
  std::vector<Row> suffix[kTerms];

  explicit Window(int64_t window) : window(window) {
    for (auto& rows : suffix) rows = std::vector<Row>(window + 1);
  }

  // term(k, row, n) may know the first row of the block that t is in: every window that ends in it holds that row.
  template <typename Term>
  void advance(int64_t t, int64_t width, const Term& term) {
    if (t % window == 0) turn(t, width, term);
    const int64_t next = t % window + 1;
    for (int k = 0; k < kTerms; ++k) {
      double *prefix = this->prefix[k], *total = sum[k];
      const double* before = suffix[k][next];
      for (int64_t n = 0; n < width; ++n) {
        prefix[n] += term(k, t, n);
        total[n] = prefix[n] + before[n];
      }
    }
  }

 private:
  Row prefix[kTerms];

  template <typename Term>
  void turn(int64_t t, int64_t width, const Term& term) {
    for (int k = 0; k < kTerms; ++k) {
      std::fill_n(prefix[k], kBlock, 0.0);
      for (int64_t r = window - 1; r > 0; --r) {
        double* to = suffix[k][r];
        const double* after = suffix[k][r + 1];
        if (t == 0)
          std::fill_n(to, kBlock, NAN);
        else
          for (int64_t n = 0; n < width; ++n) to[n] = after[n] + term(k, t - window + r, n);
      }
    }
  }
};

// Wilder's averages: the mean of the first `period` changes, then a_t = a_{t-1} + (change - a_{t-1}) / period. A
// missing price is no change, and the next change is against the last price there was.
struct Wilder {
  const double period;
  Row last, seen = {}, gain = {}, loss = {};

  explicit Wilder(int64_t period) : period(period) { std::fill_n(last, kBlock, NAN); }

  template <typename scalar_t>
  void advance(int64_t t, const Prices<scalar_t>& prices) {
    const double share = 1 / period;
    for (int64_t n = 0; n < prices.width; ++n) {
      const double price = prices(t, n), change = price - last[n];
      const bool changed = change == change;
      const double keep = changed & (seen[n] >= period) ? 1 - share : 1;
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
  Window<1> shorter, longer;
  Window<2> band, changes;
  Wilder wilder;
  Row anchor[3], still = {}, previous;
  scalar_t channel[4][kBlock];

  Indicators(Prices<scalar_t> prices, int64_t brief, int64_t extended, int64_t rsi, int64_t band, bool wilder)
      : prices(prices), shorter(brief), longer(extended), band(band), changes(wilder ? 1 : rsi), wilder(rsi) {
    std::fill_n(previous, kBlock, NAN);
  }

  void average(Window<1>& window, Row& anchor, int64_t t, scalar_t* to) {
    shift(window.window, anchor, t);
    window.advance(t, prices.width, [&](int, int64_t r, int64_t n) { return prices(r, n) - anchor[n]; });
    const double share = 1.0 / window.window;
    for (int64_t n = 0; n < prices.width; ++n) to[n] = anchor[n] + window.sum[0][n] * share;
  }

  void shift(int64_t window, Row& anchor, int64_t t) {
    if (t % window == 0)
      for (int64_t n = 0; n < prices.width; ++n) anchor[n] = prices(t, n);
  }

  void bollinger(int64_t t, scalar_t* to) {
    const Row& base = anchor[2];
    shift(band.window, anchor[2], t);
    band.advance(t, prices.width, [&](int k, int64_t r, int64_t n) {
      const double d = prices(r, n) - base[n];
      return k ? d * d : d;
    });
    const double share = 1.0 / band.window, rows = band.window;
    for (int64_t n = 0; n < prices.width; ++n) {
      const double price = prices(t, n), mean = band.sum[0][n] * share;
      const double variance = band.sum[1][n] * share - mean * mean;
      still[n] = price == previous[n] ? still[n] + 1 : 1;
      previous[n] = price;
      const double flat = variance * 0;  // 0, or NaN
      to[n] = 2 * std::sqrt(static_cast<scalar_t>((still[n] < rows) & (variance > 0) ? variance : flat));
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
      const double change = r > 0 ? prices(r, n) - prices(r - 1, n) : NAN, moved = k ? -change : change;
      return moved > 0 ? moved : change * 0;
    });
    for (int64_t n = 0; n < prices.width; ++n) to[n] = index(changes.sum[0][n], changes.sum[1][n]);
  }

  static scalar_t index(double gain, double loss) {
    const double total = gain + loss;
    return static_cast<scalar_t>(total == 0 ? 0 : 100 * gain / total);
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
