// The largest or smallest finite value among the last `window` rows of (..., T, N), and how many rows ago it stood.
#include "device_windows.h"

using namespace commodity;

namespace {

// How many values, the best, and its row: the latest of equal ones. Minima are maxima of -x.
template <typename scalar_t>
struct Best {
  scalar_t value = -INFINITY;
  int64_t row = -1, count = 0;

  COMMODITY_INLINE Best combine(const Best& other) const {
    const bool better = other.value > value || (other.value == value && other.row > row);
    return {better ? other.value : value, better ? other.row : row, count + other.count};
  }
};

template <typename scalar_t, int kWindows>
struct Extrema {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t *since, window, least;
  scalar_t sign;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto see = [&](Best<scalar_t>& best, int64_t t) {
      const scalar_t value = sign * x(panel, t, n);
      if (value == value) best = best.combine({value, t, 1});
    };
    for_each_window<kRows, Best<scalar_t>>(first, window, see, [&](int k, const Best<scalar_t>& best) {
      if (!x.has_row(first + k)) return;
      const bool known = best.count >= least;
      y[x.at(panel, first + k, n)] = known ? sign * best.value : NAN;
      since[x.at(panel, first + k, n)] = known ? first + k - best.row : -1;
    });
  }
};

std::tuple<Tensor, Tensor> rolling_extrema(const Tensor& x_, int64_t window, int64_t min_periods, bool largest) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_extrema: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  Tensor since = new_empty(x, x.sizes(), torch::headeronly::ScalarType::Long);
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  dispatch("rolling_extrema", x, [&]<typename scalar_t>() {
    dispatch_rows<8>(rows, [&]<int kRows>() {
      launch_windows(
          x, panels,
          Extrema<scalar_t, kRows>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), data_ptr<int64_t>(since),
                                   rows, std::max<int64_t>(1, min_periods), scalar_t(largest ? 1 : -1)});
    });
  });
  return {y, since};
}

}  // namespace

COMMODITY_CUDA(rolling_extrema)
