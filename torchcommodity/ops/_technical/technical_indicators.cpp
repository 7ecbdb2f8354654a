// SMA short, SMA long, RSI and Bollinger half-width of prices (..., T, N) in one pass over time: (..., T, N, 4).
//
// Window sums (trailing.h) are of differences from a row that all windows of the block contain. A high level or an
// outlier then costs no precision, so that sums are in the dtype of the panel, in float32 twice as many per vector.
#include "trailing.h"

using namespace commodity;

namespace {

// Wilder's averages: the mean of the first `period` changes, then a_t = a_{t-1} + (change - a_{t-1}) / period. A
// missing price is skipped: the next change is relative to the last price before it.
template <typename scalar_t>
struct Wilder {
  using Vec = commodity::Vec<scalar_t>;
  const scalar_t period, weight = 1 / period;
  Vec last = Vec{} + scalar_t(NAN), count = {}, gain = {}, loss = {};

  void advance(const Vec& price) {
    const Vec change = price - last;
    const auto changed = change == change;
    const Vec keep = (changed & (count >= period)) ? 1 - weight : scalar_t(1);
    gain = keep * gain + (change > 0 ? change : 0) * weight;
    loss = keep * loss + (change < 0 ? -change : 0) * weight;
    count += changed ? scalar_t(1) : scalar_t(0);
    last = price == price ? price : last;
  }
};

// The indicators of one vector of columns.
template <typename scalar_t>
struct Indicators {
  using Vec = commodity::Vec<scalar_t>;
  const Columns<scalar_t, scalar_t> prices;
  TrailingSums<scalar_t, 1> short_sums, long_sums;
  TrailingSums<scalar_t, 2> band, change_sums;
  Wilder<scalar_t> wilder;
  Vec anchor[3], unchanged = {}, previous = Vec{} + scalar_t(NAN);

  Indicators(const Columns<scalar_t, scalar_t>& prices, int64_t short_window, int64_t long_window, int64_t rsi,
             int64_t band)
      : prices(prices),
        short_sums(short_window),
        long_sums(long_window),
        band(band),
        change_sums(rsi),
        wilder{scalar_t(rsi)} {}

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
    const scalar_t rows = band.window, inverse = 1 / rows;
    const Vec mean = band.sum[0] * inverse, variance = band.sum[1] * inverse - mean * mean;
    unchanged = price == previous ? unchanged + 1 : 1;
    previous = price;
    half = ((unchanged < rows) & (variance > 0)) ? variance : variance * 0;  // 0 or NaN
    square_root<scalar_t>(half);
    half *= 2;
  }

  template <bool wilder_mode>
  void relative_strength(int64_t t, const Vec& price, Vec& rsi) {
    if constexpr (wilder_mode) {
      wilder.advance(price);
      index(wilder.gain, wilder.loss, rsi);
      rsi = wilder.count >= wilder.period ? rsi : scalar_t(NAN);
    } else {
      change_sums.advance(t, [&](int64_t r, Vec(&terms)[2]) {
        Vec current, previous_price = Vec{} + scalar_t(NAN);
        prices.read(r, current);
        if (r > 0) prices.read(r - 1, previous_price);
        const Vec change = current - previous_price;
        terms[0] = change > 0 ? change : change * 0, terms[1] = change < 0 ? -change : change * 0;
      });
      index(change_sums.sum[0], change_sums.sum[1], rsi);
    }
  }

  static void index(const Vec& gain, const Vec& loss, Vec& rsi) {
    const Vec total = gain + loss;
    rsi = total == 0 ? 0 : 100 * gain / total;
  }

  template <bool wilder_mode>
  void run(scalar_t* y) {
    for (int64_t t = 0; t < prices.steps; ++t) {
      Vec price, channel[4], rows[4];
      prices.read(t, price), prices.prefetch(t + kPrefetchRows);
      average(short_sums, anchor[0], t, price, channel[0]);
      average(long_sums, anchor[1], t, price, channel[1]);
      relative_strength<wilder_mode>(t, price, channel[2]);
      bollinger(t, price, channel[3]);
      interleave<scalar_t>(channel, rows);
      for (int k = 0; k < 4; ++k) store<scalar_t>(rows[k], y + 4 * t * prices.stride + k * Simd<scalar_t>::count);
    }
  }
};

struct Settings {
  int64_t short_window, long_window, rsi, band;
  bool wilder;
};

template <typename scalar_t>
COMMODITY_SIMD void run(const Settings& settings, const Columns<scalar_t, scalar_t>& columns, scalar_t* y) {
  Indicators<scalar_t> block(columns, settings.short_window, settings.long_window, settings.rsi, settings.band);
  settings.wilder ? block.template run<true>(y) : block.template run<false>(y);
}

template <typename scalar_t>
void run_block(const Settings& settings, const scalar_t* x, int64_t steps, int64_t stride, int64_t width, scalar_t* y) {
  constexpr int count = Simd<scalar_t>::count;
  for (; width >= count; width -= count, x += count, y += 4 * count)
    run(settings, Columns<scalar_t, scalar_t>{x, steps, stride}, y);
  if (width == 0) return;
  PaddedColumns<scalar_t, count> prices(steps, stride, width);
  PaddedColumns<scalar_t, count, 4> indicators(steps, stride, width);
  run(settings, Columns<scalar_t, scalar_t>{prices.read(x), steps, count}, indicators.rows.data());
  indicators.write(y);
}

Tensor technical_indicators(const Tensor& prices_, int64_t short_window, int64_t long_window, int64_t rsi, int64_t band,
                            std::string mode) {
  STD_TORCH_CHECK(std::min({short_window, long_window, rsi, band}) >= 1, "technical_indicators: windows must be >= 1");
  const Tensor prices = contiguous(prices_);
  std::vector<int64_t> shape(prices.sizes().begin(), prices.sizes().end());
  shape.push_back(4);
  Tensor y = on_huge_pages(new_empty(prices, shape));
  const Panels panels(prices);
  const auto limit = [&](int64_t window) { return limit_window(window, panels.steps); };
  const Settings settings{limit(short_window), limit(long_window), limit(rsi), limit(band), mode == "wilder"};
  THO_DISPATCH_V2(prices.scalar_type(), "technical_indicators", AT_WRAP([&] {
                    const scalar_t* x_data = prices.const_data_ptr<scalar_t>();
                    scalar_t* y_data = y.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t offset = panel * panels.size() + first;
                      run_block(settings, x_data + offset, panels.steps, panels.assets, last - first,
                                y_data + 4 * offset);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(
    technical_indicators,
    "(Tensor prices, SymInt short=10, SymInt long=30, SymInt rsi=14, SymInt band=20, str mode=\"wilder\") -> Tensor")
