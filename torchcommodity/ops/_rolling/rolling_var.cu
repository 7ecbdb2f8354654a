// Rolling variance, or its square root, of the finite values in each window of (..., T, N). device_windows.h explains
// the scheme.
//
// Sums are taken of differences from an anchor inside the window: the first value of each partial sum. So neither a
// high level nor values that have left the window cost digits, and the variance of a constant is exactly zero.
#include "device_windows.h"

using namespace commodity;

namespace {

struct Moments {
  double count = 0, anchor = 0, sum = 0, squares = 0;

  COMMODITY_INLINE void add(double x) {
    if (x != x) return;
    if (count == 0) anchor = x;
    const double d = x - anchor;
    count += 1, sum += d, squares += d * d;
  }
  COMMODITY_INLINE Moments combine(const Moments& other) const {
    if (other.count == 0) return *this;
    if (count == 0) return other;
    const double distance = other.anchor - anchor, shift = other.count * distance;
    return {count + other.count, anchor, sum + other.sum + shift,
            squares + other.squares + distance * (2 * other.sum + shift)};
  }
  COMMODITY_INLINE double variance(double ddof) const {
    const double value = (count * squares - sum * sum) / (count * (count - ddof));
    return value > 0 ? value : 0;
  }
};

template <typename scalar_t, int kWindows>
struct RollingVar {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t window;
  double min_periods, ddof;
  bool root;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto add = [&](Moments& moments, int64_t t) { moments.add(x(panel, t, n)); };
    for_each_window<kRows, Moments>(first, window, add, [&](int k, const Moments& moments) {
      const bool defined = moments.count >= min_periods && moments.count > ddof;
      const double variance = defined ? moments.variance(ddof) : NAN;
      if (x.has_row(first + k))
        y[x.at(panel, first + k, n)] = static_cast<scalar_t>(root ? std::sqrt(variance) : variance);
    });
  }
};

Tensor rolling_var(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods, int64_t ddof, bool root) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_var: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  const double min_count = double(std::max<int64_t>(1, min_periods.value_or(window)));
  dispatch("rolling_var", x, [&]<typename scalar_t>() {
    dispatch_rows<8>(rows, [&]<int kRows>() {
      launch_windows(x, panels,
                     RollingVar<scalar_t, kRows>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), rows,
                                                 min_count, double(ddof), root});
    });
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(rolling_var)
