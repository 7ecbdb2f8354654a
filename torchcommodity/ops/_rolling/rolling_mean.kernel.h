// Rolling mean of the finite values in each window of (..., T, N).
#include "window_kernel.h"

using namespace commodity;

namespace {

struct Mean : WindowStatistic {
  template <typename Number>
  struct Sum {
    Number total = {};

    template <bool later>
    COMMODITY_INLINE void add(const Number& x, auto) {
      total += x;
    }
    COMMODITY_INLINE void append(const Sum& later) { total += later.total; }
    COMMODITY_INLINE Number check() const { return total; }
  };

  template <typename Number>
  COMMODITY_INLINE auto result(const Sum<Number>& sum, const auto& count, auto) const {
    return divide(sum.total, count);
  }
};

Tensor rolling_mean(const Tensor& x, int64_t window, std::optional<int64_t> min_periods) {
  return roll("rolling_mean", x, window, min_periods.value_or(window), Mean{});
}

}  // namespace

COMMODITY_KERNEL(rolling_mean, "(Tensor x, SymInt window, SymInt? min_periods=None) -> Tensor")
