// Gradient of technical_indicators with respect to the prices, in float64.
//
// A forward pass over time recomputes the windows and stores for each row the terms of its gradient. A pass in reverse
// time sums, for each price, the terms of all windows that contain it.
//
// averages: dx_s = sum of g_t / W    half-width: dx_s = sum of 2 g_t (x_s - mean_t) / (W sd_t)
// RSI: dG = 100 g L / (G + L)^2, dL = -100 g G / (G + L)^2; then through the averages to the changes, and from each
// change to its two prices.
#include "trailing.h"

using namespace commodity;

namespace {

using Lane = Vec<double>;
constexpr int64_t kColumns = Simd<double>::count;

struct Settings {
  int64_t short_window, long_window, rsi, band;
  bool wilder;
};

// The gradient terms of a row: those of the windows; of the average gain and loss; the change of the price and the
// factor of the previous averages.
enum { kShort, kLong, kBand, kBandMean, kGain, kLoss, kChange, kKeep, kKinds };
struct RowTerms {
  Lane value[kKinds];
};

// The averages and the band: `present` counts the last consecutive prices, `unchanged` those without a change.
struct Windows {
  TrailingSums<double, 2> band;
  Lane present = {}, unchanged = {}, previous = Lane{} + NAN, anchor = {};

  template <typename Read>
  void add_row(const Settings& settings, int64_t t, const Lane& price, const Lane (&g)[4], const Read& read,
               RowTerms& terms) {
    if (band.starts_block(t)) anchor = price;
    band.advance(t, [&](int64_t r, Lane(&moments)[2]) {
      read(r, moments[0]), moments[0] -= anchor;
      moments[1] = moments[0] * moments[0];
    });
    present = price == price ? present + 1 : 0.0;
    unchanged = price == previous ? unchanged + 1 : 1.0;
    previous = price;
    const double rows = settings.band, short_window = settings.short_window, long_window = settings.long_window;
    terms.value[kShort] = present >= short_window ? g[0] * (1 / short_window) : 0.0;
    terms.value[kLong] = present >= long_window ? g[1] * (1 / long_window) : 0.0;
    const Lane mean = band.sum[0] * (1 / rows), variance = band.sum[1] * (1 / rows) - mean * mean;
    const auto varies = (present >= rows) & (unchanged < rows) & (variance > 0);
    Lane half = varies ? variance : 1.0;
    square_root<double>(half);
    terms.value[kBand] = (varies ? 2 * g[3] : 0.0) / (rows * half);
    terms.value[kBandMean] = varies ? terms.value[kBand] * (anchor + mean) : 0.0;
  }
};

// The averages of gains and losses.
struct Strength {
  TrailingSums<double, 2> change_sums;
  Lane last = Lane{} + NAN, changes = {}, consecutive = {}, gain = {}, loss = {};

  void add_row(const Settings& settings, int64_t t, const Lane& price, const Lane& g, const RowTerms* all_rows,
               RowTerms& terms) {
    const double rows = settings.rsi, weight = 1 / rows;
    update_change(settings, price, terms);
    settings.wilder ? wilder_average(terms, weight) : simple_average(t, all_rows, weight);
    const Lane total = gain + loss, count = settings.wilder ? changes : consecutive;
    const auto defined = (count >= rows) & (total > 0);
    const Lane d_average = (defined ? 100 * weight * g : 0.0) / (defined ? total * total : 1.0);
    terms.value[kGain] = d_average * loss, terms.value[kLoss] = -d_average * gain;
  }

 private:
  void update_change(const Settings& settings, const Lane& price, RowTerms& terms) {
    const double rows = settings.rsi;
    const Lane difference = price - last;
    const auto changed = difference == difference;
    terms.value[kChange] = changed ? difference : 0.0;
    terms.value[kKeep] = (changed & (changes >= rows)) ? 1 - 1 / rows : 1.0;
    changes += changed ? 1.0 : 0.0;
    consecutive = changed ? consecutive + 1 : 0.0;
    last = price == price || !settings.wilder ? price : last;
  }

  void wilder_average(const RowTerms& terms, double weight) {
    const Lane change = terms.value[kChange], keep = terms.value[kKeep];
    gain = keep * gain + (change > 0 ? change : 0.0) * weight;
    loss = keep * loss + (change < 0 ? -change : 0.0) * weight;
  }

  void simple_average(int64_t t, const RowTerms* all_rows, double weight) {
    change_sums.advance(t, [&](int64_t r, Lane(&sums)[2]) {
      const Lane change = all_rows[r].value[kChange];
      sums[0] = change > 0 ? change : 0.0, sums[1] = change < 0 ? -change : 0.0;
    });
    gain = change_sums.sum[0] * weight, loss = change_sums.sum[1] * weight;
  }
};

template <typename scalar_t>
struct Gradient {
  const Settings& settings;
  const Columns<scalar_t, double> prices;
  const scalar_t* grad;
  RowTerms* terms;  // of each row
  Lane base = {};

  void run(scalar_t* dx) {
    for (int64_t n = 0; n < kColumns; ++n) base[n] = first_price(n);
    forward_pass();
    backward_pass(dx);
  }

 private:
  // Prices are relative to the first one.
  double first_price(int64_t n) const {
    for (int64_t t = 0; t < prices.steps; ++t)
      if (std::isfinite(prices.x[t * prices.stride + n])) return prices.x[t * prices.stride + n];
    return 0;
  }

  void read(int64_t t, Lane& price) const { prices.read(t, price), price -= base; }

  // The incoming gradients of row t by indicator; zero where not finite.
  void read(int64_t t, Lane (&g)[4]) const {
    const scalar_t* row = grad + t * prices.stride * 4;
    Lane columns[4];
    for (int k = 0; k < 4; ++k) load<double>(columns[k], row + k * kColumns);
    interleave<double>(columns, g);
    for (Lane& value : g) value = value - value == 0 ? value : 0.0;
  }

  void forward_pass() {
    Windows windows{TrailingSums<double, 2>(settings.band)};
    Strength relative_strength{TrailingSums<double, 2>(settings.rsi, 0.0)};
    for (int64_t t = 0; t < prices.steps; ++t) {
      Lane price, g[4];
      read(t, price), read(t, g), prices.prefetch(t + kPrefetchRows);
      __builtin_prefetch(grad + (t + kPrefetchRows) * prices.stride * 4);
      windows.add_row(settings, t, price, g, [&](int64_t r, Lane& price) { read(r, price); }, terms[t]);
      relative_strength.add_row(settings, t, price, g[2], terms, terms[t]);
    }
  }

  // In reverse time: r counts rows from the end.
  void backward_pass(scalar_t* dx) const {
    TrailingSums<double, 1> short_sum(settings.short_window, 0.0), long_sum(settings.long_window, 0.0);
    TrailingSums<double, 2> band(settings.band, 0.0), simple(settings.rsi, 0.0);
    Lane gain = {}, loss = {}, d_previous = {}, keep = {};
    const RowTerms* end = terms + prices.steps - 1;
    for (int64_t r = 0; r < prices.steps; ++r) {
      const RowTerms& row = end[-r];
      const auto row_terms = [&](int kind) {
        return [end, kind](int64_t r, auto& sums) {
          for (int k = 0; Lane& term : sums) term = end[-r].value[kind + k++];
        };
      };
      short_sum.advance(r, row_terms(kShort)), long_sum.advance(r, row_terms(kLong));
      band.advance(r, row_terms(kBand));
      if (!settings.wilder) simple.advance(r, row_terms(kGain));
      gain = settings.wilder ? row.value[kGain] + keep * gain : simple.sum[0];
      loss = settings.wilder ? row.value[kLoss] + keep * loss : simple.sum[1];
      keep = row.value[kKeep];
      Lane price;
      read(prices.steps - 1 - r, price);
      const Lane d = row.value[kChange] > 0 ? gain : row.value[kChange] < 0 ? -loss : 0.0;
      const Lane window_sum = short_sum.sum[0] + long_sum.sum[0] + price * band.sum[0] - band.sum[1];
      const auto is_present = price == price;
      prices.write(prices.steps - 1 - r, is_present ? window_sum + d - d_previous : 0.0, dx);
      d_previous = (is_present ? 0.0 : d_previous) + d;  // gradient of the last price before the later rows
    }
  }
};

template <typename scalar_t>
COMMODITY_SIMD void gradient(const Settings& settings, const Columns<scalar_t, double>& columns, const scalar_t* grad,
                             RowTerms* terms, scalar_t* dx) {
  Gradient<scalar_t>{settings, columns, grad, terms}.run(dx);
}

template <typename scalar_t>
void gradient(const Settings& settings, const scalar_t* x, const scalar_t* grad, int64_t steps, int64_t stride,
              int64_t width, RowTerms* terms, scalar_t* dx) {
  for (; width >= kColumns; width -= kColumns, x += kColumns, grad += 4 * kColumns, dx += kColumns)
    gradient(settings, {x, steps, stride}, grad, terms, dx);
  if (width == 0) return;
  PaddedColumns<scalar_t, kColumns> prices(steps, stride, width), to(steps, stride, width);
  PaddedColumns<scalar_t, kColumns, 4> grads(steps, stride, width);
  gradient(settings, {prices.read(x), steps, kColumns}, grads.read(grad), terms, to.rows.data());
  to.write(dx);
}

Tensor technical_indicators_backward(const Tensor& prices_, const Tensor& grad_, int64_t short_window,
                                     int64_t long_window, int64_t rsi, int64_t band, std::string mode) {
  STD_TORCH_CHECK(std::min({short_window, long_window, rsi, band}) >= 1,
                  "technical_indicators_backward: windows must be >= 1");
  STD_TORCH_CHECK(grad_.numel() == 4 * prices_.numel() && grad_.scalar_type() == prices_.scalar_type(),
                  "technical_indicators_backward: grad must be (..., T, N, 4) of the dtype of prices");
  const Tensor prices = contiguous(prices_), grad = contiguous(grad_);
  Tensor dx = new_empty(prices, prices.sizes());
  const Panels panels(prices);
  const auto limit = [&](int64_t window) { return limit_window(window, panels.steps); };
  const Settings settings{limit(short_window), limit(long_window), limit(rsi), limit(band), mode == "wilder"};
  THO_DISPATCH_V2(prices.scalar_type(), "technical_indicators_backward", AT_WRAP([&] {
                    const scalar_t* x = prices.const_data_ptr<scalar_t>();
                    const scalar_t* g = grad.const_data_ptr<scalar_t>();
                    scalar_t* dx_data = dx.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t offset = panel * panels.size() + first;
                      AlignedVector<RowTerms> terms(panels.steps);
                      gradient(settings, x + offset, g + 4 * offset, panels.steps, panels.assets, last - first,
                               terms.data(), dx_data + offset);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(technical_indicators_backward,
                   "(Tensor prices, Tensor grad, SymInt short, SymInt long, SymInt rsi, "
                   "SymInt band, str mode) -> Tensor")
