// Pearson correlation of every pair over the last `window` rows of (..., T, N): (..., T, N, N), or packed.
//
// An item takes a pair and a few windows; neighbors in a warp write neighbors of a matrix. Values are taken against a
// row that all of its windows hold. Pairs with a hole in their window are summed again, over the rows that both have.
#include "correlation_device.h"

using namespace commodity;

namespace {

// Where the value of a pair goes: into both halves of a matrix, or once, in the order of torch.triu_indices.
template <typename scalar_t>
struct Target {
  scalar_t* y;
  int64_t assets;
  bool packed;

  COMMODITY_INLINE bool wants(int64_t i, int64_t j) const { return !packed || i < j; }
  COMMODITY_INLINE void write(int64_t row, int64_t i, int64_t j, double r) const {
    const int64_t pair = packed ? i * (2 * assets - i - 1) / 2 + j - i - 1 : i * assets + j;
    const double clipped = r != r ? NAN : r > 1 || i == j ? 1 : r < -1 ? -1 : r;
    y[row * (packed ? assets * (assets - 1) / 2 : assets * assets) + pair] = static_cast<scalar_t>(clipped);
  }
};

template <typename scalar_t, int kWindows>
struct Pairs {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const Moments* moments;
  Target<scalar_t> target;
  int64_t window;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t pair, int64_t first) const {
    const int64_t i = pair / x.assets, j = pair % x.assets;
    if (!target.wants(i, j)) return;
    const scalar_t anchor_i = x(panel, first, i), anchor_j = x(panel, first, j);
    const auto see = [&](Sums<double, 1>& sum, int64_t t) {
      sum.term[0] += (x(panel, t, i) - anchor_i) * (x(panel, t, j) - anchor_j);
    };
    for_each_window<kRows, Sums<double, 1>>(first, window, see, [&](int k, const Sums<double, 1>& sum) {
      if (!x.has_row(first + k)) return;
      const Moments own = moments[x.at(panel, first + k, i)], other = moments[x.at(panel, first + k, j)];
      const double offsets = (own.mean - anchor_i) * (other.mean - anchor_j) * window;
      target.write(panel * x.steps + first + k, i, j, (sum.term[0] - offsets) * (own.scale * other.scale));
    });
  }
};

template <typename scalar_t, int kWindows>
struct HoledPairs {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const Moments* moments;
  const bool* holed;
  Target<scalar_t> target;
  int64_t window;
  double least;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t pair, int64_t first) const {
    const int64_t i = pair / x.assets, j = pair % x.assets;
    const bool* holes = holed + (panel * ((x.steps + kRows - 1) / kRows) + first / kRows) * x.assets;
    if (!target.wants(i, j) || (!holes[i] && !holes[j])) return;
    for (int64_t t = first; t < first + kRows && x.has_row(t); ++t) {
      const double means = moments[x.at(panel, t, i)].mean + moments[x.at(panel, t, j)].mean;
      if (means == means) continue;
      const PairMoments s(x, panel, t, window, i, j);
      const double r = s.defined(least) ? s.xy * (1 / std::sqrt(s.xx) * (1 / std::sqrt(s.yy))) : NAN;
      target.write(panel * x.steps + t, i, j, r);
    }
  }
};

Tensor correlations(const Tensor& returns_, int64_t window, int64_t min_periods, bool packed) {
  STD_TORCH_CHECK(window >= 1 && returns_.dim() >= 2, "rolling_correlation: returns (..., T, N), window >= 1");
  const Tensor returns = contiguous(returns_);
  const Panels panels(returns), pairs(panels.batch, panels.steps, panels.assets * panels.assets);
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  const int64_t N = shape.back();
  if (packed)
    shape.back() = N * (N - 1) / 2;
  else
    shape.push_back(N);
  Tensor y = new_empty(returns, shape);
  dispatch("rolling_correlation", returns, [&]<typename scalar_t>() {
    const auto x = finite_values<scalar_t>(returns, panels);
    const Target<scalar_t> target{y.mutable_data_ptr<scalar_t>(), N, packed};
    dispatch_rows<32>(window, [&]<int kRows>() {
      with_moments<scalar_t, kRows>(y, panels, x, window, [&](const Moments* moments, const bool* holed) {
        launch_windows(y, pairs, Pairs<scalar_t, kRows>{x, moments, target, window});
        launch_windows(y, pairs, HoledPairs<scalar_t, kRows>{x, moments, holed, target, window, double(min_periods)});
      });
    });
  });
  return y;
}

Tensor rolling_correlation(const Tensor& returns, int64_t window, int64_t min_periods) {
  return correlations(returns, window, min_periods, false);
}

Tensor rolling_correlation_pairs(const Tensor& returns, int64_t window, int64_t min_periods) {
  return correlations(returns, window, min_periods, true);
}

}  // namespace

COMMODITY_CUDA(rolling_correlation)
COMMODITY_CUDA(rolling_correlation_pairs)
