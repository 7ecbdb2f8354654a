// Rolling Pearson correlation of every pair over (..., T, N): matrices (..., T, N, N), or the pairs i < j if packed.
//
// An item takes one pair and a few windows (device_windows.h); neighboring lanes of a warp write neighboring elements
// of a matrix. Values are relative to a row that all windows of the item contain. Pairs with a missing value in their
// window are summed again, over the rows in which both values are finite.
#include "correlation_device.h"

using namespace commodity;

namespace {

// Writes the value of a pair into a matrix, or once, in the order of torch.triu_indices.
template <typename scalar_t>
struct Output {
  scalar_t* y;
  int64_t assets;
  bool packed;

  COMMODITY_INLINE bool contains(int64_t i, int64_t j) const { return !packed || i < j; }
  COMMODITY_INLINE void write(int64_t row, int64_t i, int64_t j, double r) const {
    const int64_t pair = packed ? i * (2 * assets - i - 1) / 2 + j - i - 1 : i * assets + j;
    const double clipped = r != r ? NAN : r > 1 || i == j ? 1 : r < -1 ? -1 : r;
    y[row * (packed ? assets * (assets - 1) / 2 : assets * assets) + pair] = static_cast<scalar_t>(clipped);
  }
};

template <typename scalar_t, int kWindows>
struct CompletePairs {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const Moments* moments;
  Output<scalar_t> output;
  int64_t window;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t pair, int64_t first) const {
    const int64_t i = pair / x.assets, j = pair % x.assets;
    if (!output.contains(i, j)) return;
    const scalar_t anchor_i = x(panel, first, i), anchor_j = x(panel, first, j);
    const auto add = [&](Sums<double, 1>& sum, int64_t t) {
      sum.term[0] += (x(panel, t, i) - anchor_i) * (x(panel, t, j) - anchor_j);
    };
    for_each_window<kRows, Sums<double, 1>>(first, window, add, [&](int k, const Sums<double, 1>& sum) {
      if (!x.has_row(first + k)) return;
      const Moments a = moments[x.at(panel, first + k, i)], b = moments[x.at(panel, first + k, j)];
      const double offsets = (a.mean - anchor_i) * (b.mean - anchor_j) * window;
      output.write(panel * x.steps + first + k, i, j, (sum.term[0] - offsets) * (a.scale * b.scale));
    });
  }
};

template <typename scalar_t, int kWindows>
struct IncompletePairs {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const Moments* moments;
  const bool* incomplete;
  Output<scalar_t> output;
  int64_t window;
  double min_periods;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t pair, int64_t first) const {
    const int64_t i = pair / x.assets, j = pair % x.assets;
    const bool* missing = incomplete + (panel * ((x.steps + kRows - 1) / kRows) + first / kRows) * x.assets;
    if (!output.contains(i, j) || (!missing[i] && !missing[j])) return;
    for (int64_t t = first; t < first + kRows && x.has_row(t); ++t) {
      const double means = moments[x.at(panel, t, i)].mean + moments[x.at(panel, t, j)].mean;
      if (means == means) continue;
      const PairMoments s(x, panel, t, window, i, j);
      const double r = s.defined(min_periods) ? s.xy * (1 / std::sqrt(s.xx) * (1 / std::sqrt(s.yy))) : NAN;
      output.write(panel * x.steps + t, i, j, r);
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
    const Output<scalar_t> output{y.mutable_data_ptr<scalar_t>(), N, packed};
    dispatch_rows<32>(window, [&]<int kRows>() {
      with_moments<scalar_t, kRows>(y, panels, x, window, [&](const Moments* moments, const bool* incomplete) {
        launch_windows(y, pairs, CompletePairs<scalar_t, kRows>{x, moments, output, window});
        launch_windows(y, pairs,
                       IncompletePairs<scalar_t, kRows>{x, moments, incomplete, output, window, double(min_periods)});
      });
    });
  });
  return y;
}

Tensor rolling_correlation(const Tensor& returns, int64_t window, std::optional<int64_t> min_periods) {
  return correlations(returns, window, min_periods.value_or(window), false);
}

Tensor rolling_correlation_pairs(const Tensor& returns, int64_t window, std::optional<int64_t> min_periods) {
  return correlations(returns, window, min_periods.value_or(window), true);
}

}  // namespace

COMMODITY_CUDA(rolling_correlation)
COMMODITY_CUDA(rolling_correlation_pairs)
