// Rolling maximum or minimum of the finite values in each window of (..., T, N), and its lag in rows. device_windows.h
// explains the scheme.
#include <climits>

#include "device_windows.h"

using namespace commodity;

namespace {

// The maximum of sign * x, its row (the latest of equal values) and the number of values.
template <typename scalar_t, int sign>
struct Maximum {
  using Anchor = NoAnchor;
  static constexpr double kMissing = NAN;
  scalar_t value = -INFINITY;
  int row = -1, count = 0;

  COMMODITY_INLINE void add(NoAnchor, scalar_t x, int x_row) {
    const bool valid = is_finite(x);
    const Maximum larger = combine({sign * x, x_row, 1});
    value = valid ? larger.value : value, row = valid ? larger.row : row, count += valid;
  }
  COMMODITY_INLINE Maximum combine(const Maximum& other) const {
    const bool better = other.value > value || (other.value == value && other.row > row);
    return {better ? other.value : value, better ? other.row : row, count + other.count};
  }
};

template <typename scalar_t, int sign, int kWindows>
struct RollingExtrema {
  static constexpr int kRows = kWindows;
  using Sum = Maximum<scalar_t, sign>;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t *lag, window;
  int min_periods;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const WindowRows<scalar_t> rows(x.column(panel, n), x.assets, first, x.steps, window, kRows);
    int64_t i = x.at(panel, first, n);
    sum_windows<kRows, Sum>(rows, [&](int k, const Sum& older, NoAnchor, const Sum& newer, NoAnchor) {
      const Sum maximum = older.combine(newer);
      const bool defined = maximum.count >= min_periods;
      if (k < rows.rows) {
        y[i] = defined ? sign * maximum.value : scalar_t(NAN);
        lag[i] = defined ? rows.window - 1 + k - maximum.row : -1;
      }
      i += x.assets;
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
  const int count = static_cast<int>(std::clamp<int64_t>(min_periods.value_or(window), 1, INT_MAX));
  dispatch("rolling_extrema", x, [&]<typename scalar_t>() {
    dispatch_rows<8>(rows, [&]<int kRows>() {
      const auto launch = [&]<int sign>() {
        launch_windows(x, panels,
                       RollingExtrema<scalar_t, sign, kRows>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y),
                                                             data_ptr<int64_t>(lag), rows, count});
      };
      largest ? launch.template operator()<1>() : launch.template operator()<-1>();
    });
  });
  return {y, lag};
}

}  // namespace

COMMODITY_CUDA(rolling_extrema)
