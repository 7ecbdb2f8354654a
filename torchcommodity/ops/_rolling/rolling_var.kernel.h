// Rolling variance, or its square root, of the finite values in each window of (..., T, N).
//
// Sums are taken of differences from an anchor inside the window. So neither a high level nor values that have left the
// window cost digits, and the variance of a constant is exactly zero.
#include "window_kernel.h"

using namespace commodity;

namespace {

struct Variance : WindowStatistic {
  static constexpr bool kAnchored = true;
  double ddof;
  bool root;

  template <typename Number>
  struct Sum {
    Number sum = {}, squares = {};

    template <bool later>
    COMMODITY_INLINE void add(const Number& d, auto) {
      sum += d, squares += d * d;
    }
    COMMODITY_INLINE void append(const Sum& later) { sum += later.sum, squares += later.squares; }
    COMMODITY_INLINE Number check() const { return squares; }
    COMMODITY_INLINE void move(const auto& count, const Number& distance) {
      const Number shift = count * distance;
      squares += distance * (2 * sum + shift), sum += shift;
    }
  };

  template <typename Number, typename Count>
  COMMODITY_INLINE Number result(const Sum<Number>& sums, const Count& count, auto) const {
    const Number sum = sums.sum, squares = sums.squares;
    const Count weight = divide(1.0, count), scale = divide(1.0, count - ddof);
    // only one product is subtracted: of two, the compiler might fuse different ones for complete and other windows
    const Number value = (squares - sum * (sum * weight)) * scale, variance = value > 0 ? value : Number{};
    return root ? root_of(variance) : variance;
  }
};

Tensor rolling_var(const Tensor& x, int64_t window, std::optional<int64_t> min_periods, int64_t ddof, bool root) {
  const int64_t min_count = std::max({int64_t(1), min_periods.value_or(window), ddof + 1});
  return roll("rolling_var", x, window, min_count, Variance{{}, double(ddof), root});
}

}  // namespace

COMMODITY_KERNEL(rolling_var,
                 "(Tensor x, SymInt window, SymInt? min_periods=None, SymInt ddof=1, bool root=False) -> Tensor")
