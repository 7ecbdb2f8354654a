// The variance, or its root, of what is finite among the last `window` rows of (..., T, N).
//
// Values are taken against one that is in the window itself: the first that a sum took in. So neither a level nor what
// has left the window costs digits, and the variance of a constant is exactly zero.
#include "device_windows.h"

using namespace commodity;

namespace {

struct Spread {
  double count = 0, anchor = 0, sum = 0, squares = 0;

  COMMODITY_INLINE void add(double x) {
    if (x != x) return;
    if (count == 0) anchor = x;
    const double d = x - anchor;
    count += 1, sum += d, squares += d * d;
  }
  COMMODITY_INLINE Spread combine(const Spread& other) const {
    if (other.count == 0) return *this;
    if (count == 0) return other;
    const double apart = other.anchor - anchor, shift = other.count * apart;
    return {count + other.count, anchor, sum + other.sum + shift,
            squares + other.squares + apart * (2 * other.sum + shift)};
  }
  COMMODITY_INLINE double variance(double ddof) const {
    const double spread = (count * squares - sum * sum) / (count * (count - ddof));
    return spread > 0 ? spread : 0;
  }
};

template <typename scalar_t, int kWindows>
struct Variance {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t window;
  double least, ddof;
  bool root;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto see = [&](Spread& spread, int64_t t) { spread.add(x(panel, t, n)); };
    for_each_window<kRows, Spread>(first, window, see, [&](int k, const Spread& spread) {
      const bool known = spread.count >= least && spread.count > ddof;
      const double variance = known ? spread.variance(ddof) : NAN;
      if (x.has_row(first + k))
        y[x.at(panel, first + k, n)] = static_cast<scalar_t>(root ? std::sqrt(variance) : variance);
    });
  }
};

Tensor rolling_var(const Tensor& x_, int64_t window, int64_t min_periods, int64_t ddof, bool root) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_var: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  const double least = double(std::max<int64_t>(1, min_periods));
  dispatch("rolling_var", x, [&]<typename scalar_t>() {
    dispatch_rows<8>(rows, [&]<int kRows>() {
      launch_windows(x, panels,
                     Variance<scalar_t, kRows>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), rows, least,
                                               double(ddof), root});
    });
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(rolling_var)
