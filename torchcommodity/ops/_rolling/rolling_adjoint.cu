// What the rolling mean (order 1) or variance (order 2) or its root of (..., T, N) makes of a gradient: of every window
// what it pushes back, then, for every row, the sum over the windows that hold it.
#include "device_windows.h"

using namespace commodity;

namespace {

// push_t = grad_t / n_t, or 2 grad_t / (n_t - ddof), and push_t times the mean, in planes of their own.
template <typename scalar_t, int kWindows>
struct Push {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const scalar_t *grad, *root;
  const double* anchors;
  double* to;
  int64_t window, plane;
  double least, ddof;
  bool variance;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const double anchor = read(anchors + panel * x.assets + n);
    const auto see = [&](Sums<double, 2>& sums, int64_t t) {
      const double value = x(panel, t, n) - anchor;
      if (value == value) sums.term[0] += value, sums.term[1] += 1;
    };
    for_each_window<kRows, Sums<double, 2>>(first, window, see, [&](int k, const Sums<double, 2>& sums) {
      if (!x.has_row(first + k)) return;
      const int64_t at = x.at(panel, first + k, n);
      const double held = sums.term[1], deviation = root ? read(root + at) : 0.5;
      const bool known = held >= least && deviation > 0;
      to[at] = known ? read(grad + at) / (variance ? (held - ddof) * deviation : held) : 0;
      to[plane + at] = known ? to[at] * (sums.term[0] / held) : 0;
    });
  }
};

// dx_s = sum of push_t, or x_s sum of push_t - sum of push_t mean_t, over the windows t that hold s. Rows are numbered
// from the last one.
template <typename scalar_t, int kWindows>
struct Spread {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const double *anchors, *pushes;
  scalar_t* dx;
  int64_t window, plane;
  bool variance;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const double anchor = read(anchors + panel * x.assets + n);
    const auto see = [&](Sums<double, 2>& sums, int64_t back) {
      if (!x.has_row(back)) return;
      const int64_t at = x.at(panel, x.steps - 1 - back, n);
      sums.term[0] += read(pushes + at), sums.term[1] += variance ? read(pushes + plane + at) : 0;
    };
    for_each_window<kRows, Sums<double, 2>>(first, window, see, [&](int k, const Sums<double, 2>& sums) {
      if (!x.has_row(first + k)) return;
      const int64_t s = x.steps - 1 - first - k;
      const double value = x(panel, s, n) - anchor;
      const double all = variance ? value * sums.term[0] - sums.term[1] : sums.term[0];
      dx[x.at(panel, s, n)] = static_cast<scalar_t>(value == value ? all : 0);
    });
  }
};

Tensor rolling_adjoint(const Tensor& grad_, const Tensor& x_, const std::optional<Tensor>& root_, int64_t window,
                       int64_t min_periods, int64_t ddof, int64_t order) {
  check_same("rolling_adjoint", grad_, x_);
  if (root_) check_same("rolling_adjoint", *root_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_adjoint: x (..., T, N), window >= 1");
  const Tensor grad = contiguous(grad_), x = contiguous(x_);
  const std::optional<Tensor> root = root_ ? std::optional(contiguous(*root_)) : std::nullopt;
  Tensor dx = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window), plane = x.numel();
  const Tensor anchors = scratch(x, panels.batch * panels.assets), pushes = scratch(x, 2 * plane);
  const double *anchor = data_ptr<double>(anchors), *push = data_ptr<double>(pushes);
  const bool variance = order == 2;
  dispatch("rolling_adjoint", x, [&]<typename scalar_t>() {
    const auto values = finite_values<scalar_t>(x, panels);
    launch_grid(x, Grid(panels.batch, panels.assets, 1), FirstFinite<scalar_t>{values, data_ptr<double>(anchors)});
    dispatch_rows<8>(rows, [&]<int kRows>() {
      launch_windows(
          x, panels,
          Push<scalar_t, kRows>{values, grad.const_data_ptr<scalar_t>(),
                                root ? root->const_data_ptr<scalar_t>() : nullptr, anchor, data_ptr<double>(pushes),
                                rows, plane, double(std::max(min_periods, ddof + 1)), double(ddof), variance});
      launch_windows(x, panels,
                     Spread<scalar_t, kRows>{values, anchor, push, data_ptr<scalar_t>(dx), rows, plane, variance});
    });
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(rolling_adjoint)
