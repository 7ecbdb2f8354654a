// Rolling skewness (order 3) or excess kurtosis (order 4) of the finite values in each window of (..., T, N).
// device_windows.h explains the scheme. Sums are taken of differences from the first value of each partial sum.
#include "device_windows.h"

using namespace commodity;

namespace {

struct PowerSums {
  double count = 0, anchor = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0;

  COMMODITY_INLINE void add(double x) {
    if (x != x) return;
    if (count == 0) anchor = x;
    const double d = x - anchor, square = d * d;
    count += 1, s1 += d, s2 += square, s3 += square * d, s4 += square * square;
  }
  COMMODITY_INLINE PowerSums combine(const PowerSums& o) const {
    if (o.count == 0) return *this;
    if (count == 0) return o;
    const double c = o.anchor - anchor, m = o.count;
    return {count + m,
            anchor,
            s1 + o.s1 + m * c,
            s2 + o.s2 + c * (2 * o.s1 + m * c),
            s3 + o.s3 + c * (3 * o.s2 + c * (3 * o.s1 + m * c)),
            s4 + o.s4 + c * (4 * o.s3 + c * (6 * o.s2 + c * (4 * o.s1 + m * c)))};
  }
  COMMODITY_INLINE double standardized_moment(bool kurtosis) const {  // unbiased
    const double n = count, mean = s1 / n, m2 = s2 - s1 * mean;
    const double m3 = s3 - 3 * mean * s2 + 2 * s1 * mean * mean;
    const double m4 = s4 - 4 * mean * s3 + 6 * mean * mean * s2 - 3 * s1 * mean * mean * mean;
    const double skew = n * std::sqrt(n - 1) / (n - 2) * m3 / (m2 * std::sqrt(m2));
    const double kurt = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * n * m4 / (m2 * m2) - 3 * (n - 1));
    return m2 > 0 ? (kurtosis ? kurt : skew) : NAN;
  }
};

template <typename scalar_t, int kWindows>
struct RollingSkewKurt {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  scalar_t* y;
  int64_t window;
  double min_periods;
  bool kurtosis;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto add = [&](PowerSums& sums, int64_t t) { sums.add(x(panel, t, n)); };
    for_each_window<kRows, PowerSums>(first, window, add, [&](int k, const PowerSums& sums) {
      const double value = sums.count >= min_periods ? sums.standardized_moment(kurtosis) : NAN;
      if (x.has_row(first + k)) y[x.at(panel, first + k, n)] = static_cast<scalar_t>(value);
    });
  }
};

Tensor rolling_skew_kurt(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods, int64_t order) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1 && (order == 3 || order == 4),
                  "rolling_skew_kurt: x (..., T, N), window >= 1, order 3 or 4");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  dispatch("rolling_skew_kurt", x, [&]<typename scalar_t>() {
    dispatch_rows<4>(rows, [&]<int kRows>() {
      launch_windows(
          x, panels,
          RollingSkewKurt<scalar_t, kRows>{finite_values<scalar_t>(x, panels), data_ptr<scalar_t>(y), rows,
                                           double(std::max(order, min_periods.value_or(window))), order == 4});
    });
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(rolling_skew_kurt)
