// Sum over the last `window` rows of (..., T, N), or over this row and the following window - 1 (`ahead`).
#include "window_kernel.h"

using namespace commodity;

namespace {

struct WindowSum : WindowStatistic {
  static constexpr bool kSkipsMissing = false, kIntegers = true;
  template <typename scalar_t>
  using Number = std::conditional_t<std::is_integral_v<scalar_t>, scalar_t, double>;

  template <typename Number>
  struct Sum {
    Number total = {};

    template <bool later>
    COMMODITY_INLINE void add(const Number& x, auto) {
      total += x;
    }
    COMMODITY_INLINE void append(const Sum& later) { total += later.total; }
  };

  template <typename Number>
  COMMODITY_INLINE Number result(const Sum<Number>& sum, auto, auto) const {
    return sum.total;
  }

  template <typename Number, typename scalar_t>
  COMMODITY_INLINE void store(bool, const Number& sum, scalar_t* y, int64_t) const {
    write(sum, y);
  }
};

Tensor window_sum(const Tensor& x, int64_t window, bool ahead) {
  return roll("window_sum", x, window, window, WindowSum{}, ahead);
}

}  // namespace

COMMODITY_KERNEL(window_sum, "(Tensor x, SymInt window, bool ahead=False) -> Tensor")
