// The gradient of rolling_correlation in its returns, from (..., T, N, N) matrices or (..., T, N (N - 1) / 2) pairs.
//
// With v_j the sum of squares of j about its mean m_j, over the rows common to i and j, and g the sum of the gradients
// of r_ij and r_ji:
// dx_j(s) = sum_i A_ij x_i(s) - B_ij x_j(s) + C_ij, summed over the windows that contain row s, where
// A = g / sqrt(v_i v_j), B = g r / v_j, C = B m_j - A m_i.
#include "correlation_device.h"

using namespace commodity;

namespace {

// The gradients of the correlations, and the correlations, as matrices or in packed form.
template <typename scalar_t>
struct Pairs {
  const scalar_t *grad, *correlation;
  int64_t assets;
  bool packed;

  // The gradient of pair i != j, summed over both halves of a matrix, and its correlation; zero if not finite.
  COMMODITY_INLINE void load(int64_t row, int64_t i, int64_t j, double& g, double& r) const {
    const int64_t low = i < j ? i : j, high = i < j ? j : i, pairs = assets * (assets - 1) / 2;
    const int64_t matrix = row * assets * assets;
    g = r = 0;
    if (packed)
      add(row * pairs + low * (2 * assets - low - 1) / 2 + high - low - 1, 1, g, r);
    else
      add(matrix + i * assets + j, 0.5, g, r), add(matrix + j * assets + i, 0.5, g, r);
  }

 private:
  // `share` of a correlation: 0.5 averages the two halves of a matrix.
  COMMODITY_INLINE void add(int64_t offset, double share, double& g, double& r) const {
    const double grad_value = read(grad + offset), correlation_value = read(correlation + offset);
    const double residue = (grad_value - grad_value) + (correlation_value - correlation_value);  // 0 if both are finite
    g += residue == 0 ? grad_value : 0, r += residue == 0 ? share * correlation_value : 0;
  }
};

// A, B and C of every window and pair, in three planes.
template <typename scalar_t, int kWindows>
struct ComputeWeights {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const Moments* moments;
  Pairs<scalar_t> pairs;
  const double* anchors;
  double* weights;
  int64_t window, plane;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t pair, int64_t first) const {
    const int64_t i = pair / x.assets, j = pair % x.assets;
    const double anchor_i = read(anchors + panel * x.assets + i), anchor_j = read(anchors + panel * x.assets + j);
    for (int64_t t = first; t < first + kRows && x.has_row(t); ++t) {
      const int64_t row = x.at(panel, t, 0), offset = row * x.assets + pair;
      double g = 0, r = 0;
      if (i != j) pairs.load(row / x.assets, i, j, g, r);
      double scale_i = 0, scale_j = 0, mean_i = 0, mean_j = 0;  // 1 / sqrt(v) and m
      if (g != 0) load_moments(panel, t, i, j, scale_i, scale_j, mean_i, mean_j);
      const bool varies = scale_i > 0 && scale_j > 0;
      const double a = varies ? g * (scale_i * scale_j) : 0;
      const double b = varies ? g * r * (scale_j * scale_j) : 0;
      weights[offset] = a, weights[plane + offset] = b;
      weights[2 * plane + offset] = varies ? b * (mean_j - anchor_j) - a * (mean_i - anchor_i) : 0;
    }
  }
  COMMODITY_INLINE void load_moments(int64_t panel, int64_t t, int64_t i, int64_t j, double& scale_i, double& scale_j,
                                     double& mean_i, double& mean_j) const {
    const Moments a = moments[x.at(panel, t, i)], b = moments[x.at(panel, t, j)];
    scale_i = a.scale, scale_j = b.scale, mean_i = a.mean, mean_j = b.mean;
    if (mean_i + mean_j == mean_i + mean_j) return;
    const PairMoments s(x, panel, t, window, i, j);
    scale_i = 1 / std::sqrt(s.xx), scale_j = 1 / std::sqrt(s.yy);
    mean_i = s.first_x + s.x / s.count, mean_j = s.first_y + s.y / s.count;
  }
};

template <typename scalar_t, int kWindows>
struct SumWeights {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const double *anchors, *weights;
  scalar_t* dx;
  int64_t window, plane;

  // Rows are numbered backward, from the last one: a row is in the windows that end in it or later.
  COMMODITY_INLINE void operator()(int64_t panel, int64_t j, int64_t first) const {
    double totals[kRows] = {};
    const double anchor_j = read(anchors + panel * x.assets + j);
    for (int64_t i = 0; i < x.assets; ++i) {
      const double anchor_i = read(anchors + panel * x.assets + i);
      const auto add = [&](Sums<double, 3>& sums, int64_t back) {
        if (!x.has_row(back)) return;
        const int64_t offset = (x.at(panel, x.steps - 1 - back, 0) + i) * x.assets + j;
        for (int p = 0; p < 3; ++p) sums.term[p] += read(weights + p * plane + offset);
      };
      for_each_window<kRows, Sums<double, 3>>(first, window, add, [&](int k, const Sums<double, 3>& sums) {
        const int64_t s = x.steps - 1 - first - k;
        const double x_i = x(panel, s, i) - anchor_i, x_j = x(panel, s, j) - anchor_j;
        totals[k] += x_i + x_j == x_i + x_j ? sums.term[0] * x_i - sums.term[1] * x_j + sums.term[2] : 0;
      });
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (x.has_row(first + k)) dx[x.at(panel, x.steps - 1 - first - k, j)] = static_cast<scalar_t>(totals[k]);
  }
};

template <typename scalar_t, int kRows>
void run(const Tensor& returns, const Tensor& grad, const Tensor& correlation, int64_t window, Tensor& dx) {
  const Panels panels(returns), pairs(panels.batch, panels.steps, panels.assets * panels.assets);
  const bool packed = grad.dim() == returns.dim();
  const int64_t N = panels.assets, size = packed ? N * (N - 1) / 2 : N * N;
  STD_TORCH_CHECK(grad.numel() == panels.batch * panels.steps * size,
                  "rolling_correlation_backward: grad must be (..., T, N, N) or (..., T, N (N - 1) / 2)");
  const Pairs<scalar_t> values{grad.const_data_ptr<scalar_t>(), correlation.const_data_ptr<scalar_t>(), panels.assets,
                               packed};
  const auto x = finite_values<scalar_t>(returns, panels);
  const int64_t plane = pairs.batch * pairs.size();
  const Tensor anchors = scratch(dx, panels.batch * panels.assets), weights = scratch(dx, 3 * plane);
  launch_grid(dx, Grid(panels.batch, panels.assets, 1), FirstFinite<scalar_t>{x, data_ptr<double>(anchors)});
  with_moments<scalar_t, kRows>(dx, panels, x, window, [&](const Moments* moments, const bool*) {
    launch_windows(dx, pairs,
                   ComputeWeights<scalar_t, kRows>{x, moments, values, data_ptr<double>(anchors),
                                                   data_ptr<double>(weights), window, plane});
  });
  launch_windows(dx, panels,
                 SumWeights<scalar_t, kRows>{x, data_ptr<double>(anchors), data_ptr<double>(weights),
                                             dx.mutable_data_ptr<scalar_t>(), window, plane});
}

Tensor rolling_correlation_backward(const Tensor& returns_, const Tensor& grad_, const Tensor& correlation_,
                                    int64_t window) {
  STD_TORCH_CHECK(window >= 1 && returns_.dim() >= 2, "rolling_correlation_backward: returns (..., T, N), window >= 1");
  check_same("rolling_correlation_backward", grad_, correlation_);
  STD_TORCH_CHECK(grad_.scalar_type() == returns_.scalar_type(),
                  "rolling_correlation_backward: all tensors must have one dtype");
  const Tensor returns = contiguous(returns_), grad = contiguous(grad_), correlation = contiguous(correlation_);
  Tensor dx = new_empty(returns, returns.sizes());
  dispatch("rolling_correlation_backward", returns, [&]<typename scalar_t>() {
    dispatch_rows<8>(window, [&]<int kRows>() { run<scalar_t, kRows>(returns, grad, correlation, window, dx); });
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(rolling_correlation_backward)
