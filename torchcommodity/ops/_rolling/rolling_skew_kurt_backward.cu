// Gradient of the rolling skewness (order 3) or kurtosis (order 4) of (..., T, N): first the polynomial that each
// window adds to the gradient of its rows, then, for every row, the sum over the windows that contain it.
#include "device_windows.h"

using namespace commodity;

namespace {

// The polynomial leading z^(order - 1) - linear z - constant of each window, with z = x_s - mean. Four planes: leading,
// linear, constant, mean.
template <typename scalar_t>
struct ComputePolynomials {
  FiniteValues<scalar_t> x;
  const scalar_t *grad, *y;
  double* output;
  int64_t window, plane, order;

  COMMODITY_INLINE double value(int64_t panel, int64_t t, int64_t n) const { return x(panel, t, n); }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    double count = 0, anchor = 0, sum = 0, m2 = 0, m3 = 0;
    for (int64_t s = t; s > t - window && s >= 0; --s) {
      const double v = value(panel, s, n);
      if (v != v) continue;
      if (count == 0) anchor = v;
      count += 1, sum += v - anchor;
    }
    const double mean = anchor + sum / count;
    for (int64_t s = t; s > t - window && s >= 0; --s) {
      const double z = value(panel, s, n) - mean;
      if (z == z) m2 += z * z, m3 += z * z * z;
    }
    write(x.at(panel, t, n), count, mean, m2, m3);
  }
  COMMODITY_INLINE void write(int64_t i, double n, double mean, double m2, double m3) const {
    const double y_t = read(y + i), kurt_scale = (n - 1) / ((n - 2) * (n - 3));
    const bool defined = y_t == y_t && n >= order && m2 > 0, skew = order == 3;
    const double g = defined ? read(grad + i) * order / m2 : 0;
    const double leading = g * (skew ? n * std::sqrt(n - 1) / (n - 2) / std::sqrt(m2) : kurt_scale * (n + 1) * n / m2);
    output[i] = defined ? leading : 0;
    output[plane + i] = defined ? g * (skew ? y_t : y_t + 3 * kurt_scale * (n - 1)) : 0;
    output[2 * plane + i] = defined ? leading * (skew ? m2 : m3) / n : 0;
    output[3 * plane + i] = defined ? mean : 0;
  }
};

template <typename scalar_t>
struct SumPolynomials {
  FiniteValues<scalar_t> x;
  const double* polynomials;
  scalar_t* dx;
  int64_t window, plane, order;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t s) const {
    const double value = x(panel, s, n);
    double sum = 0;
    for (int64_t t = s; t < s + window && t < x.steps; ++t) {
      const double* polynomial = polynomials + x.at(panel, t, n);
      const double z = value - read(polynomial + 3 * plane), power = order == 3 ? z * z : z * z * z;
      sum += read(polynomial) * power - read(polynomial + plane) * z - read(polynomial + 2 * plane);
    }
    dx[x.at(panel, s, n)] = static_cast<scalar_t>(value == value ? sum : 0);
  }
};

Tensor rolling_skew_kurt_backward(const Tensor& grad_, const Tensor& x_, const Tensor& y_, int64_t window,
                                  int64_t order) {
  check_same("rolling_skew_kurt_backward", grad_, x_);
  check_same("rolling_skew_kurt_backward", y_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1 && (order == 3 || order == 4),
                  "rolling_skew_kurt_backward: x (..., T, N), window >= 1, order 3 or 4");
  const Tensor grad = contiguous(grad_), x = contiguous(x_), y = contiguous(y_);
  Tensor dx = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window), plane = x.numel();
  const Tensor polynomials = scratch(x, 4 * plane);
  const Grid grid(panels.batch, panels.assets, panels.steps);
  dispatch("rolling_skew_kurt_backward", x, [&]<typename scalar_t>() {
    const auto values = finite_values<scalar_t>(x, panels);
    launch_grid(x, grid,
                ComputePolynomials<scalar_t>{values, grad.const_data_ptr<scalar_t>(), y.const_data_ptr<scalar_t>(),
                                             data_ptr<double>(polynomials), rows, plane, order});
    launch_grid(
        x, grid,
        SumPolynomials<scalar_t>{values, data_ptr<double>(polynomials), data_ptr<scalar_t>(dx), rows, plane, order});
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(rolling_skew_kurt_backward)
