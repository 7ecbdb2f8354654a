// What the rolling skewness (order 3) or kurtosis (order 4) of (..., T, N) makes of a gradient: of every window the
// polynomial that it pushes to what it holds, then, for every row, the sum over the windows that hold it.
#include "device_windows.h"

using namespace commodity;

namespace {

// lead, tilt, rest and mean of each window, in planes: it pushes lead z^(order - 1) - tilt z - rest, with z = x_s -
// mean.
template <typename scalar_t>
struct Push {
  FiniteValues<scalar_t> x;
  const scalar_t *grad, *y;
  double* to;
  int64_t window, plane, order;

  COMMODITY_INLINE double value(int64_t panel, int64_t t, int64_t n) const { return x(panel, t, n); }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    double count = 0, first = 0, sum = 0, second = 0, third = 0;
    for (int64_t s = t; s > t - window && s >= 0; --s) {
      const double v = value(panel, s, n);
      if (v != v) continue;
      if (count == 0) first = v;
      count += 1, sum += v - first;
    }
    const double mean = first + sum / count;
    for (int64_t s = t; s > t - window && s >= 0; --s) {
      const double z = value(panel, s, n) - mean;
      if (z == z) second += z * z, third += z * z * z;
    }
    write(x.at(panel, t, n), count, mean, second, third);
  }
  COMMODITY_INLINE void write(int64_t at, double n, double mean, double second, double third) const {
    const double shape = read(y + at), scale = (n - 1) / ((n - 2) * (n - 3));
    const bool known = shape == shape && n >= order && second > 0, skew = order == 3;
    const double g = known ? read(grad + at) * order / second : 0;
    const double lead = g * (skew ? n * std::sqrt(n - 1) / (n - 2) / std::sqrt(second) : scale * (n + 1) * n / second);
    to[at] = known ? lead : 0;
    to[plane + at] = known ? g * (skew ? shape : shape + 3 * scale * (n - 1)) : 0;
    to[2 * plane + at] = known ? lead * (skew ? second : third) / n : 0;
    to[3 * plane + at] = known ? mean : 0;
  }
};

template <typename scalar_t>
struct Spread {
  FiniteValues<scalar_t> x;
  const double* pushes;
  scalar_t* dx;
  int64_t window, plane, order;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t s) const {
    const double value = x(panel, s, n);
    double all = 0;
    for (int64_t t = s; t < s + window && t < x.steps; ++t) {
      const double* push = pushes + x.at(panel, t, n);
      const double z = value - read(push + 3 * plane), power = order == 3 ? z * z : z * z * z;
      all += read(push) * power - read(push + plane) * z - read(push + 2 * plane);
    }
    dx[x.at(panel, s, n)] = static_cast<scalar_t>(value == value ? all : 0);
  }
};

Tensor rolling_shape_adjoint(const Tensor& grad_, const Tensor& x_, const Tensor& y_, int64_t window, int64_t order) {
  check_same("rolling_shape_adjoint", grad_, x_);
  check_same("rolling_shape_adjoint", y_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1 && (order == 3 || order == 4),
                  "rolling_shape_adjoint: x (..., T, N), window >= 1, order 3 or 4");
  const Tensor grad = contiguous(grad_), x = contiguous(x_), y = contiguous(y_);
  Tensor dx = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window), plane = x.numel();
  const Tensor pushes = scratch(x, 4 * plane);
  const Grid grid(panels.batch, panels.assets, panels.steps);
  dispatch("rolling_shape_adjoint", x, [&]<typename scalar_t>() {
    const auto values = finite_values<scalar_t>(x, panels);
    launch_grid(x, grid,
                Push<scalar_t>{values, grad.const_data_ptr<scalar_t>(), y.const_data_ptr<scalar_t>(),
                               data_ptr<double>(pushes), rows, plane, order});
    launch_grid(x, grid,
                Spread<scalar_t>{values, data_ptr<double>(pushes), data_ptr<scalar_t>(dx), rows, plane, order});
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(rolling_shape_adjoint)
