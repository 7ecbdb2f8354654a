// Rolling mean of the finite values in each window of (..., T, N). device_windows.h explains the scheme.
#include <climits>

#include "device_windows.h"

using namespace commodity;

namespace {

struct Sum {
  using Anchor = NoAnchor;
  static constexpr double kMissing = NAN;
  double total = 0;
  int count = 0;

  template <typename Value>
  COMMODITY_INLINE void add(NoAnchor, Value value, int) {
    const bool valid = is_finite(value);
    total += valid ? value : Value(0), count += valid;
  }
};

template <typename scalar_t, int kWindows>
struct RollingMean {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t window;
  int min_periods;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const WindowRows<scalar_t> rows(x.column(panel, n), x.assets, first, x.steps, window, kRows);
    write_windows<kRows, Sum>(rows, y + x.at(panel, first, n),
                              [&](int, const Sum& older, NoAnchor, const Sum& newer, NoAnchor) {
                                const int count = older.count + newer.count;
                                const scalar_t mean = static_cast<scalar_t>(divide(older.total + newer.total, count));
                                return count >= min_periods ? mean : scalar_t(NAN);
                              });
  }
};

Tensor rolling_mean(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_mean: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  dispatch("rolling_mean", x, [&]<typename scalar_t>() {
    dispatch_rows<16>(rows, [&]<int kRows>() {
      launch_windows(
          x, panels,
          RollingMean<scalar_t, kRows>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), rows,
                                       static_cast<int>(std::min<int64_t>(min_periods.value_or(window), INT_MAX))});
    });
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(rolling_mean)
