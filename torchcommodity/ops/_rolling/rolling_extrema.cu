// Rolling maximum or minimum of the finite values in each window of (..., T, N), and its lag in rows. device_windows.h
// explains the scheme.
#include "device_windows.h"

using namespace commodity;

namespace {

// The maximum, its row (the latest of equal values) and the number of values. Minima are maxima of -x.
template <typename scalar_t>
struct Maximum {
  scalar_t value = -INFINITY;
  int64_t row = -1, count = 0;

  COMMODITY_INLINE Maximum combine(const Maximum& other) const {
    const bool better = other.value > value || (other.value == value && other.row > row);
    return {better ? other.value : value, better ? other.row : row, count + other.count};
  }
};

template <typename scalar_t, int kWindows>
struct RollingExtrema {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t *lag, window, min_periods;
  scalar_t sign;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto add = [&](Maximum<scalar_t>& maximum, int64_t t) {
      const scalar_t value = sign * x(panel, t, n);
      if (value == value) maximum = maximum.combine({value, t, 1});
    };
    for_each_window<kRows, Maximum<scalar_t>>(first, window, add, [&](int k, const Maximum<scalar_t>& maximum) {
      if (!x.has_row(first + k)) return;
      const bool defined = maximum.count >= min_periods;
      y[x.at(panel, first + k, n)] = defined ? sign * maximum.value : NAN;
      lag[x.at(panel, first + k, n)] = defined ? first + k - maximum.row : -1;
    });
  }
};

std::tuple<Tensor, Tensor> rolling_extrema(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods,
                                           bool largest) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_extrema: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  Tensor lag = new_empty(x, x.sizes(), torch::headeronly::ScalarType::Long);
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  dispatch("rolling_extrema", x, [&]<typename scalar_t>() {
    dispatch_rows<8>(rows, [&]<int kRows>() {
      launch_windows(x, panels,
                     RollingExtrema<scalar_t, kRows>{
                         finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), data_ptr<int64_t>(lag), rows,
                         std::max<int64_t>(1, min_periods.value_or(window)), scalar_t(largest ? 1 : -1)});
    });
  });
  return {y, lag};
}

}  // namespace

COMMODITY_CUDA(rolling_extrema)
