// The gradient of technical_indicators in its prices: what each row asks of its window, forwards in time, and what each
// price is asked by the windows that hold it, backwards.
//
// averages: dx_s = sum of g_t / W    half-width: dx_s = sum of 2 g_t (x_s - mean_t) / (W sd_t)
// RSI: dG = 100 g L / (G + L)^2, dL = -100 g G / (G + L)^2, through the averages to the changes and the two prices of
// each. In float64 throughout.
#include "trailing.h"

using namespace commodity;

namespace {

using Lane = Vec<double>;
constexpr int64_t kColumns = Simd<double>::count;

struct Settings {
  int64_t brief, extended, rsi, band;
  bool wilder;
};

// What a row asks of the rows before it; `keep` and `change` say how it came by its averages.
enum { kBrief, kExtended, kPull, kPulledMean, kGain, kLoss, kChange, kKeep, kKinds };
struct Asked {
  Lane of[kKinds];
};

// The windows up to a row: how many of the last rows are there, and for how many the price has not moved.
struct Windows {
  TrailingSums<double, 2> band;
  Lane run = {}, still = {}, previous = Lane{} + NAN, anchor = {};

  template <typename Read>
  void ask(const Settings& set, int64_t t, const Lane& price, const Lane (&g)[4], const Read& read, Asked& asked) {
    if (band.starts_block(t)) anchor = price;
    band.advance(t, [&](int64_t r, Lane(&terms)[2]) {
      read(r, terms[0]), terms[0] -= anchor;
      terms[1] = terms[0] * terms[0];
    });
    run = price == price ? run + 1 : 0.0;
    still = price == previous ? still + 1 : 1.0;
    previous = price;
    const double rows = set.band, brief = set.brief, extended = set.extended;
    asked.of[kBrief] = run >= brief ? g[0] * (1 / brief) : 0.0;
    asked.of[kExtended] = run >= extended ? g[1] * (1 / extended) : 0.0;
    const Lane mean = band.sum[0] * (1 / rows), variance = band.sum[1] * (1 / rows) - mean * mean;
    const auto moves = (run >= rows) & (still < rows) & (variance > 0);
    Lane half = moves ? variance : 1.0;
    square_root<double>(half);
    asked.of[kPull] = (moves ? 2 * g[3] : 0.0) / (rows * half);
    asked.of[kPulledMean] = moves ? asked.of[kPull] * (anchor + mean) : 0.0;
  }
};

// The averages of gains and losses up to a row.
struct Strength {
  TrailingSums<double, 2> moves;
  Lane last = Lane{} + NAN, seen = {}, known = {}, gain = {}, loss = {};

  void ask(const Settings& set, int64_t t, const Lane& price, const Lane& g, const Asked* all, Asked& asked) {
    const double rows = set.rsi, share = 1 / rows;
    change(set, price, asked);
    set.wilder ? smooth(asked, share) : average(t, all, share);
    const Lane total = gain + loss, count = set.wilder ? seen : known;
    const auto defined = (count >= rows) & (total > 0);
    const Lane push = (defined ? 100 * share * g : 0.0) / (defined ? total * total : 1.0);
    asked.of[kGain] = push * loss, asked.of[kLoss] = -push * gain;
  }

 private:
  void change(const Settings& set, const Lane& price, Asked& asked) {
    const double rows = set.rsi;
    const Lane step = price - last;
    const auto changed = step == step;
    asked.of[kChange] = changed ? step : 0.0;
    asked.of[kKeep] = changed & (seen >= rows) ? 1 - 1 / rows : 1.0;
    seen += changed ? 1.0 : 0.0;
    known = changed ? known + 1 : 0.0;
    last = price == price || !set.wilder ? price : last;
  }

  void smooth(const Asked& asked, double share) {
    const Lane step = asked.of[kChange], keep = asked.of[kKeep];
    gain = keep * gain + (step > 0 ? step : 0.0) * share;
    loss = keep * loss + (step < 0 ? -step : 0.0) * share;
  }

  void average(int64_t t, const Asked* all, double share) {
    moves.advance(t, [&](int64_t r, Lane(&terms)[2]) {
      const Lane step = all[r].of[kChange];
      terms[0] = step > 0 ? step : 0.0, terms[1] = step < 0 ? -step : 0.0;
    });
    gain = moves.sum[0] * share, loss = moves.sum[1] * share;
  }
};

template <typename scalar_t, bool whole>
struct Gradient {
  const Settings& set;
  const Columns<scalar_t, double, whole> prices;
  const scalar_t* grad;
  Asked* asked;  // by each row
  Lane level = {};

  void run(scalar_t* dx) {
    for (int64_t n = 0; n < prices.width; ++n) level[n] = first(n);
    ask();
    spread(dx);
  }

 private:
  // Prices are taken against the first that there is.
  double first(int64_t n) const {
    for (int64_t t = 0; t < prices.steps; ++t)
      if (std::isfinite(prices.x[t * prices.stride + n])) return prices.x[t * prices.stride + n];
    return 0;
  }

  void read(int64_t t, Lane& price) const { prices.read(t, price), price -= level; }

  // The gradients of row t, one indicator after another; what is not finite takes no part.
  void read(int64_t t, Lane (&g)[4]) const {
    const scalar_t* from = grad + t * prices.stride * 4;
    scalar_t some[4 * kColumns] = {};
    if (!whole) std::copy_n(from, 4 * prices.width, some);
    Lane columns[4];
    for (int k = 0; k < 4; ++k) load<double>(columns[k], (whole ? from : some) + k * kColumns);
    interleave<double>(columns, g);
    for (Lane& row : g) row = row - row == 0 ? row : 0.0;
  }

  void ask() {
    Windows windows{TrailingSums<double, 2>(set.band)};
    Strength strength{TrailingSums<double, 2>(set.rsi, 0.0)};
    for (int64_t t = 0; t < prices.steps; ++t) {
      Lane price, g[4];
      read(t, price), read(t, g), prices.prefetch(t + kPrefetchRows);
      __builtin_prefetch(grad + (t + kPrefetchRows) * prices.stride * 4);
      windows.ask(set, t, price, g, [&](int64_t r, Lane& price) { read(r, price); }, asked[t]);
      strength.ask(set, t, price, g[2], asked, asked[t]);
    }
  }

  // Backwards in time: row t is `steps - 1 - t` rows from the end.
  void spread(scalar_t* dx) const {
    TrailingSums<double, 1> brief(set.brief, 0.0), extended(set.extended, 0.0);
    TrailingSums<double, 2> band(set.band, 0.0), simple(set.rsi, 0.0);
    Lane gain = {}, loss = {}, after = {}, keep = {};
    const Asked* end = asked + prices.steps - 1;
    for (int64_t r = 0; r < prices.steps; ++r) {
      const Asked& now = end[-r];
      const auto of = [&](int kind) {
        return [end, kind](int64_t r, auto& terms) {
          for (int k = 0; Lane& term : terms) term = end[-r].of[kind + k++];
        };
      };
      brief.advance(r, of(kBrief)), extended.advance(r, of(kExtended)), band.advance(r, of(kPull));
      if (!set.wilder) simple.advance(r, of(kGain));
      gain = set.wilder ? now.of[kGain] + keep * gain : simple.sum[0];
      loss = set.wilder ? now.of[kLoss] + keep * loss : simple.sum[1];
      keep = now.of[kKeep];
      Lane price;
      read(prices.steps - 1 - r, price);
      const Lane d = now.of[kChange] > 0 ? gain : now.of[kChange] < 0 ? -loss : 0.0;
      const Lane asks = brief.sum[0] + extended.sum[0] + price * band.sum[0] - band.sum[1];
      const auto there = price == price;
      prices.write(prices.steps - 1 - r, there ? asks + d - after : 0.0, dx);
      after = (there ? 0.0 : after) + d;  // what later rows ask of the last price before them
    }
  }
};

template <typename scalar_t>
COMMODITY_SIMD void gradient(const Settings& set, const scalar_t* x, const scalar_t* grad, int64_t steps,
                             int64_t stride, int64_t width, Asked* asked, scalar_t* dx) {
  for (; width >= kColumns; width -= kColumns, x += kColumns, grad += 4 * kColumns, dx += kColumns)
    Gradient<scalar_t, true>{set, {x, steps, stride, kColumns}, grad, asked}.run(dx);
  if (width > 0) Gradient<scalar_t, false>{set, {x, steps, stride, width}, grad, asked}.run(dx);
}

Tensor technical_indicators_backward(const Tensor& prices_, const Tensor& grad_, int64_t brief, int64_t extended,
                                     int64_t rsi, int64_t band, std::string mode) {
  STD_TORCH_CHECK(std::min({brief, extended, rsi, band}) >= 1, "technical_indicators_backward: windows must be >= 1");
  STD_TORCH_CHECK(grad_.numel() == 4 * prices_.numel() && grad_.scalar_type() == prices_.scalar_type(),
                  "technical_indicators_backward: grad must be (..., T, N, 4) of the dtype of prices");
  const Tensor prices = contiguous(prices_), grad = contiguous(grad_);
  Tensor dx = new_empty(prices, prices.sizes());
  const Panels panels(prices);
  const Settings set{brief, extended, rsi, band, mode == "wilder"};
  THO_DISPATCH_V2(prices.scalar_type(), "technical_indicators_backward", AT_WRAP([&] {
                    const scalar_t* x = prices.const_data_ptr<scalar_t>();
                    const scalar_t* g = grad.const_data_ptr<scalar_t>();
                    scalar_t* to = dx.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first;
                      AlignedVector<Asked> asked(panels.steps);
                      gradient(set, x + at, g + 4 * at, panels.steps, panels.assets, last - first, asked.data(),
                               to + at);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(technical_indicators_backward,
                   "(Tensor prices, Tensor grad, SymInt short, SymInt long, SymInt rsi, "
                   "SymInt band, str mode) -> Tensor")
