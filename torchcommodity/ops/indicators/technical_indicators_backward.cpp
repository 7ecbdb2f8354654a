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
  // Prices against the first that there is; NaN where missing, and in columns that are not there.
  void level() {
    Values anchor = {};
    for (int64_t n = 0; n < width; ++n) {
      int64_t first = 0;
      while (first < steps && !std::isfinite(x[first * stride + n])) ++first;
      anchor[n] = first < steps ? x[first * stride + n] : 0;
    }
    for (int64_t t = 0; t < steps; ++t) {
      std::fill_n(price[t], kColumns, NAN);
      for (int64_t n = 0; n < width; ++n) {
        const double value = x[t * stride + n];
        price[t][n] = value + (value - value) - anchor[n];
      }
    }
  }

  // The gradients of row t, one indicator after another; what is not finite takes no part.
  void read(int64_t t, Values* g) const {
    const scalar_t* from = grad + t * stride * 4;
    for (int64_t n = 0; n < width; ++n)
      for (int k = 0; k < 4; ++k) {
        const double value = from[4 * n + k];
        g[k][n] = value - value == 0 ? value : 0;
      }
  }

  void windows() {
    Window<double, 2> band(set.band);
    Values run = {}, still = {}, previous, g[4] = {};
    std::fill_n(previous, kColumns, NAN);
    Row<double> anchor;
    const Values* prices = price.data();
    const double rows = set.band, brief = set.brief, extended = set.extended;
    for (int64_t t = 0; t < steps; ++t) {
      const double* row = prices[t];
      double *short_ = asked[kBrief][t], *long_ = asked[kExtended][t], *pull = asked[kPull][t];
      double *pulled = asked[kPulledMean][t], *kept = asked[kGain][t];  // until `strength` needs it
      read(t, g);
      if (t % set.band == 0) std::copy_n(row, kColumns, anchor);
      band.advance(t, kColumns, [&](int k, int64_t r, int64_t n) {
        const double d = prices[r][n] - anchor[n];
        return k ? d * d : d;
      });
#pragma GCC ivdep
      for (int64_t n = 0; n < kColumns; ++n) {
        run[n] = row[n] == row[n] ? run[n] + 1 : 0;
        still[n] = row[n] == previous[n] ? still[n] + 1 : 1;
        previous[n] = row[n];
        const double mean = band.sum[0][n] / rows, variance = band.sum[1][n] / rows - mean * mean;
        const bool moves = (run[n] >= rows) & (still[n] < rows) & (variance > 0);
        const double half = std::sqrt(moves ? variance : 1), asks = moves ? 2 * g[3][n] : 0;
        short_[n] = run[n] >= brief ? g[0][n] / brief : 0;
        long_[n] = run[n] >= extended ? g[1][n] / extended : 0;
        pull[n] = asks / (rows * half);
        pulled[n] = moves ? pull[n] * (anchor[n] + mean) : 0;
        kept[n] = g[2][n];
      }
    }
  }

  void strength() {
    Window<double, 2> moves(set.wilder ? 1 : set.rsi, 0.0);
    Values last, seen = {}, known = {}, gain = {}, loss = {};
    std::fill_n(last, kColumns, NAN);
    const double rows = set.rsi, share = 1 / rows;
    const bool wilder = set.wilder;
    const Values* all = asked[kChange].data();
    for (int64_t t = 0; t < steps; ++t) {
      const double* row = price[t];
      double *change = asked[kChange][t], *keep = asked[kKeep][t], *up = asked[kGain][t], *down = asked[kLoss][t];
#pragma GCC ivdep
      for (int64_t n = 0; n < kColumns; ++n) {
        const double step = row[n] - last[n];
        const bool changed = step == step;
        change[n] = changed ? step : 0;
        keep[n] = changed & (seen[n] >= rows) ? 1 - share : 1;
        gain[n] = keep[n] * gain[n] + (change[n] > 0 ? change[n] : 0) * share;
        loss[n] = keep[n] * loss[n] + (change[n] < 0 ? -change[n] : 0) * share;
        seen[n] += changed ? 1 : 0, known[n] = changed ? known[n] + 1 : 0;
        last[n] = (row[n] == row[n]) | !wilder ? row[n] : last[n];
      }
      if (!wilder) {
        moves.advance(t, kColumns, [&](int k, int64_t r, int64_t n) {
          const double moved = k ? -all[r][n] : all[r][n];
          return moved > 0 ? moved : 0;
        });
        for (int64_t n = 0; n < kColumns; ++n) gain[n] = moves.sum[0][n] * share, loss[n] = moves.sum[1][n] * share;
      }
#pragma GCC ivdep
      for (int64_t n = 0; n < kColumns; ++n) {
        const double total = gain[n] + loss[n], count = wilder ? seen[n] : known[n];
        const bool defined = (count >= rows) & (total > 0);
        const double push = (defined ? 100 * share * up[n] : 0) / (defined ? total * total : 1);
        up[n] = push * loss[n], down[n] = -push * gain[n];
      }
    }
  }

  // Backwards in time: row t is `steps - 1 - t` rows from the end.
  void spread(scalar_t* dx) {
    Window<double, 1> brief(set.brief, 0.0), extended(set.extended, 0.0);
    Window<double, 2> band(set.band, 0.0), simple(set.wilder ? 1 : set.rsi, 0.0);
    Values gain = {}, loss = {}, after = {}, keep = {}, total;
    const auto of = [&](int kind) {
      const Values *one = asked[kind].data() + steps - 1, *two = asked[kind + 1].data() + steps - 1;
      return [one, two](int k, int64_t r, int64_t n) { return (k ? two : one)[-r][n]; };
    };
    for (int64_t r = 0; r < steps; ++r) {
      const int64_t t = steps - 1 - r;
      const double *up = asked[kGain][t], *down = asked[kLoss][t], *held = asked[kKeep][t], *change = asked[kChange][t];
      const double* value = price[t];
      brief.advance(r, kColumns, of(kBrief)), extended.advance(r, kColumns, of(kExtended));
      band.advance(r, kColumns, of(kPull));
      if (!set.wilder) simple.advance(r, kColumns, of(kGain));
      const bool wilder = set.wilder;
#pragma GCC ivdep
      for (int64_t n = 0; n < kColumns; ++n) {
        gain[n] = wilder ? up[n] + keep[n] * gain[n] : simple.sum[0][n];
        loss[n] = wilder ? down[n] + keep[n] * loss[n] : simple.sum[1][n];
        keep[n] = held[n];
        const double rising = change[n] > 0 ? gain[n] : 0, d = change[n] < 0 ? -loss[n] : rising;
        const bool there = value[n] == value[n];
        const double asks = brief.sum[0][n] + extended.sum[0][n] + value[n] * band.sum[0][n] - band.sum[1][n];
        total[n] = there ? asks + d - after[n] : 0;
        after[n] = (there ? 0 : after[n]) + d;  // what later rows ask of the last price before them
      }
      for (int64_t n = 0; n < width; ++n) dx[t * stride + n] = total[n];
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
