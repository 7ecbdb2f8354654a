// Gradient of technical_indicators with respect to the prices, in float64. The formulas and the two passes are those of
// technical_indicators_backward.cpp: launches that store the gradient terms of each row, then launches in reverse time.
#include "wilder_device.h"

using namespace commodity;

namespace {

enum Plane { kShort, kLong, kBand, kBandMean, kGain, kLoss, kChange, kKeep, kChangeGradient, kPlanes };

// The gradient terms: for each plane one number for each row and column.
struct RowTerms {
  double* data;
  int64_t size, steps, assets;

  COMMODITY_INLINE double& operator()(Plane plane, int64_t panel, int64_t t, int64_t n) const {
    return data[plane * size + (panel * steps + t) * assets + n];
  }
};

template <typename scalar_t>
struct Inputs {
  FiniteValues<scalar_t> prices;
  const scalar_t* grad;
  const double* anchors;
  Wilder<scalar_t> wilder;
  RowTerms terms;
  Chunks chunks;
  int64_t short_window, long_window, rsi, band;

  COMMODITY_INLINE double grad_value(int64_t panel, int64_t t, int64_t n, int64_t channel) const {
    const scalar_t g = read(grad + prices.at(panel, t, n) * 4 + channel);
    return g - g == 0 ? g : 0;
  }
  // Relative to the first price; NaN if missing.
  COMMODITY_INLINE double price(int64_t panel, int64_t t, int64_t n) const {
    return prices(panel, t, n) - read(anchors + panel * prices.assets + n);
  }
};

template <typename scalar_t, int kWindows>
struct WindowTerms {
  static constexpr int kRows = kWindows;
  Inputs<scalar_t> in;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    average_terms(kShort, 0, in.short_window, panel, n, first);
    average_terms(kLong, 1, in.long_window, panel, n, first);
    const double anchor = in.price(panel, first, n);
    const auto visit = [&](Sums<double, 2>& sums, int64_t t) {
      const double d = in.price(panel, t, n) - anchor;
      sums.term[0] += d, sums.term[1] += d * d;
    };
    scalar_t previous = in.prices(panel, first, n);
    int64_t unchanged = 1;
    while (unchanged < in.band && in.prices(panel, first - unchanged, n) == previous) ++unchanged;
    for_each_window<kRows, Sums<double, 2>>(first, in.band, visit, [&](int k, const Sums<double, 2>& sums) {
      if (!in.prices.has_row(first + k)) return;
      const scalar_t current = in.prices(panel, first + k, n);
      if (k > 0) unchanged = current == previous ? unchanged + 1 : 1;
      previous = current;
      const double mean = sums.term[0] / in.band, variance = sums.term[1] / in.band - mean * mean;
      const bool varies = unchanged < in.band && variance > 0;
      const double band_weight =
          varies ? 2 * in.grad_value(panel, first + k, n, 3) / (in.band * std::sqrt(variance)) : 0;
      in.terms(kBand, panel, first + k, n) = band_weight;
      in.terms(kBandMean, panel, first + k, n) = varies ? band_weight * (anchor + mean) : 0;
    });
  }
  // A window with a missing price has no gradient.
  COMMODITY_INLINE void average_terms(Plane plane, int64_t channel, int64_t window, int64_t panel, int64_t n,
                                      int64_t first) const {
    const auto visit = [&](Sums<double, 1>& sum, int64_t t) { sum.term[0] += 0 * in.prices(panel, t, n); };
    for_each_window<kRows, Sums<double, 1>>(first, window, visit, [&](int k, const Sums<double, 1>& sum) {
      if (!in.prices.has_row(first + k)) return;
      in.terms(plane, panel, first + k, n) =
          sum.term[0] == 0 ? in.grad_value(panel, first + k, n, channel) / window : 0;
    });
  }
};

// The gradients of the average gain and loss from that of RSI.
template <typename scalar_t>
COMMODITY_INLINE void add_strength_terms(const Inputs<scalar_t>& in, int64_t panel, int64_t t, int64_t n, double gain,
                                         double loss, bool is_defined) {
  const double total = gain + loss;
  const double d_average = is_defined && total > 0 ? 100 * in.grad_value(panel, t, n, 2) / (in.rsi * total * total) : 0;
  in.terms(kGain, panel, t, n) = d_average == 0 ? 0 : d_average * loss;
  in.terms(kLoss, panel, t, n) = d_average == 0 ? 0 : -d_average * gain;
}

template <typename scalar_t>
struct WilderTerms {
  Inputs<scalar_t> in;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, const State<2>&,
                                   const State<2>& current) const {
    const Affine<2> map = in.wilder(panel, t, n);
    in.terms(kChange, panel, t, n) = map.offset[0] - map.offset[1];
    in.terms(kKeep, panel, t, n) = map.factor;
    const bool is_defined = t >= read(in.wilder.complete_row + panel * in.prices.assets + n);
    add_strength_terms(in, panel, t, n, current.y[0], current.y[1], is_defined);
  }
};

template <typename scalar_t, int kWindows>
struct SimpleTerms {
  static constexpr int kRows = kWindows;
  Inputs<scalar_t> in;

  COMMODITY_INLINE double change(int64_t panel, int64_t t, int64_t n) const {
    return in.price(panel, t, n) - in.price(panel, t - 1, n);
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto visit = [&](Sums<double, 2>& sums, int64_t t) {
      const double change_t = change(panel, t, n);
      sums.term[0] += change_t > 0 ? change_t : change_t * 0, sums.term[1] += change_t < 0 ? -change_t : change_t * 0;
    };
    for_each_window<kRows, Sums<double, 2>>(first, in.rsi, visit, [&](int k, const Sums<double, 2>& sums) {
      if (!in.prices.has_row(first + k)) return;
      const double change_t = change(panel, first + k, n);
      in.terms(kChange, panel, first + k, n) = change_t == change_t ? change_t : 0;
      add_strength_terms(in, panel, first + k, n, sums.term[0] / in.rsi, sums.term[1] / in.rsi,
                         sums.term[0] == sums.term[0]);
    });
  }
};

// Gradients of the changes, through the averages that contain them: a recurrence in reverse time.
struct ChangeGradients {
  RowTerms terms;

  COMMODITY_INLINE Affine<2> operator()(int64_t panel, int64_t back, int64_t n) const {
    const int64_t t = terms.steps - 1 - back;
    return {back ? terms(kKeep, panel, t + 1, n) : 0, {terms(kGain, panel, t, n), terms(kLoss, panel, t, n)}};
  }
  COMMODITY_INLINE State<2> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<2>&,
                                   const State<2>& current) const {
    write(panel, terms.steps - 1 - back, n, current.y[0], current.y[1]);
  }
  COMMODITY_INLINE void write(int64_t panel, int64_t t, int64_t n, double gain, double loss) const {
    const double change = terms(kChange, panel, t, n);
    terms(kChangeGradient, panel, t, n) = change > 0 ? gain : change < 0 ? -loss : 0;
  }
};

template <int kWindows>
struct SimpleChangeGradients {
  static constexpr int kRows = kWindows;
  ChangeGradients gradients;
  int64_t window;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t last = gradients.terms.steps - 1;
    const auto visit = [&](Sums<double, 2>& sums, int64_t back) {
      if (back < 0 || back > last) return;
      sums.term[0] += gradients.terms(kGain, panel, last - back, n),
          sums.term[1] += gradients.terms(kLoss, panel, last - back, n);
    };
    for_each_window<kRows, Sums<double, 2>>(first, window, visit, [&](int k, const Sums<double, 2>& sums) {
      if (first + k <= last) gradients.write(panel, last - first - k, n, sums.term[0], sums.term[1]);
    });
  }
};

// Gradients of the prices from those of the changes: a change depends on its price and on the last price before it.
template <typename scalar_t>
struct PriceGradients {
  Inputs<scalar_t> in;

  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t back, int64_t n) const {
    const int64_t t = in.prices.steps - 1 - back;
    const scalar_t price = in.prices(panel, t, n);
    return {price == price ? 0.0 : 1.0, {in.terms(kChangeGradient, panel, t, n)}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<>& d_previous,
                                   const State<>&) const {
    const int64_t t = in.prices.steps - 1 - back;
    in.terms(kGain, panel, t, n) = in.terms(kChangeGradient, panel, t, n) - d_previous.y[0];
  }
};

template <typename scalar_t, int kWindows>
struct SumGradients {
  static constexpr int kRows = kWindows;
  Inputs<scalar_t> in;
  scalar_t* dx;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    double sums[kRows];
    const int64_t last = in.prices.steps - 1;
#pragma unroll
    for (int k = 0; k < kRows; ++k) sums[k] = first + k <= last ? in.terms(kGain, panel, last - first - k, n) : 0;
    add(kShort, in.short_window, panel, n, first, [&](int k, double sum) { sums[k] += sum; });
    add(kLong, in.long_window, panel, n, first, [&](int k, double sum) { sums[k] += sum; });
    add(kBandMean, in.band, panel, n, first, [&](int k, double sum) { sums[k] -= sum; });
    add(kBand, in.band, panel, n, first, [&](int k, double sum) {
      const double price = in.price(panel, last - first - k, n), value = sums[k] + price * sum;
      if (first + k <= last) dx[in.prices.at(panel, last - first - k, n)] = scalar_t(price == price ? value : 0);
    });
  }
  template <typename Finish>
  COMMODITY_INLINE void add(Plane plane, int64_t window, int64_t panel, int64_t n, int64_t first,
                            const Finish& finish) const {
    const auto visit = [&](Sums<double, 1>& sum, int64_t back) {
      if (in.prices.has_row(back)) sum.term[0] += in.terms(plane, panel, in.prices.steps - 1 - back, n);
    };
    for_each_window<kRows, Sums<double, 1>>(first, window, visit,
                                            [&](int k, const Sums<double, 1>& sum) { finish(k, sum.term[0]); });
  }
};

template <typename scalar_t, int kRows>
void run_launches(const Inputs<scalar_t>& in, bool wilder, const Panels& panels, Tensor& dx) {
  const ChangeGradients gradients{in.terms};
  launch_windows(dx, panels, WindowTerms<scalar_t, kRows>{in});
  if (wilder) {
    const Tensor states = in.wilder.states_before_chunks(dx, panels.batch, in.chunks);
    launch_grid(
        dx, Grid(panels.batch, panels.assets, in.chunks.chunks),
        Apply<2, Wilder<scalar_t>, WilderTerms<scalar_t>>{in.wilder, {in}, in.chunks, data_ptr<State<2>>(states)});
    run_recurrence(dx, panels.batch, panels.steps, panels.assets, gradients, gradients, gradients);
  } else {
    launch_windows(dx, panels, SimpleTerms<scalar_t, kRows>{in});
    launch_windows(dx, panels, SimpleChangeGradients<kRows>{gradients, in.rsi});
  }
  const PriceGradients<scalar_t> price_gradients{in};
  run_recurrence(dx, panels.batch, panels.steps, panels.assets, price_gradients, price_gradients, price_gradients);
  launch_windows(dx, panels, SumGradients<scalar_t, kRows>{in, data_ptr<scalar_t>(dx)});
}

Tensor technical_indicators_backward(const Tensor& prices_, const Tensor& grad_, int64_t short_window,
                                     int64_t long_window, int64_t rsi, int64_t band, std::string mode) {
  STD_TORCH_CHECK(std::min({short_window, long_window, rsi, band}) >= 1,
                  "technical_indicators_backward: windows must be >= 1");
  STD_TORCH_CHECK(grad_.numel() == 4 * prices_.numel() && grad_.scalar_type() == prices_.scalar_type(),
                  "technical_indicators_backward: grad must be (..., T, N, 4) of the dtype of prices");
  const Tensor x = contiguous(prices_), grad = contiguous(grad_);
  Tensor dx = new_empty(x, x.sizes());
  const Panels panels(x);
  for (int64_t* window : {&short_window, &long_window, &rsi, &band}) *window = limit_window(*window, panels.steps);
  const Tensor complete_row = scratch(x, panels.batch * panels.assets),
               anchors = scratch(x, panels.batch * panels.assets);
  const Tensor planes = scratch(x, kPlanes * x.numel());
  dispatch("technical_indicators_backward", x, [&]<typename scalar_t>() {
    const auto prices = finite_values<scalar_t>(x, panels);
    const RowTerms terms{data_ptr<double>(planes), x.numel(), panels.steps, panels.assets};
    launch_grid(x, Grid(panels.batch, panels.assets, 1), FirstFinite<scalar_t>{prices, data_ptr<double>(anchors)});
    const Inputs<scalar_t> inputs{prices,
                                  grad.const_data_ptr<scalar_t>(),
                                  data_ptr<double>(anchors),
                                  {prices, data_ptr<int64_t>(complete_row), rsi},
                                  terms,
                                  Chunks(panels.steps, panels.assets),
                                  short_window,
                                  long_window,
                                  rsi,
                                  band};
    dispatch_rows<8>(std::min({short_window, long_window, rsi, band}),
                     [&]<int kRows>() { run_launches<scalar_t, kRows>(inputs, mode == "wilder", panels, dx); });
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(technical_indicators_backward)
