// Rolling rank of the latest value in each window of (..., T, N). An item ranks a few consecutive rows and reads the
// rows of their windows once.
#include "device_windows.h"

using namespace commodity;

namespace {

// rank = number of smaller values + low + high * number of equal values, x_t included.
template <typename scalar_t>
struct RollingRank {
  static constexpr int kRows = 8;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t window;
  double min_periods, low, high;
  bool ascending, pct;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    scalar_t latest[kRows];
    int less[kRows] = {}, equal[kRows] = {}, count[kRows] = {};
#pragma unroll
    for (int k = 0; k < kRows; ++k) latest[k] = x(panel, first + k, n);
    for (int64_t t = first - window + 1; t < first + kRows; ++t) {
      const scalar_t value = x(panel, t, n);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        const bool inside = t > first + k - window && t <= first + k && value == value;
        count[k] += inside;
        less[k] += inside && (ascending ? value < latest[k] : value > latest[k]);
        equal[k] += inside && value == latest[k];
      }
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const double rank = less[k] + low + high * equal[k];
      const bool defined = latest[k] == latest[k] && count[k] >= min_periods;
      if (x.has_row(first + k)) y[x.at(panel, first + k, n)] = scalar_t(defined ? (pct ? rank / count[k] : rank) : NAN);
    }
  }
};

Tensor rolling_rank(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods, double low, double high,
                    bool ascending, bool pct) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_rank: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  const Panels panels(x);
  dispatch("rolling_rank", x, [&]<typename scalar_t>() {
    launch_windows(
        x, panels,
        RollingRank<scalar_t>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), clamp_window(panels, window),
                              double(std::max<int64_t>(1, min_periods.value_or(window))), low, high, ascending, pct});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(rolling_rank)
