// Rolling maximum or minimum of the finite values in each window of (..., T, N), and its lag in rows.
#include "window_kernel.h"

using namespace commodity;

namespace {

// The maximum of sign * x, and its row: the latest of equal values.
template <int sign>
struct Extremum : WindowStatistic {
  static constexpr int kVectors = 4, kRows = 8;
  static constexpr double kMissing = -sign * std::numeric_limits<double>::infinity();
  template <typename scalar_t>
  using Number = scalar_t;
  int64_t* lag;

  template <typename Number>
  struct Sum {
    Number value = Number{} - INFINITY;
    RowOf<Number> row = RowOf<Number>{} - 1;

    template <bool later>
    COMMODITY_INLINE void add(const Number& x, auto t) {
      const Number candidate = sign > 0 ? x : -x;
      const auto better = later ? candidate >= value : candidate > value;
      value = better ? candidate : value, row = better ? RowOf<Number>{} + t : row;
    }
    COMMODITY_INLINE void append(const Sum& later) {
      const auto earlier = value > later.value;
      value = earlier ? value : later.value, row = earlier ? row : later.row;
    }
  };

  template <typename Number>
  struct Result {
    Number value;
    RowOf<Number> lag;
  };

  template <typename Number>
  COMMODITY_INLINE Result<Number> result(const Sum<Number>& sum, auto, auto t) const {
    return {sum.value, t - sum.row};
  }

  COMMODITY_INLINE int64_t* other_output(int64_t at) const { return lag + at; }

  template <typename Number, typename scalar_t>
  COMMODITY_INLINE void store(auto defined, const Result<Number>& result, scalar_t* y, int64_t at) const {
    write(defined ? (sign > 0 ? result.value : -result.value) : Number{} + NAN, y);
    write(defined ? result.lag : RowOf<Number>{} - 1, other_output(at));
  }
};

std::tuple<Tensor, Tensor> rolling_extrema(const Tensor& x, int64_t window, std::optional<int64_t> min_periods,
                                           bool largest) {
  Tensor lag = new_output(x, x.sizes(), torch::headeronly::ScalarType::Long);
  const int64_t min_count = std::max<int64_t>(1, min_periods.value_or(window));
  const auto find = [&]<int sign>() {
    return roll("rolling_extrema", x, window, min_count, Extremum<sign>{{}, lag.mutable_data_ptr<int64_t>()});
  };
  return {largest ? find.template operator()<1>() : find.template operator()<-1>(), lag};
}

}  // namespace

COMMODITY_KERNEL(rolling_extrema,
                 "(Tensor x, SymInt window, SymInt? min_periods=None, bool largest=True) -> (Tensor, Tensor)")
