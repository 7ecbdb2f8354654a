// Rolling rank of the latest value in each window of (..., T, N): the rows of a few consecutive windows are read once.
#include "window_kernel.h"

using namespace commodity;

namespace {

// rank = number of smaller values + low + high * number of equal values, x_t included: (1, 0) gives the minimum rank of
// equal values, (0, 1) the maximum, (0.5, 0.5) the average. Windows are not shorter than `kWindows`, so that all of an
// item share a row.
template <typename scalar_t, int kWindows>
struct RollingRank {
  static constexpr int kRows = kWindows;
  using Number = scalar_t;
  const scalar_t* x;
  scalar_t* y;
  int64_t steps, assets, window;
  scalar_t min_count, low, high, sign;  // -1 for the largest first
  bool pct;

  template <typename Number>
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t column = panel * steps * assets + n;
    const auto value = [&](int64_t t) {
      const Number row = read_row<Number>(x + column + t * assets);
      return sign * row + (row - row);  // infinity is missing
    };
    Number latest[kRows], less[kRows] = {}, equal[kRows] = {}, leaves[kRows] = {}, count = {};
#pragma unroll
    for (int k = 0; k < kRows; ++k) latest[k] = first + k < steps ? value(first + k) : Number{} + NAN;
    const auto rank = [&](int k, const Number& row) {
      less[k] += row < latest[k] ? Number{} + 1 : Number{};
      equal[k] += row == latest[k] ? Number{} + 1 : Number{};
    };
    const auto one = [](const Number& row) { return row == row ? Number{} + 1 : Number{}; };
    const int64_t oldest = first - window + 1;
#pragma unroll
    for (int i = 0; i < kRows - 1; ++i) {  // in the windows until the one of row first + i
      if (oldest + i < 0) continue;
      const Number row = value(oldest + i);
      leaves[i] = one(row), count += leaves[i];
#pragma unroll
      for (int k = 0; k <= i; ++k) rank(k, row);
    }
#pragma unroll 4
    for (int64_t t = std::max<int64_t>(0, oldest + kRows - 1); t <= first; ++t) {  // in all windows
      const Number row = value(t);
      count += one(row);
#pragma unroll
      for (int k = 0; k < kRows; ++k) rank(k, row);
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (k > 0) count += one(latest[k]) - leaves[k - 1];
#pragma unroll
      for (int i = 1; i <= k; ++i) rank(k, latest[i]);
      const Number place = less[k] + low + high * equal[k];
      const auto defined = (latest[k] == latest[k]) & (count >= min_count);
      if (first + k < steps)
        write(defined ? (pct ? place / count : place) : Number{} + NAN, y + column + (first + k) * assets);
    }
  }
};

Tensor rolling_rank(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods, double low, double high,
                    bool ascending, bool pct) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_rank: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_output(x, x.sizes());
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  const auto run = [&]<typename scalar_t, int kRows>() {
    for_each_few_rows(
        x, panels,
        RollingRank<scalar_t, kRows>{x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), panels.steps,
                                     panels.assets, rows, scalar_t(std::max<int64_t>(1, min_periods.value_or(window))),
                                     scalar_t(low), scalar_t(high), scalar_t(ascending ? 1 : -1), pct});
  };
  dispatch("rolling_rank", x, [&]<typename scalar_t>() {
    constexpr int kRows = kItemRows<scalar_t>;
    rows >= kRows ? run.template operator()<scalar_t, kRows>() : run.template operator()<scalar_t, 1>();
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(rolling_rank,
                 "(Tensor x, SymInt window, SymInt? min_periods=None, float low=0.5, float high=0.5, bool "
                 "ascending=True, bool pct=False) -> Tensor")
