// Gradient of technical_indicators with respect to the prices, summed in float64.
//
// A pass over time recomputes the windows and stores for each row the terms of its gradient. A pass in reverse time
// sums, for each price, the terms of all windows that contain it.
//
// averages: dx_s = sum of g_t / W    half-width: dx_s = sum of 2 g_t (x_s - mean_t) / (W sd_t)
// RSI: dG = 100 g L / (G + L)^2, dL = -100 g G / (G + L)^2; then through the averages to the changes, and from each
// change to its two prices.
#include "technical_indicators.h"

using namespace commodity;

namespace {

// The terms of a row: the weight of the band, and its mean relative to the price; those of the averages; of the average
// gain and loss; and the change of the price, of which the reverse pass makes its gradient.
enum Term { kBand, kBandMean, kShort, kLong, kGain, kLoss, kChange, kTerms };

// On the CPU those of a row side by side, in float64; on a GPU a plane for each, in the dtype of the prices.
template <typename Value>
struct RowTerms {
  Value* first;
  int64_t from_term_to_term;
  int steps, from_row_to_row;

  COMMODITY_INLINE Value& at(Term term, int row) const {
    return first[term * from_term_to_term + int64_t(row) * from_row_to_row];
  }
  template <typename Lane>
  COMMODITY_INLINE void get(Term term, int64_t t, Lane& to) const {
    const int row = static_cast<int>(t);
    to = at(term, kHasRowsBeyond && row >= steps ? steps - 1 : row);
  }
  template <typename Lane>
  COMMODITY_INLINE void set(Term term, int64_t t, const Lane& x) const {
    if (!kHasRowsBeyond || t < steps) at(term, static_cast<int>(t)) = Value(x);
  }
  COMMODITY_INLINE RowTerms reversed() const {
    return {&at(Term(0), steps - 1), from_term_to_term, steps, -from_row_to_row};
  }
  static constexpr bool kHasRowsBeyond = std::is_arithmetic_v<Value>;  // the last thread of a GPU may have some
};

// A column on a GPU, a vector of columns on the CPU. Rows of reversed() are numbered from the last one.
template <typename scalar_t, int kRows, bool wilder>
struct Gradient {
  using Prices = PanelColumns<scalar_t, double>;
  using Lane = typename Prices::Vec;
  using Count = std::conditional_t<std::is_arithmetic_v<Lane>, int, Lane>;
  using Value = std::conditional_t<std::is_arithmetic_v<Lane>, scalar_t, Lane>;
  IndicatorSettings settings;
  Prices prices;
  RowTerms<Value> terms;
  Lane base;  // the first price, which the sums are relative to
  typename PanelColumns<scalar_t, int64_t>::Vec complete_row;

  COMMODITY_INLINE Gradient reversed() const {
    return {settings, prices.reversed(), terms.reversed(), base, complete_row};
  }

  // The terms of the rows from `first` to before `last`.
  COMMODITY_INLINE void compute_terms(int64_t first, int64_t last, const FourColumns<scalar_t, double>& grad,
                                      Strength<scalar_t, double, kRows, wilder> strength) const {
    const double short_window = double(settings.short_window), long_window = double(settings.long_window);
    const double rows = double(settings.band), rsi_scale = 100 / (wilder ? double(settings.rsi) : 1);
    TrailingSums<double, 2, kRows> band(settings.band);
    Lane anchor = {};
    Count present = {};  // the number of consecutive prices
    const int64_t longest = settings.short_window > settings.long_window ? settings.short_window : settings.long_window;
    for (int64_t t = first > longest ? first - longest : 0; t < first; ++t) {
      Lane price;
      prices.read(t, price);
      present = price == price ? present + 1 : Count{};
    }
    for (int64_t t = first; t < last; t += kRows) {
      Lane price[kRows], g[kRows][4];
      prices.prefetch(t + kPrefetchColumnRows), grad.prefetch(t + kPrefetchColumnRows);
      COMMODITY_UNROLL
      for (int k = 0; k < kRows; ++k) {
        grad.read(t + k, g[k]);
        for (Lane& value : g[k]) value = value - value == 0 ? value : 0.0;
        prices.read(t + k, price[k]);
        present = price[k] == price[k] ? present + 1 : Count{};
        terms.set(kShort, t + k, present >= short_window ? g[k][0] * (1 / short_window) : 0.0);
        terms.set(kLong, t + k, present >= long_window ? g[k][1] * (1 / long_window) : 0.0);
      }
      if (band.starts_block(t)) anchor = price[0];
      const auto moments = [&](int64_t r, Lane(&to)[2]) {
        prices.read(r, to[0]), to[0] -= anchor;
        to[1] = to[0] * to[0];
      };
      band.advance(t, moments, [&](int k, const Lane(&sum)[2]) {
        const Lane mean = sum[0] * (1 / rows), variance = sum[1] * (1 / rows) - mean * mean;
        const auto varies = variance > 0;
        Lane root = variance;
        Prices::root(root);
        const Lane weight = varies ? 2 * g[k][3] / (rows * root) : 0.0;
        terms.set(kBand, t + k, weight);
        terms.set(kBandMean, t + k, varies ? anchor - price[k] + mean : 0.0);
      });
      strength.advance(t, price, [&](int k, const Lane& change, const Lane& gain, const Lane& loss) {
        const Lane total = gain + loss;
        const auto varies = total > 0;
        const Lane d_average = rsi_scale * g[k][2] / (total * total);
        terms.set(kGain, t + k, varies ? d_average * loss : 0.0);
        terms.set(kLoss, t + k, varies ? -d_average * gain : 0.0);
        terms.set(kChange, t + k, change);
      });
    }
  }

  // Of reversed(): row r of Wilder's averages as a map of the gradients of the average gain and loss.
  COMMODITY_INLINE Affine<2, Lane> map_adjoint(int64_t r, const Lane& later_price) const {
    Lane gain, loss;
    terms.get(kGain, r, gain), terms.get(kLoss, r, loss);
    const auto decays = (later_price == later_price) & (complete_row < prices.steps - r);
    return {decays ? 1 - 1 / double(settings.rsi) : 1.0, {gain, loss}};
  }
  COMMODITY_INLINE void set_change_gradient(int64_t r, const Lane& gain, const Lane& loss) const {
    Lane change;
    terms.get(kChange, r, change);
    terms.set(kChange, r, change > 0 ? gain : change < 0 ? -loss : 0.0);
  }
  COMMODITY_INLINE void sum_changes(int64_t r, TrailingSums<double, 2, kRows>& sums) const {
    sums.advance(r, terms_of<2>(kGain),
                 [&](int k, const Lane(&sum)[2]) { set_change_gradient(r + k, sum[0], sum[1]); });
  }
  // The function that reads `count` terms of a row.
  template <int count>
  COMMODITY_INLINE auto terms_of(Term first) const {
    return [this, first](int64_t r, Lane(&to)[count]) {
      for (int k = 0; k < count; ++k) terms.get(Term(first + k), r, to[k]);
    };
  }
};

// The gradients of the prices, in reverse time.
template <typename Gradient, int kRows>
struct PriceGradients {
  using Lane = typename Gradient::Lane;
  Gradient in;
  TrailingSums<double, 1, kRows> short_sums, long_sums;
  TrailingSums<double, 2, kRows> band;
  Lane d_last;  // gradient of the last price before the later rows

  COMMODITY_INLINE PriceGradients(const Gradient& in, const Lane& d_last)
      : in(in),
        short_sums(in.settings.short_window, 0.0),
        long_sums(in.settings.long_window, 0.0),
        band(in.settings.band, 0.0),
        d_last(d_last) {}

  COMMODITY_INLINE void advance(int64_t r, const Lane (&price)[kRows], Lane (&dx)[kRows]) {
    short_sums.advance(r, in.template terms_of<1>(kShort), [&](int k, const Lane(&sum)[1]) { dx[k] = sum[0]; });
    long_sums.advance(r, in.template terms_of<1>(kLong), [&](int k, const Lane(&sum)[1]) { dx[k] += sum[0]; });
    const auto band_terms = [&](int64_t row, Lane(&to)[2]) {
      Lane price_of_row;
      in.prices.read(row, price_of_row), in.terms.get(kBand, row, to[0]), in.terms.get(kBandMean, row, to[1]);
      to[1] = price_of_row == price_of_row ? to[0] * (price_of_row - in.base + to[1]) : 0.0;
    };
    band.advance(r, band_terms, [&](int k, const Lane(&sum)[2]) {
      Lane d;
      in.terms.get(kChange, r + k, d);
      const Lane windows = dx[k] + (price[k] - in.base) * sum[0] - sum[1];
      const auto is_present = price[k] == price[k];
      dx[k] = is_present ? windows + d - d_last : 0.0;
      d_last = (is_present ? 0.0 : d_last) + d;
    });
  }
};

#if defined(COMMODITY_GPU)
enum Pass { kComputeTerms, kSumChanges, kSumTerms };

template <typename scalar_t, int kRows, bool wilder>
struct Inputs {
  WilderStates<scalar_t, kRows, wilder> states;
  const scalar_t* grad;
  scalar_t* terms;
  int64_t plane;
  scalar_t* dx;

  COMMODITY_INLINE Gradient<scalar_t, kRows, wilder> column(int64_t panel, int64_t n) const {
    const int64_t at = states.prices.at(panel, 0, n);
    const auto prices = states.template column<double>(panel, n);
    const ColumnStart& start = states.start(panel, n);
    return {states.settings, prices, {terms + at, plane, prices.steps, prices.stride}, start.price, start.complete_row};
  }

  // Wilder's averages transposed.
  COMMODITY_INLINE Affine<2> operator()(int64_t panel, int64_t r, int64_t n) const {
    const auto reversed = column(panel, n).reversed();
    double later = NAN;
    if (r > 0) reversed.prices.read(r - 1, later);
    return reversed.map_adjoint(r, later);
  }
  COMMODITY_INLINE State<2> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t r, int64_t n, const State<2>&, const State<2>& state) const {
    column(panel, n).reversed().set_change_gradient(r, state.y[0], state.y[1]);
  }
};

template <Pass pass, typename scalar_t, int kWindows, bool wilder>
struct RowsOfColumn {
  static constexpr int kRows = kWindows;
  Inputs<scalar_t, kRows, wilder> in;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto column = in.column(panel, n), reversed = column.reversed();
    const int64_t steps = column.prices.steps, stride = column.prices.stride, at = in.states.prices.at(panel, 0, n);
    if constexpr (pass == kComputeTerms) {
      column.compute_terms(first, first + kRows, {in.grad + 4 * at, steps, stride},
                           in.states.template strength<double>(panel, n, first));
    } else if constexpr (pass == kSumChanges) {
      TrailingSums<double, 2, kRows> sums(column.settings.rsi, 0.0);
      reversed.sum_changes(first, sums);
    } else {
      double d_last = 0, price[kRows], dx[kRows];
      const int64_t later = reversed.prices.row_before(first);
      if (later >= 0) reversed.terms.get(kChange, later, d_last);
#pragma unroll
      for (int k = 0; k < kRows; ++k) reversed.prices.read(first + k, price[k]);
      PriceGradients<Gradient<scalar_t, kRows, wilder>, kRows>(reversed, d_last).advance(first, price, dx);
#pragma unroll
      for (int k = 0; k < kRows; ++k)
        if (first + k < steps) in.dx[at + (steps - 1 - first - k) * stride] = scalar_t(dx[k]);
    }
  }
};

template <bool wilder, typename scalar_t>
void run(const Tensor& x, const Tensor& grad, const Panels& panels, const IndicatorSettings& settings, Tensor& dx) {
  const Tensor terms = new_empty(x, {kTerms * x.numel()});
  with_wilder_states<wilder, scalar_t>(
      x, panels, settings, [&]<int kRows>(const WilderStates<scalar_t, kRows, wilder>& states) {
        const Inputs<scalar_t, kRows, wilder> in{states, grad.const_data_ptr<scalar_t>(), data_ptr<scalar_t>(terms),
                                                 x.numel(), data_ptr<scalar_t>(dx)};
        launch_windows(x, panels, RowsOfColumn<kComputeTerms, scalar_t, kRows, wilder>{in});
        if constexpr (wilder)
          run_recurrence<scalar_t>(x, panels.batch, panels.steps, panels.assets, in, in, in);
        else
          launch_windows(x, panels, RowsOfColumn<kSumChanges, scalar_t, kRows, wilder>{in});
        launch_windows(x, panels, RowsOfColumn<kSumTerms, scalar_t, kRows, wilder>{in});
      });
}
#else
constexpr int64_t kColumns = Simd<double>::count;

template <bool wilder, typename scalar_t>
COMMODITY_SIMD void run_vector(const IndicatorSettings& settings, const PanelColumns<scalar_t, double>& prices,
                               int64_t width, const scalar_t* grad, Vec<double>* memory, scalar_t* to) {
  const ColumnStarts<double> start(prices, width, settings.rsi);
  const Gradient<scalar_t, 1, wilder> gradient{
      settings, prices, {memory, 1, static_cast<int>(prices.steps), kTerms}, start.price, start.complete_row};
  gradient.compute_terms(0, prices.steps, {grad, prices.steps, prices.stride}, {prices, settings, start.complete_row});
  const Gradient<scalar_t, 1, wilder> in = gradient.reversed();
  PriceGradients<Gradient<scalar_t, 1, wilder>, 1> sums(in, Vec<double>{});
  TrailingSums<double, 2, 1> change_sums(settings.rsi, 0.0);
  State<2, Vec<double> > adjoint = {};
  Vec<double> price[1] = {Vec<double>{} + NAN}, dx[1];
  for (int64_t r = 0; r < prices.steps; ++r) {
    if constexpr (wilder) {
      adjoint = in.map_adjoint(r, price[0]).apply(adjoint);
      in.set_change_gradient(r, adjoint.y[0], adjoint.y[1]);
    } else {
      in.sum_changes(r, change_sums);
    }
    in.prices.read(r, price[0]);
    sums.advance(r, price, dx);
    prices.write(prices.steps - 1 - r, dx[0], to);
  }
}

template <bool wilder, typename scalar_t>
void run(const Tensor& x_, const Tensor& grad_, const Panels& panels, const IndicatorSettings& settings, Tensor& dx_) {
  const int64_t steps = panels.steps;
  for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
    const scalar_t *x = x_.const_data_ptr<scalar_t>() + panel * panels.size(),
                   *grad = grad_.const_data_ptr<scalar_t>() + 4 * panel * panels.size();
    scalar_t* dx = dx_.mutable_data_ptr<scalar_t>() + panel * panels.size();
    AlignedVector<Vec<double> > memory(kTerms * steps);
    for (; first + kColumns <= last; first += kColumns)
      run_vector<wilder, scalar_t>(settings, {x + first, steps, panels.assets}, kColumns, grad + 4 * first,
                                   memory.data(), dx + first);
    if (first == last) return;
    PaddedColumns<scalar_t, kColumns> prices(steps, panels.assets, last - first),
        to(steps, panels.assets, last - first);
    PaddedColumns<scalar_t, kColumns, 4> grads(steps, panels.assets, last - first);
    run_vector<wilder, scalar_t>(settings, {prices.read(x + first), steps, kColumns}, last - first,
                                 grads.read(grad + 4 * first), memory.data(), to.rows.data());
    to.write(dx + first);
  });
}
#endif

// So that a GPU reads four values at once.
Tensor aligned(const Tensor& x) { return reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 ? torch::stable::clone(x) : x; }

Tensor technical_indicators_backward(const Tensor& prices_, const Tensor& grad_, int64_t short_window,
                                     int64_t long_window, int64_t rsi, int64_t band, std::string mode) {
  STD_TORCH_CHECK(grad_.numel() == 4 * prices_.numel() && grad_.scalar_type() == prices_.scalar_type(),
                  "technical_indicators_backward: grad must be (..., T, N, 4) of the dtype of prices");
  const Tensor prices = contiguous(prices_), grad = aligned(contiguous(grad_));
  Tensor dx = new_empty(prices, prices.sizes());
  const Panels panels(prices);
  const IndicatorSettings settings("technical_indicators_backward", panels.steps, short_window, long_window, rsi, band);
  dispatch("technical_indicators_backward", prices, [&]<typename scalar_t>() {
    mode == "wilder" ? run<true, scalar_t>(prices, grad, panels, settings, dx)
                     : run<false, scalar_t>(prices, grad, panels, settings, dx);
  });
  return dx;
}

}  // namespace

COMMODITY_KERNEL(technical_indicators_backward,
                 "(Tensor prices, Tensor grad, SymInt short, SymInt long, SymInt rsi, "
                 "SymInt band, str mode) -> Tensor")
