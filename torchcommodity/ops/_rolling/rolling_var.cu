// Rolling variance, or its square root, of the finite values in each window of (..., T, N). device_windows.h explains
// the scheme.
//
// Sums are taken of differences from an anchor inside the window: the first value of each partial sum. So neither a
// high level nor values that have left the window cost digits, and the variance of a constant is exactly zero.
#include <climits>

#include "device_windows.h"

using namespace commodity;

namespace {

struct Moments {
  static constexpr double kMissing = NAN;
  struct Anchor {
    double value = NAN;

    // The first finite value in a direction of time.
    template <int direction, typename Value>
    COMMODITY_INLINE void choose(const Value* values, int count) {
      if (value == value) return;
      Value anchor = NAN;
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const Value x = values[direction > 0 ? count - 1 - i : i];
        anchor = is_finite(x) ? x : anchor;
      }
      value = anchor;
    }
  };
  int count = 0;
  double sum = 0, squares = 0;

  template <typename Value>
  COMMODITY_INLINE void add(const Anchor& anchor, Value x, int) {
    const bool valid = is_finite(x);
    const double d = valid ? x - anchor.value : 0;
    count += valid, sum += d, squares += d * d;
  }
  COMMODITY_INLINE Moments combine(const Anchor& anchor, const Moments& other, const Anchor& other_anchor) const {
    Moments total;
    total.count = count + other.count, total.sum = sum + other.sum, total.squares = squares + other.squares;
    if (anchor.value == other_anchor.value || count == 0 || other.count == 0) return total;
    const double distance = other_anchor.value - anchor.value, shift = other.count * distance;
    total.sum += shift, total.squares += distance * (2 * other.sum + shift);
    return total;
  }
  COMMODITY_INLINE double variance(double ddof) const {
    const double value = divide(count * squares - sum * sum, count * (count - ddof));
    return value > 0 ? value : 0;
  }
};

template <typename scalar_t, int kWindows>
struct RollingVar {
  static constexpr int kRows = kWindows;
  using Anchor = Moments::Anchor;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t window;
  int min_count;  // min_periods, and more than ddof
  double ddof;
  bool root;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const WindowRows<scalar_t> rows(x.column(panel, n), x.assets, first, x.steps, window, kRows);
    write_windows<kRows, Moments>(
        rows, y + x.at(panel, first, n),
        [&](int, const Moments& older, const Anchor& anchor, const Moments& newer, const Anchor& newer_anchor) {
          const Moments moments = older.combine(anchor, newer, newer_anchor);
          const double variance = moments.variance(ddof);
          const scalar_t value = static_cast<scalar_t>(root ? std::sqrt(variance) : variance);
          return moments.count >= min_count ? value : scalar_t(NAN);
        });
  }
};

Tensor rolling_var(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods, int64_t ddof, bool root) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_var: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  const int64_t min_count = std::min<int64_t>(std::max({int64_t(1), min_periods.value_or(window), ddof + 1}), INT_MAX);
  dispatch("rolling_var", x, [&]<typename scalar_t>() {
    dispatch_rows<16>(rows, [&]<int kRows>() {
      launch_windows(x, panels,
                     RollingVar<scalar_t, kRows>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), rows,
                                                 static_cast<int>(min_count), double(ddof), root});
    });
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(rolling_var)
