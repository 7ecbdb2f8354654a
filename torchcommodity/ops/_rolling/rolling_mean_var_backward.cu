// Gradient of the rolling mean (order 1), variance (order 2) or standard deviation (order 2 with `std`) of (..., T, N):
// first the weight of each window, then, for every row, the sum over the windows that contain it.
#include "device_windows.h"

using namespace commodity;

namespace {

// w_t = grad_t / n_t, 2 grad_t / (n_t - ddof), or half of that over std_t; and w_t times the mean, in a second plane.
template <typename scalar_t, int kWindows>
struct ComputeWeights {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const scalar_t *grad, *deviation;
  const double* anchors;
  double* weights;
  int64_t window, plane;
  double min_periods, ddof;
  bool variance;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const double anchor = read(anchors + panel * x.assets + n);
    const auto add = [&](Sums<double, 2>& sums, int64_t t) {
      const double value = x(panel, t, n) - anchor;
      if (value == value) sums.term[0] += value, sums.term[1] += 1;
    };
    for_each_window<kRows, Sums<double, 2>>(first, window, add, [&](int k, const Sums<double, 2>& sums) {
      if (!x.has_row(first + k)) return;
      const int64_t i = x.at(panel, first + k, n);
      const double count = sums.term[1], scale = deviation ? read(deviation + i) : 0.5;
      const bool defined = count >= min_periods && scale > 0;
      weights[i] = defined ? read(grad + i) / (variance ? (count - ddof) * scale : count) : 0;
      weights[plane + i] = defined ? weights[i] * (sums.term[0] / count) : 0;
    });
  }
};

// dx_s = sum of w_t, or x_s sum of w_t - sum of w_t mean_t, over the windows t that contain row s. Rows are numbered
// backward, from the last one.
template <typename scalar_t, int kWindows>
struct SumWeights {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const double *anchors, *weights;
  scalar_t* dx;
  int64_t window, plane;
  bool variance;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const double anchor = read(anchors + panel * x.assets + n);
    const auto add = [&](Sums<double, 2>& sums, int64_t back) {
      if (!x.has_row(back)) return;
      const int64_t i = x.at(panel, x.steps - 1 - back, n);
      sums.term[0] += read(weights + i), sums.term[1] += variance ? read(weights + plane + i) : 0;
    };
    for_each_window<kRows, Sums<double, 2>>(first, window, add, [&](int k, const Sums<double, 2>& sums) {
      if (!x.has_row(first + k)) return;
      const int64_t s = x.steps - 1 - first - k;
      const double value = x(panel, s, n) - anchor;
      const double gradient = variance ? value * sums.term[0] - sums.term[1] : sums.term[0];
      dx[x.at(panel, s, n)] = static_cast<scalar_t>(value == value ? gradient : 0);
    });
  }
};

Tensor rolling_mean_var_backward(const Tensor& grad_, const Tensor& x_, const std::optional<Tensor>& deviation_,
                                 int64_t window, int64_t min_periods, int64_t ddof, int64_t order) {
  check_same("rolling_mean_var_backward", grad_, x_);
  if (deviation_) check_same("rolling_mean_var_backward", *deviation_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_mean_var_backward: x (..., T, N), window >= 1");
  const Tensor grad = contiguous(grad_), x = contiguous(x_);
  const std::optional<Tensor> deviation = deviation_ ? std::optional(contiguous(*deviation_)) : std::nullopt;
  Tensor dx = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window), plane = x.numel();
  const Tensor anchors = scratch(x, panels.batch * panels.assets), weights = scratch(x, 2 * plane);
  const double *anchor = data_ptr<double>(anchors), *weight = data_ptr<double>(weights);
  const bool variance = order == 2;
  dispatch("rolling_mean_var_backward", x, [&]<typename scalar_t>() {
    const auto values = finite_values<scalar_t>(x, panels);
    launch_grid(x, Grid(panels.batch, panels.assets, 1), FirstFinite<scalar_t>{values, data_ptr<double>(anchors)});
    dispatch_rows<8>(rows, [&]<int kRows>() {
      launch_windows(x, panels,
                     ComputeWeights<scalar_t, kRows>{values, grad.const_data_ptr<scalar_t>(),
                                                     deviation ? deviation->const_data_ptr<scalar_t>() : nullptr,
                                                     anchor, data_ptr<double>(weights), rows, plane,
                                                     double(std::max(min_periods, ddof + 1)), double(ddof), variance});
      launch_windows(
          x, panels,
          SumWeights<scalar_t, kRows>{values, anchor, weight, data_ptr<scalar_t>(dx), rows, plane, variance});
    });
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(rolling_mean_var_backward)
