// How many finite values of the last `window` rows of (..., T, N) are less than this row's, equal to it, and there.
// An item ranks a few rows: it reads what their windows hold once.
#include "device_windows.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Ranks {
  static constexpr int kRows = 8;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t window;
  double least, low, high;
  bool ascending, share;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    scalar_t now[kRows];
    int less[kRows] = {}, equal[kRows] = {}, held[kRows] = {};
#pragma unroll
    for (int k = 0; k < kRows; ++k) now[k] = x(panel, first + k, n);
    for (int64_t t = first - window + 1; t < first + kRows; ++t) {
      const scalar_t value = x(panel, t, n);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        const bool inside = t > first + k - window && t <= first + k && value == value;
        held[k] += inside;
        less[k] += inside && (ascending ? value < now[k] : value > now[k]);
        equal[k] += inside && value == now[k];
      }
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const double rank = less[k] + low + high * equal[k];
      const bool known = now[k] == now[k] && held[k] >= least;
      if (x.has_row(first + k)) y[x.at(panel, first + k, n)] = scalar_t(known ? (share ? rank / held[k] : rank) : NAN);
    }
  }
};

Tensor rolling_rank(const Tensor& x_, int64_t window, int64_t min_periods, double low, double high, bool ascending,
                    bool pct) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_rank: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  const Panels panels(x);
  dispatch("rolling_rank", x, [&]<typename scalar_t>() {
    launch_windows(
        x, panels,
        Ranks<scalar_t>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), clamp_window(panels, window),
                        double(std::max<int64_t>(1, min_periods)), low, high, ascending, pct});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(rolling_rank)
