// The gradient of technical_indicators in its prices: what each row asks of its window, forwards in time, and what each
// price is asked by the windows that hold it, backwards.
//
// averages: dx_s = sum of g_t / W    half-width: dx_s = sum of 2 g_t (x_s - mean_t) / (W sd_t)
// RSI: dG = 100 g L / (G + L)^2, dL = -100 g G / (G + L)^2, through the averages to the changes and the two prices of
// each. In float64 throughout.
#include "window.h"

using namespace commodity;

namespace {

constexpr int64_t kColumns = 16;  // at once: what all rows ask stays in the cache

struct Settings {
  int64_t brief, extended, rsi, band;
  bool wilder;
};

template <typename scalar_t>
struct Gradient {
  enum { kBrief, kExtended, kPull, kPulledMean, kGain, kLoss, kChange, kKeep, kKinds };
  using Values = double[kColumns];
  const Settings set;
  const int64_t steps, stride;
  int64_t width = 0;
  const scalar_t *x = nullptr, *grad = nullptr;
  std::vector<Values> asked[kKinds], price;

  Gradient(Settings set, int64_t steps, int64_t stride) : set(set), steps(steps), stride(stride), price(steps) {
    for (auto& kind : asked) kind = std::vector<Values>(steps);
  }

  void run(const scalar_t* prices, const scalar_t* gradient, int64_t columns, scalar_t* dx) {
    x = prices, grad = gradient, width = columns;
    level();
    windows();
    strength();
    spread(dx);
  }

 private:
  // Prices against the first that there is; NaN where missing.
  void level() {
    for (int64_t n = 0; n < width; ++n) {
      int64_t first = 0;
      while (first < steps && !std::isfinite(x[first * stride + n])) ++first;
      const double anchor = first < steps ? x[first * stride + n] : 0;
      for (int64_t t = 0; t < steps; ++t) {
        const scalar_t value = x[t * stride + n];
        price[t][n] = value - value == 0 ? value - anchor : NAN;
      }
    }
  }

  double asks(int64_t t, int64_t n, int64_t which) const {
    const scalar_t g = grad[(t * stride + n) * 4 + which];
    return g - g == 0 ? g : 0;
  }

  void windows() {
    Window<double, 2> band(set.band);
    Values run = {}, still = {}, previous;
    std::fill_n(previous, kColumns, NAN);
    Row<double> anchor;
    for (int64_t t = 0; t < steps; ++t) {
      const Values& row = price[t];
      if (t % set.band == 0) std::copy_n(row, kColumns, anchor);
      band.advance(t, width, [&](int k, int64_t r, int64_t n) {
        const double d = price[r][n] - anchor[n];
        return k ? d * d : d;
      });
      for (int64_t n = 0; n < width; ++n) {
        run[n] = row[n] == row[n] ? run[n] + 1 : 0;
        still[n] = row[n] == previous[n] ? still[n] + 1 : 1;
        previous[n] = row[n];
        const double mean = band.sum[0][n] / set.band, variance = band.sum[1][n] / set.band - mean * mean;
        const bool moves = (run[n] >= set.band) & (still[n] < set.band) & (variance > 0);
        const double pull = moves ? 2 * asks(t, n, 3) / (set.band * std::sqrt(variance)) : 0;
        asked[kBrief][t][n] = run[n] >= set.brief ? asks(t, n, 0) / set.brief : 0;
        asked[kExtended][t][n] = run[n] >= set.extended ? asks(t, n, 1) / set.extended : 0;
        asked[kPull][t][n] = pull;
        asked[kPulledMean][t][n] = moves ? pull * (anchor[n] + mean) : 0;
      }
    }
  }

  void strength() {
    Window<double, 2> moves(set.wilder ? 1 : set.rsi, 0.0);
    Values last, seen = {}, known = {}, gain = {}, loss = {};
    std::fill_n(last, kColumns, NAN);
    const double share = 1.0 / set.rsi;
    for (int64_t t = 0; t < steps; ++t) {
      const Values& row = price[t];
      double *change = asked[kChange][t], *keep = asked[kKeep][t];
      for (int64_t n = 0; n < width; ++n) {
        const double step = row[n] - last[n];
        const bool changed = step == step;
        change[n] = changed ? step : 0;
        keep[n] = changed & (seen[n] >= set.rsi) ? 1 - share : 1;
        gain[n] = keep[n] * gain[n] + std::max(change[n], 0.0) * share;
        loss[n] = keep[n] * loss[n] + std::max(-change[n], 0.0) * share;
        seen[n] += changed, known[n] = changed ? known[n] + 1 : 0;
        last[n] = row[n] == row[n] || !set.wilder ? row[n] : last[n];
      }
      if (!set.wilder) {
        const auto& all = asked[kChange];
        moves.advance(t, width, [&](int k, int64_t r, int64_t n) { return std::max(k ? -all[r][n] : all[r][n], 0.0); });
        for (int64_t n = 0; n < width; ++n) gain[n] = moves.sum[0][n] * share, loss[n] = moves.sum[1][n] * share;
      }
      for (int64_t n = 0; n < width; ++n) {
        const double total = gain[n] + loss[n], count = set.wilder ? seen[n] : known[n];
        const double push = (count >= set.rsi) & (total > 0) ? 100 * share * asks(t, n, 2) / (total * total) : 0;
        asked[kGain][t][n] = push * loss[n], asked[kLoss][t][n] = -push * gain[n];
      }
    }
  }

  // Backwards in time: row t is `steps - 1 - t` rows from the end.
  void spread(scalar_t* dx) {
    Window<double, 1> brief(set.brief, 0.0), extended(set.extended, 0.0), pull(set.band, 0.0), mean(set.band, 0.0);
    Window<double, 2> simple(set.wilder ? 1 : set.rsi, 0.0);
    Values gain = {}, loss = {}, after = {}, keep = {};
    const auto of = [&](int kind) {
      return [&, kind](int k, int64_t r, int64_t n) { return asked[kind + k][steps - 1 - r][n]; };
    };
    for (int64_t r = 0; r < steps; ++r) {
      const int64_t t = steps - 1 - r;
      brief.advance(r, width, of(kBrief)), extended.advance(r, width, of(kExtended));
      pull.advance(r, width, of(kPull)), mean.advance(r, width, of(kPulledMean));
      if (!set.wilder) simple.advance(r, width, of(kGain));
      for (int64_t n = 0; n < width; ++n) {
        gain[n] = set.wilder ? asked[kGain][t][n] + keep[n] * gain[n] : simple.sum[0][n];
        loss[n] = set.wilder ? asked[kLoss][t][n] + keep[n] * loss[n] : simple.sum[1][n];
        keep[n] = asked[kKeep][t][n];
        const double change = asked[kChange][t][n], d = change > 0 ? gain[n] : change < 0 ? -loss[n] : 0;
        const double value = price[t][n];
        const bool there = value == value;
        const double total = brief.sum[0][n] + extended.sum[0][n] + value * pull.sum[0][n] - mean.sum[0][n];
        dx[t * stride + n] = there ? total + d - after[n] : 0;
        after[n] = (there ? 0 : after[n]) + d;  // what later rows ask of the last price before them
      }
    }
  }
};

COMMODITY_SIMD void gradient(Gradient<float>& block, const float* x, const float* grad, int64_t width, float* dx) {
  block.run(x, grad, width, dx);
}
COMMODITY_SIMD void gradient(Gradient<double>& block, const double* x, const double* grad, int64_t width, double* dx) {
  block.run(x, grad, width, dx);
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
                      Gradient<scalar_t> block(set, panels.steps, panels.assets);
                      for (int64_t n = first; n < last; n += kColumns) {
                        const int64_t at = panel * panels.size() + n;
                        gradient(block, x + at, g + 4 * at, std::min(kColumns, last - n), to + at);
                      }
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(technical_indicators_backward,
                   "(Tensor prices, Tensor grad, SymInt short, SymInt long, SymInt rsi, "
                   "SymInt band, str mode) -> Tensor")
