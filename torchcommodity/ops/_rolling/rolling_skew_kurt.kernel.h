// Rolling skewness (order 3) or excess kurtosis (order 4) of the finite values in each window of (..., T, N).
//
// As in rolling_var, sums are taken of differences from an anchor inside the window. There is no check(): the compiler
// might fuse other products for complete windows, and a row would then depend, in its last bit, on later ones.
#include "window_kernel.h"

using namespace commodity;

namespace {

struct StandardizedMoment : WindowStatistic {
  static constexpr int kVectors = 2, kRows = 4;
  static constexpr bool kAnchored = true;
  bool kurtosis;

  // Of powers of the differences.
  template <typename Number>
  struct Sum {
    Number s1 = {}, s2 = {}, s3 = {}, s4 = {};

    template <bool later>
    COMMODITY_INLINE void add(const Number& d, auto) {
      const Number square = d * d;
      s1 += d, s2 += square, s3 += square * d, s4 += square * square;
    }
    COMMODITY_INLINE void append(const Sum& later) { s1 += later.s1, s2 += later.s2, s3 += later.s3, s4 += later.s4; }
    COMMODITY_INLINE void move(const auto& count, const Number& c) {
      const Number shift = count * c;
      s4 += c * (4 * s3 + c * (6 * s2 + c * (4 * s1 + shift)));
      s3 += c * (3 * s2 + c * (3 * s1 + shift));
      s2 += c * (2 * s1 + shift), s1 += shift;
    }
  };

  // Unbiased.
  template <typename Number, typename Count>
  COMMODITY_INLINE Number result(const Sum<Number>& sum, const Count& n, auto) const {
    const auto [s1, s2, s3, s4] = sum;
    const Number mean = s1 / n, m2 = s2 - s1 * mean;
    Number moment;
    if (kurtosis) {
      const Number m4 = s4 - 4 * mean * s3 + 6 * mean * mean * s2 - 3 * s1 * mean * mean * mean;
      moment = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * n * m4 / (m2 * m2) - 3 * (n - 1));
    } else {
      const Number m3 = s3 - 3 * mean * s2 + 2 * s1 * mean * mean;
      moment = n * root_of(Count(n - 1)) / (n - 2) * m3 / (m2 * root_of(m2));
    }
    return m2 > 0 ? moment : Number{} + NAN;
  }
};

Tensor rolling_skew_kurt(const Tensor& x, int64_t window, std::optional<int64_t> min_periods, int64_t order) {
  STD_TORCH_CHECK(order == 3 || order == 4, "rolling_skew_kurt: order 3 or 4");
  return roll("rolling_skew_kurt", x, window, std::max(order, min_periods.value_or(window)),
              StandardizedMoment{{}, order == 4});
}

}  // namespace

COMMODITY_KERNEL(rolling_skew_kurt, "(Tensor x, SymInt window, SymInt? min_periods=None, SymInt order=3) -> Tensor")
