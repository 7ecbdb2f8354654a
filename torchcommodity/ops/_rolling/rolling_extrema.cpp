// The largest or smallest finite value among the last `window` rows of (..., T, N), and how many rows ago it stood.
#include "windows.h"

using namespace commodity;

namespace {

// Of each column: how many values, the best, and its row (the latest of equal ones). Minima are maxima of -x.
template <typename scalar_t, typename index_t>
struct Best {
  scalar_t value[kStrip];
  index_t row[kStrip], count[kStrip];

  explicit Best() {
    std::fill_n(value, kStrip, -std::numeric_limits<scalar_t>::infinity());
    std::fill_n(row, kStrip, index_t(-1)), std::fill_n(count, kStrip, index_t(0));
  }

  inline void see(const scalar_t* x, index_t t, int64_t width, scalar_t sign, bool later) {
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t v = sign * x[n];
      const bool finite = v - v == 0, better = finite & ((v > value[n]) | (later & (v == value[n])));
      value[n] = better ? v : value[n], row[n] = better ? t : row[n], count[n] += finite ? 1 : 0;
    }
  }
};

template <typename scalar_t, typename index_t>
COMMODITY_SIMD void extrema(const scalar_t* x, scalar_t* __restrict y, int64_t* __restrict since, int64_t stride,
                            const WindowBlock& block, int64_t window, index_t least, scalar_t sign,
                            Best<scalar_t, index_t>* __restrict suffix) {
  Best<scalar_t, index_t> before, now;
  const int64_t rows = block.end - block.begin;
  if (block.begin == 0) std::fill_n(suffix, rows, before);
  for (int64_t j = window - 1; block.begin > 0 && j >= 0; --j) {
    const int64_t t = block.begin - window + j;
    suffix[j] = before;
    before.see(x + t * stride, t, block.width, sign, false);
  }
  for (int64_t j = 0; j < rows; ++j) {
    const int64_t t = block.begin + j;
    now.see(x + t * stride, t, block.width, sign, true);
    const Best<scalar_t, index_t>& old = suffix[j];
    scalar_t* to = y + t * stride;
    int64_t* ago = since + t * stride;
    for (int64_t n = 0; n < block.width; ++n) {
      const bool known = now.count[n] + old.count[n] >= least, earlier = old.value[n] > now.value[n];
      to[n] = known ? sign * (earlier ? old.value[n] : now.value[n]) : scalar_t(NAN);
      ago[n] = known ? t - (earlier ? old.row[n] : now.row[n]) : -1;
    }
  }
}

template <typename scalar_t>
void all_extrema(const Tensor& x, Tensor& y, Tensor& since, int64_t window, int64_t min_periods, bool largest) {
  // rows are counted in numbers as wide as the values, which is what vectors want
  using index_t = std::conditional_t<sizeof(scalar_t) == 4, int32_t, int64_t>;
  const Panels panels(x);
  const scalar_t* from = x.const_data_ptr<scalar_t>();
  scalar_t* to = y.mutable_data_ptr<scalar_t>();
  int64_t* ago = since.mutable_data_ptr<int64_t>();
  const scalar_t sign = largest ? 1 : -1;
  const index_t least = std::max<int64_t>(1, min_periods);
  const int64_t rows = clamp_window(panels, window);
  using Rows = Best<scalar_t, index_t>;
  for_each_window_block<Rows>(panels, rows, 1, [&](const WindowBlock& block, Rows* suffix) {
    const int64_t at = block.panel * panels.size() + block.first;
    extrema<scalar_t, index_t>(from + at, to + at, ago + at, panels.assets, block, rows, least, sign, suffix);
  });
}

std::tuple<Tensor, Tensor> rolling_extrema(const Tensor& x_, int64_t window, int64_t min_periods, bool largest) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_extrema: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  Tensor since = on_huge_pages(new_empty(x, x.sizes(), torch::headeronly::ScalarType::Long));
  THO_DISPATCH_V2(x.scalar_type(), "rolling_extrema",
                  AT_WRAP([&] { all_extrema<scalar_t>(x, y, since, window, min_periods, largest); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {y, since};
}

}  // namespace

COMMODITY_OPERATOR(rolling_extrema, "(Tensor x, SymInt window, SymInt min_periods, bool largest) -> (Tensor, Tensor)")
