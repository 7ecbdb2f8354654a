// The gradient of technical_indicators in its prices: what each row asks of its window, then what each price is asked
// by the windows that hold it, backwards in time.
//
// averages: dx_s = sum of g_t / W    half-width: dx_s = sum of 2 g_t (x_s - mean_t) / (W sd_t)
// RSI: dG = 100 g L / (G + L)^2, dL = -100 g G / (G + L)^2, through the averages to the changes and the two prices of
// each. In float64 throughout.
#include "wilder_device.h"

using namespace commodity;

namespace {

enum Plane { kBrief, kExtended, kPull, kPulledMean, kGain, kLoss, kChange, kKeep, kOwn, kPlanes };

// One number for each row of all columns, of every kind.
struct Asked {
  double* data;
  int64_t size, steps, assets;

  COMMODITY_INLINE double& operator()(Plane plane, int64_t panel, int64_t t, int64_t n) const {
    return data[plane * size + (panel * steps + t) * assets + n];
  }
};

template <typename scalar_t>
struct Given {
  FiniteValues<scalar_t> prices;
  const scalar_t* grad;
  const double* anchors;
  Wilder<scalar_t> wilder;
  Asked asked;
  Chunks chunks;
  int64_t brief, extended, rsi, band;

  COMMODITY_INLINE double asks(int64_t panel, int64_t t, int64_t n, int64_t which) const {
    const scalar_t g = read(grad + prices.at(panel, t, n) * 4 + which);
    return g - g == 0 ? g : 0;
  }
  COMMODITY_INLINE double price(int64_t panel, int64_t t, int64_t n) const {  // against the first, NaN if missing
    return prices(panel, t, n) - read(anchors + panel * prices.assets + n);
  }
};

template <typename scalar_t, int kWindows>
struct AskWindows {
  static constexpr int kRows = kWindows;
  Given<scalar_t> of;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    average(kBrief, 0, of.brief, panel, n, first);
    average(kExtended, 1, of.extended, panel, n, first);
    const double anchor = of.price(panel, first, n);
    const auto see = [&](Sums<double, 2>& sums, int64_t t) {
      const double d = of.price(panel, t, n) - anchor;
      sums.term[0] += d, sums.term[1] += d * d;
    };
    scalar_t previous = of.prices(panel, first, n);
    int64_t still = 1;
    while (still < of.band && of.prices(panel, first - still, n) == previous) ++still;
    for_each_window<kRows, Sums<double, 2>>(first, of.band, see, [&](int k, const Sums<double, 2>& sums) {
      if (!of.prices.has_row(first + k)) return;
      const scalar_t now = of.prices(panel, first + k, n);
      if (k > 0) still = now == previous ? still + 1 : 1;
      previous = now;
      const double mean = sums.term[0] / of.band, variance = sums.term[1] / of.band - mean * mean;
      const bool moves = still < of.band && variance > 0;
      const double pull = moves ? 2 * of.asks(panel, first + k, n, 3) / (of.band * std::sqrt(variance)) : 0;
      of.asked(kPull, panel, first + k, n) = pull;
      of.asked(kPulledMean, panel, first + k, n) = moves ? pull * (anchor + mean) : 0;
    });
  }
  // a window that misses a price asks nothing
  COMMODITY_INLINE void average(Plane plane, int64_t which, int64_t window, int64_t panel, int64_t n,
                                int64_t first) const {
    const auto see = [&](Sums<double, 1>& sum, int64_t t) { sum.term[0] += 0 * of.prices(panel, t, n); };
    for_each_window<kRows, Sums<double, 1>>(first, window, see, [&](int k, const Sums<double, 1>& sum) {
      if (!of.prices.has_row(first + k)) return;
      of.asked(plane, panel, first + k, n) = sum.term[0] == 0 ? of.asks(panel, first + k, n, which) / window : 0;
    });
  }
};

// What the index asks of its averages.
template <typename scalar_t>
COMMODITY_INLINE void ask_strength(const Given<scalar_t>& of, int64_t panel, int64_t t, int64_t n, double gain,
                                   double loss, bool known) {
  const double total = gain + loss;
  const double push = known && total > 0 ? 100 * of.asks(panel, t, n, 2) / (of.rsi * total * total) : 0;
  of.asked(kGain, panel, t, n) = push == 0 ? 0 : push * loss;
  of.asked(kLoss, panel, t, n) = push == 0 ? 0 : -push * gain;
}

template <typename scalar_t>
struct AskWilder {
  Given<scalar_t> of;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, const State<2>&, const State<2>& now) const {
    const Affine<2> map = of.wilder(panel, t, n);
    of.asked(kChange, panel, t, n) = map.offset[0] - map.offset[1];
    of.asked(kKeep, panel, t, n) = map.factor;
    const bool known = t >= read(of.wilder.ripe + panel * of.prices.assets + n);
    ask_strength(of, panel, t, n, now.y[0], now.y[1], known);
  }
};

template <typename scalar_t, int kWindows>
struct AskSimple {
  static constexpr int kRows = kWindows;
  Given<scalar_t> of;

  COMMODITY_INLINE double change(int64_t panel, int64_t t, int64_t n) const {
    return of.price(panel, t, n) - of.price(panel, t - 1, n);
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto see = [&](Sums<double, 2>& sums, int64_t t) {
      const double step = change(panel, t, n);
      sums.term[0] += step > 0 ? step : step * 0, sums.term[1] += step < 0 ? -step : step * 0;
    };
    for_each_window<kRows, Sums<double, 2>>(first, of.rsi, see, [&](int k, const Sums<double, 2>& sums) {
      if (!of.prices.has_row(first + k)) return;
      const double step = change(panel, first + k, n);
      of.asked(kChange, panel, first + k, n) = step == step ? step : 0;
      ask_strength(of, panel, first + k, n, sums.term[0] / of.rsi, sums.term[1] / of.rsi, sums.term[0] == sums.term[0]);
    });
  }
};

// Backwards in time, row by row from the last: what a change is asked, by way of the averages that it is in.
struct Pushed {
  Asked asked;

  COMMODITY_INLINE Affine<2> operator()(int64_t panel, int64_t back, int64_t n) const {
    const int64_t t = asked.steps - 1 - back;
    return {back ? asked(kKeep, panel, t + 1, n) : 0, {asked(kGain, panel, t, n), asked(kLoss, panel, t, n)}};
  }
  COMMODITY_INLINE State<2> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<2>&, const State<2>& now) const {
    write(panel, asked.steps - 1 - back, n, now.y[0], now.y[1]);
  }
  COMMODITY_INLINE void write(int64_t panel, int64_t t, int64_t n, double gain, double loss) const {
    const double change = asked(kChange, panel, t, n);
    asked(kOwn, panel, t, n) = change > 0 ? gain : change < 0 ? -loss : 0;
  }
};

template <int kWindows>
struct PushedSimple {
  static constexpr int kRows = kWindows;
  Pushed pushed;
  int64_t window;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t last = pushed.asked.steps - 1;
    const auto see = [&](Sums<double, 2>& sums, int64_t back) {
      if (back < 0 || back > last) return;
      sums.term[0] += pushed.asked(kGain, panel, last - back, n),
          sums.term[1] += pushed.asked(kLoss, panel, last - back, n);
    };
    for_each_window<kRows, Sums<double, 2>>(first, window, see, [&](int k, const Sums<double, 2>& sums) {
      if (first + k <= last) pushed.write(panel, last - first - k, n, sums.term[0], sums.term[1]);
    });
  }
};

// A change is asked of two prices: its own, and the last that there was before it.
template <typename scalar_t>
struct ToPrices {
  Given<scalar_t> of;

  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t back, int64_t n) const {
    const int64_t t = of.prices.steps - 1 - back;
    const scalar_t price = of.prices(panel, t, n);
    return {price == price ? 0.0 : 1.0, {of.asked(kOwn, panel, t, n)}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<>& after, const State<>&) const {
    const int64_t t = of.prices.steps - 1 - back;
    of.asked(kGain, panel, t, n) = of.asked(kOwn, panel, t, n) - after.y[0];
  }
};

template <typename scalar_t, int kWindows>
struct SumUp {
  static constexpr int kRows = kWindows;
  Given<scalar_t> of;
  scalar_t* dx;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    double sums[kRows];
    const int64_t last = of.prices.steps - 1;
#pragma unroll
    for (int k = 0; k < kRows; ++k) sums[k] = first + k <= last ? of.asked(kGain, panel, last - first - k, n) : 0;
    add(kBrief, of.brief, panel, n, first, [&](int k, double sum) { sums[k] += sum; });
    add(kExtended, of.extended, panel, n, first, [&](int k, double sum) { sums[k] += sum; });
    add(kPulledMean, of.band, panel, n, first, [&](int k, double sum) { sums[k] -= sum; });
    add(kPull, of.band, panel, n, first, [&](int k, double sum) {
      const double price = of.price(panel, last - first - k, n), all = sums[k] + price * sum;
      if (first + k <= last) dx[of.prices.at(panel, last - first - k, n)] = scalar_t(price == price ? all : 0);
    });
  }
  template <typename Done>
  COMMODITY_INLINE void add(Plane plane, int64_t window, int64_t panel, int64_t n, int64_t first,
                            const Done& done) const {
    const auto see = [&](Sums<double, 1>& sum, int64_t back) {
      if (of.prices.has_row(back)) sum.term[0] += of.asked(plane, panel, of.prices.steps - 1 - back, n);
    };
    for_each_window<kRows, Sums<double, 1>>(first, window, see,
                                            [&](int k, const Sums<double, 1>& sum) { done(k, sum.term[0]); });
  }
};

template <typename scalar_t, int kRows>
void all_gradients(const Given<scalar_t>& of, bool wilder, const Panels& panels, Tensor& dx) {
  const Pushed pushed{of.asked};
  launch_windows(dx, panels, AskWindows<scalar_t, kRows>{of});
  if (wilder) {
    const Tensor before = of.wilder.states_before_chunks(dx, panels.batch, of.chunks);
    launch_grid(
        dx, Grid(panels.batch, panels.assets, of.chunks.chunks),
        Apply<2, Wilder<scalar_t>, AskWilder<scalar_t>>{of.wilder, {of}, of.chunks, data_ptr<State<2>>(before)});
    run_recurrence<2>(dx, panels.batch, panels.steps, panels.assets, pushed, pushed, pushed);
  } else {
    launch_windows(dx, panels, AskSimple<scalar_t, kRows>{of});
    launch_windows(dx, panels, PushedSimple<kRows>{pushed, of.rsi});
  }
  const ToPrices<scalar_t> prices{of};
  run_recurrence(dx, panels.batch, panels.steps, panels.assets, prices, prices, prices);
  launch_windows(dx, panels, SumUp<scalar_t, kRows>{of, data_ptr<scalar_t>(dx)});
}

Tensor technical_indicators_backward(const Tensor& prices_, const Tensor& grad_, int64_t brief, int64_t extended,
                                     int64_t rsi, int64_t band, std::string mode) {
  STD_TORCH_CHECK(std::min({brief, extended, rsi, band}) >= 1, "technical_indicators_backward: windows must be >= 1");
  STD_TORCH_CHECK(grad_.numel() == 4 * prices_.numel() && grad_.scalar_type() == prices_.scalar_type(),
                  "technical_indicators_backward: grad must be (..., T, N, 4) of the dtype of prices");
  const Tensor x = contiguous(prices_), grad = contiguous(grad_);
  Tensor dx = new_empty(x, x.sizes());
  const Panels panels(x);
  const Tensor ripe = scratch(x, panels.batch * panels.assets), anchors = scratch(x, panels.batch * panels.assets);
  const Tensor planes = scratch(x, kPlanes * x.numel());
  dispatch("technical_indicators_backward", x, [&]<typename scalar_t>() {
    const auto prices = finite_values<scalar_t>(x, panels);
    const Asked asked{data_ptr<double>(planes), x.numel(), panels.steps, panels.assets};
    launch_grid(x, Grid(panels.batch, panels.assets, 1), FirstFinite<scalar_t>{prices, data_ptr<double>(anchors)});
    const Given<scalar_t> given{prices,
                                grad.const_data_ptr<scalar_t>(),
                                data_ptr<double>(anchors),
                                {prices, data_ptr<int64_t>(ripe), rsi},
                                asked,
                                Chunks(panels.steps, panels.assets),
                                brief,
                                extended,
                                rsi,
                                band};
    dispatch_rows<8>(std::min({brief, extended, rsi, band}),
                     [&]<int kRows>() { all_gradients<scalar_t, kRows>(given, mode == "wilder", panels, dx); });
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(technical_indicators_backward)
