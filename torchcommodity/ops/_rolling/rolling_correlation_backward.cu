// The gradient of rolling_correlation in its returns, from (..., T, N, N) matrices or (..., T, N (N - 1) / 2) pairs.
//
// With v_j the sum of squares of j about its mean m_j, over the rows that i and j share, and g summed over both halves:
// dx_j(s) = sum_i A_ij x_i(s) - B_ij x_j(s) + C_ij, summed over the windows that hold s, where
// A = g / sqrt(v_i v_j), B = g r / v_j, C = B m_j - A m_i.
#include "correlation_device.h"

using namespace commodity;

namespace {

// Element (i, j) of the matrix in a row, of gradients or of correlations; what is not finite counts as zero.
template <typename scalar_t>
struct Symmetric {
  const scalar_t* from;
  int64_t assets;
  bool packed;

  // `share` of each half of a full matrix: 1 adds them, 0.5 takes their mean.
  COMMODITY_INLINE double at(int64_t row, int64_t i, int64_t j, double share) const {
    const int64_t low = i < j ? i : j, high = i < j ? j : i, pairs = assets * (assets - 1) / 2;
    if (packed) return finite(row * pairs + low * (2 * assets - low - 1) / 2 + high - low - 1);
    const int64_t matrix = row * assets * assets;
    return share * (finite(matrix + i * assets + j) + finite(matrix + j * assets + i));
  }
  COMMODITY_INLINE double finite(int64_t at) const {
    const scalar_t value = read(from + at);
    return value - value == 0 ? value : 0;
  }
};

// A, B and C of every window and pair, in planes of their own.
template <typename scalar_t, int kWindows>
struct Weights {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const Moments* moments;
  Symmetric<scalar_t> gradients, correlations;
  const double* anchors;
  double* to;
  int64_t window, plane;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t pair, int64_t first) const {
    const int64_t i = pair / x.assets, j = pair % x.assets;
    const double anchor_i = read(anchors + panel * x.assets + i), anchor_j = read(anchors + panel * x.assets + j);
    for (int64_t t = first; t < first + kRows && x.has_row(t); ++t) {
      const int64_t row = x.at(panel, t, 0), at = row * x.assets + pair;
      const double g = i == j ? 0 : gradients.at(row / x.assets, i, j, 1);
      double own = 0, other = 0, mean_i = 0, mean_j = 0;  // 1 / sqrt(v), and m
      if (g != 0) scales(panel, t, i, j, own, other, mean_i, mean_j);
      const bool moves = own > 0 && other > 0;
      const double a = moves ? g * (own * other) : 0;
      const double b = moves ? g * correlations.at(row / x.assets, i, j, 0.5) * (other * other) : 0;
      to[at] = a, to[plane + at] = b;
      to[2 * plane + at] = moves ? b * (mean_j - anchor_j) - a * (mean_i - anchor_i) : 0;
    }
  }
  COMMODITY_INLINE void scales(int64_t panel, int64_t t, int64_t i, int64_t j, double& own, double& other,
                               double& mean_i, double& mean_j) const {
    const Moments of_i = moments[x.at(panel, t, i)], of_j = moments[x.at(panel, t, j)];
    own = of_i.scale, other = of_j.scale, mean_i = of_i.mean, mean_j = of_j.mean;
    if (mean_i + mean_j == mean_i + mean_j) return;
    const PairMoments s(x, panel, t, window, i, j);
    own = 1 / std::sqrt(s.xx), other = 1 / std::sqrt(s.yy);
    mean_i = s.first_x + s.x / s.count, mean_j = s.first_y + s.y / s.count;
  }
};

template <typename scalar_t, int kWindows>
struct Spread {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const double *anchors, *weights;
  scalar_t* dx;
  int64_t window, plane;

  // Rows are numbered from the last one: a row is held by the windows that end in it and after it.
  COMMODITY_INLINE void operator()(int64_t panel, int64_t j, int64_t first) const {
    double totals[kRows] = {};
    const double anchor_j = read(anchors + panel * x.assets + j);
    for (int64_t i = 0; i < x.assets; ++i) {
      const double anchor_i = read(anchors + panel * x.assets + i);
      const auto see = [&](Sums<double, 3>& sums, int64_t back) {
        if (!x.has_row(back)) return;
        const int64_t at = (x.at(panel, x.steps - 1 - back, 0) + i) * x.assets + j;
        for (int p = 0; p < 3; ++p) sums.term[p] += read(weights + p * plane + at);
      };
      for_each_window<kRows, Sums<double, 3>>(first, window, see, [&](int k, const Sums<double, 3>& sums) {
        const int64_t s = x.steps - 1 - first - k;
        const double own = x(panel, s, i) - anchor_i, other = x(panel, s, j) - anchor_j;
        totals[k] += own + other == own + other ? sums.term[0] * own - sums.term[1] * other + sums.term[2] : 0;
      });
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (x.has_row(first + k)) dx[x.at(panel, x.steps - 1 - first - k, j)] = static_cast<scalar_t>(totals[k]);
  }
};

template <typename scalar_t, int kRows>
void all_gradients(const Tensor& returns, const Tensor& grad, const Tensor& correlation, int64_t window, Tensor& dx) {
  const Panels panels(returns), pairs(panels.batch, panels.steps, panels.assets * panels.assets);
  const bool packed = grad.dim() == returns.dim();
  const Symmetric<scalar_t> gradients{grad.const_data_ptr<scalar_t>(), panels.assets, packed};
  const Symmetric<scalar_t> correlations{correlation.const_data_ptr<scalar_t>(), panels.assets, packed};
  const auto x = finite_values<scalar_t>(returns, panels);
  const int64_t plane = pairs.batch * pairs.size();
  const Tensor anchors = scratch(dx, panels.batch * panels.assets), weights = scratch(dx, 3 * plane);
  launch_grid(dx, Grid(panels.batch, panels.assets, 1), FirstFinite<scalar_t>{x, data_ptr<double>(anchors)});
  with_moments<scalar_t, kRows>(dx, panels, x, window, [&](const Moments* moments, const bool*) {
    launch_windows(dx, pairs,
                   Weights<scalar_t, kRows>{x, moments, gradients, correlations, data_ptr<double>(anchors),
                                            data_ptr<double>(weights), window, plane});
  });
  launch_windows(dx, panels,
                 Spread<scalar_t, kRows>{x, data_ptr<double>(anchors), data_ptr<double>(weights),
                                         dx.mutable_data_ptr<scalar_t>(), window, plane});
}

Tensor rolling_correlation_backward(const Tensor& returns_, const Tensor& grad_, const Tensor& correlation_,
                                    int64_t window) {
  STD_TORCH_CHECK(window >= 1 && returns_.dim() >= 2, "rolling_correlation_backward: returns (..., T, N), window >= 1");
  check_same("rolling_correlation_backward", grad_, correlation_);
  STD_TORCH_CHECK(grad_.scalar_type() == returns_.scalar_type(), "rolling_correlation_backward: dtypes must be one");
  const Tensor returns = contiguous(returns_), grad = contiguous(grad_), correlation = contiguous(correlation_);
  Tensor dx = new_empty(returns, returns.sizes());
  dispatch("rolling_correlation_backward", returns, [&]<typename scalar_t>() {
    dispatch_rows<8>(window,
                     [&]<int kRows>() { all_gradients<scalar_t, kRows>(returns, grad, correlation, window, dx); });
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(rolling_correlation_backward)
