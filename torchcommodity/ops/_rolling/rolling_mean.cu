// Rolling mean of the finite values in each window of (..., T, N). device_windows.h explains the scheme.
#include "device_windows.h"

using namespace commodity;

namespace {

template <typename scalar_t, int kWindows>
struct RollingMean {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t window;
  double min_periods;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto add = [&](Sums<double, 2>& sums, int64_t t) {
      const double value = x(panel, t, n);
      if (value == value) sums.term[0] += value, sums.term[1] += 1;
    };
    for_each_window<kRows, Sums<double, 2>>(first, window, add, [&](int k, const Sums<double, 2>& sums) {
      const double mean = sums.term[1] >= min_periods ? sums.term[0] / sums.term[1] : NAN;
      if (x.has_row(first + k)) y[x.at(panel, first + k, n)] = static_cast<scalar_t>(mean);
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
      launch_windows(x, panels,
                     RollingMean<scalar_t, kRows>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), rows,
                                                  double(min_periods.value_or(window))});
    });
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(rolling_mean)
