// SMA short, SMA long, RSI and Bollinger half-width of (..., T, N) in one pass over time: (..., T, N, 4).
//
// Sums are of differences against a row that every window of the block holds: neither a high level nor an outlier costs
// digits, so they are kept in the panel's own dtype, twice as many to a vector in float32.
#include "trailing.h"

using namespace commodity;

namespace {

// Wilder's averages: the mean of the first `period` changes, then a_t = a_{t-1} + (change - a_{t-1}) / period. A
// missing price is no change, and the next change is against the last price there was.
template <typename scalar_t>
struct Wilder {
  using Vec = commodity::Vec<scalar_t>;
  const scalar_t period, share = 1 / period;
  Vec last = Vec{} + scalar_t(NAN), seen = {}, gain = {}, loss = {};

  void advance(const Vec& price) {
    const Vec change = price - last;
    const auto changed = change == change;
    const Vec keep = changed & (seen >= period) ? 1 - share : scalar_t(1);
    gain = keep * gain + (change > 0 ? change : 0) * share;
    loss = keep * loss + (change < 0 ? -change : 0) * share;
    seen += changed ? scalar_t(1) : scalar_t(0);
    last = price == price ? price : last;
  }
};

// As many columns as a vector holds.
template <typename scalar_t, bool whole>
struct Indicators {
  using Vec = commodity::Vec<scalar_t>;
  const Columns<scalar_t, scalar_t, whole> prices;
  TrailingSums<scalar_t, 1> shorter, longer;
  TrailingSums<scalar_t, 2> band, changes;
  Wilder<scalar_t> wilder;
  Vec anchor[3], still = {}, previous = Vec{} + scalar_t(NAN);

  Indicators(const Columns<scalar_t, scalar_t, whole>& prices, int64_t brief, int64_t extended, int64_t rsi,
             int64_t band)
      : prices(prices), shorter(brief), longer(extended), band(band), changes(rsi), wilder{scalar_t(rsi)} {}

  void average(TrailingSums<scalar_t, 1>& window, Vec& anchor, int64_t t, const Vec& price, Vec& mean) {
    if (window.starts_block(t)) anchor = price;
    window.advance(t, [&](int64_t r, Vec(&terms)[1]) { prices.read(r, terms[0]), terms[0] -= anchor; });
    mean = anchor + window.sum[0] * (1 / scalar_t(window.window));
  }

  void bollinger(int64_t t, const Vec& price, Vec& half) {
    if (band.starts_block(t)) anchor[2] = price;
    band.advance(t, [&](int64_t r, Vec(&terms)[2]) {
      prices.read(r, terms[0]), terms[0] -= anchor[2];
      terms[1] = terms[0] * terms[0];
    });
    const scalar_t rows = band.window, share = 1 / rows;
    const Vec mean = band.sum[0] * share, variance = band.sum[1] * share - mean * mean;
    still = price == previous ? still + 1 : 1;
    previous = price;
    half = (still < rows) & (variance > 0) ? variance : variance * 0;  // 0, or NaN
    square_root<scalar_t>(half);
    half *= 2;
  }

  template <bool smooth>
  void strength(int64_t t, const Vec& price, Vec& rsi) {
    if constexpr (smooth) {
      wilder.advance(price);
      index(wilder.gain, wilder.loss, rsi);
      rsi = wilder.seen >= wilder.period ? rsi : scalar_t(NAN);
    } else {
      changes.advance(t, [&](int64_t r, Vec(&terms)[2]) {
        Vec now, before = Vec{} + scalar_t(NAN);
        prices.read(r, now);
        if (r > 0) prices.read(r - 1, before);
        const Vec change = now - before;
        terms[0] = change > 0 ? change : change * 0, terms[1] = change < 0 ? -change : change * 0;
      });
      index(changes.sum[0], changes.sum[1], rsi);
    }
  }

  static void index(const Vec& gain, const Vec& loss, Vec& rsi) {
    const Vec total = gain + loss;
    rsi = total == 0 ? 0 : 100 * gain / total;
  }

  template <bool smooth>
  void run(scalar_t* y) {
    for (int64_t t = 0; t < prices.steps; ++t) {
      Vec price, channel[4], rows[4];
      prices.read(t, price), prices.prefetch(t + kPrefetchRows);
      average(shorter, anchor[0], t, price, channel[0]);
      average(longer, anchor[1], t, price, channel[1]);
      strength<smooth>(t, price, channel[2]);
      bollinger(t, price, channel[3]);
      interleave<scalar_t>(channel, rows);
      write(rows, y + 4 * t * prices.stride);
    }
  }

  void write(const Vec (&rows)[4], scalar_t* y) const {
    if constexpr (whole)
      for (const Vec& row : rows) store<scalar_t>(row, y), y += Simd<scalar_t>::count;
    else
      std::memcpy(y, rows, 4 * prices.width * sizeof(scalar_t));
  }
};

struct Settings {
  int64_t brief, extended, rsi, band;
  bool wilder;
};

template <bool whole, typename scalar_t>
void run(const Settings& set, const Columns<scalar_t, scalar_t, whole>& columns, scalar_t* y) {
  Indicators<scalar_t, whole> block(columns, set.brief, set.extended, set.rsi, set.band);
  set.wilder ? block.template run<true>(y) : block.template run<false>(y);
}

template <typename scalar_t>
COMMODITY_SIMD void indicators(const Settings& set, const scalar_t* x, int64_t steps, int64_t stride, int64_t width,
                               scalar_t* y) {
  constexpr int64_t count = Simd<scalar_t>::count;
  for (; width >= count; width -= count, x += count, y += 4 * count)
    run(set, Columns<scalar_t, scalar_t, true>{x, steps, stride, count}, y);
  if (width > 0) run(set, Columns<scalar_t, scalar_t, false>{x, steps, stride, width}, y);
}

Tensor technical_indicators(const Tensor& prices_, int64_t brief, int64_t extended, int64_t rsi, int64_t band,
                            std::string mode) {
  STD_TORCH_CHECK(std::min({brief, extended, rsi, band}) >= 1, "technical_indicators: windows must be >= 1");
  const Tensor prices = contiguous(prices_);
  std::vector<int64_t> shape(prices.sizes().begin(), prices.sizes().end());
  shape.push_back(4);
  Tensor y = on_huge_pages(new_empty(prices, shape));
  const Panels panels(prices);
  const Settings set{brief, extended, rsi, band, mode == "wilder"};
  THO_DISPATCH_V2(prices.scalar_type(), "technical_indicators", AT_WRAP([&] {
                    const scalar_t* from = prices.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first;
                      indicators(set, from + at, panels.steps, panels.assets, last - first, to + 4 * at);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(technical_indicators,
                   "(Tensor prices, SymInt short, SymInt long, SymInt rsi, SymInt band, str mode) -> Tensor")
