// Rolling rank of the latest value in each window of (..., T, N): the rows of a few consecutive windows are read once.
#include "window_kernel.h"

using namespace commodity;

namespace {

// rank = number of smaller values + low + high * number of equal values, x_t included: (1, 0) gives the minimum rank of
// equal values, (0, 1) the maximum, (0.5, 0.5) the average.
template <typename scalar_t>
struct RollingRank {
  static constexpr int kRows = 8;
  using Number = scalar_t;
  const scalar_t* x;
  scalar_t* y;
  int64_t steps, assets, window;
  scalar_t min_count, low, high;
  bool ascending, pct;

  template <typename Number>
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t column = panel * steps * assets + n, rows = std::min<int64_t>(kRows, steps - first);
    const auto value = [&](int64_t t) {
      const Number row = read_row<Number>(x + column + t * assets);
      return row + (row - row);  // infinity is missing
    };
    Number latest[kRows], less[kRows] = {}, equal[kRows] = {}, count[kRows] = {}, shared = {};
#pragma unroll
    for (int k = 0; k < kRows; ++k) latest[k] = k < rows ? value(first + k) : Number{} + NAN;
    const auto rank = [&](int k, const Number& row) {
      less[k] += (ascending ? row < latest[k] : row > latest[k]) ? Number{} + 1 : Number{};
      equal[k] += row == latest[k] ? Number{} + 1 : Number{};
    };
    for (int64_t t = std::max<int64_t>(0, first - window + 1); t < first + rows; ++t) {
      const Number row = value(t), one = row == row ? Number{} + 1 : Number{};
      if (t <= first && t >= first + kRows - window) {  // in all windows
        shared += one;
#pragma unroll
        for (int k = 0; k < kRows; ++k) rank(k, row);
      } else {
#pragma unroll
        for (int k = 0; k < kRows; ++k)
          if (t > first + k - window && t <= first + k) count[k] += one, rank(k, row);
      }
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const Number values = count[k] + shared, place = less[k] + low + high * equal[k];
      const auto defined = (latest[k] == latest[k]) & (values >= min_count);
      if (k < rows) write(defined ? (pct ? place / values : place) : Number{} + NAN, y + column + (first + k) * assets);
    }
  }
};

Tensor rolling_rank(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods, double low, double high,
                    bool ascending, bool pct) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_rank: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_output(x, x.sizes());
  const Panels panels(x);
  dispatch("rolling_rank", x, [&]<typename scalar_t>() {
    for_each_few_rows(x, panels,
                      RollingRank<scalar_t>{x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), panels.steps,
                                            panels.assets, clamp_window(panels, window),
                                            scalar_t(std::max<int64_t>(1, min_periods.value_or(window))), scalar_t(low),
                                            scalar_t(high), ascending, pct});
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(rolling_rank,
                 "(Tensor x, SymInt window, SymInt? min_periods=None, float low=0.5, float high=0.5, bool "
                 "ascending=True, bool pct=False) -> Tensor")
