// Rolling maximum or minimum of the finite values in each window of (..., T, N), and its lag in rows. windows.h
// explains the scheme: here with suffix maxima of the previous block and a running maximum.
#include "windows.h"

using namespace commodity;

namespace {

// Per column: the maximum, its row (the latest of equal values) and the number of values. Minima are maxima of -x.
template <typename scalar_t, typename index_t>
struct Maxima {
  scalar_t value[kStrip];
  index_t row[kStrip], count[kStrip];

  explicit Maxima() {
    std::fill_n(value, kStrip, -std::numeric_limits<scalar_t>::infinity());
    std::fill_n(row, kStrip, index_t(-1)), std::fill_n(count, kStrip, index_t(0));
  }

  // `later`: row t is later than all rows so far, otherwise earlier.
  inline void add(const scalar_t* x, index_t t, int64_t width, scalar_t sign, bool later) {
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t v = sign * x[n];
      const bool finite = v - v == 0, better = finite & ((v > value[n]) | (later & (v == value[n])));
      value[n] = better ? v : value[n], row[n] = better ? t : row[n], count[n] += finite ? 1 : 0;
    }
  }
};

template <typename scalar_t, typename index_t>
COMMODITY_SIMD void rolling_extrema_block(const scalar_t* x, scalar_t* __restrict y, int64_t* __restrict lag,
                                          int64_t stride, const WindowBlock& block, int64_t window, index_t min_periods,
                                          scalar_t sign, Maxima<scalar_t, index_t>* __restrict suffix) {
  Maxima<scalar_t, index_t> previous, current;
  const int64_t rows = block.end - block.begin;
  if (block.begin == 0) std::fill_n(suffix, rows, previous);
  for (int64_t j = window - 1; block.begin > 0 && j >= 0; --j) {
    const int64_t t = block.begin - window + j;
    suffix[j] = previous;
    previous.add(x + t * stride, t, block.width, sign, false);
  }
  for (int64_t j = 0; j < rows; ++j) {
    const int64_t t = block.begin + j;
    current.add(x + t * stride, t, block.width, sign, true);
    const Maxima<scalar_t, index_t>& old = suffix[j];
    scalar_t* output = y + t * stride;
    int64_t* output_lag = lag + t * stride;
    for (int64_t n = 0; n < block.width; ++n) {
      const bool defined = current.count[n] + old.count[n] >= min_periods, earlier = old.value[n] > current.value[n];
      output[n] = defined ? sign * (earlier ? old.value[n] : current.value[n]) : scalar_t(NAN);
      output_lag[n] = defined ? t - (earlier ? old.row[n] : current.row[n]) : -1;
    }
  }
}

template <typename scalar_t>
void rolling_extrema_of(const Tensor& x, Tensor& y, Tensor& lag, int64_t window, int64_t min_periods, bool largest) {
  using index_t = std::conditional_t<sizeof(scalar_t) == 4, int32_t, int64_t>;  // as wide as a value, for SIMD
  const Panels panels(x);
  const scalar_t* input = x.const_data_ptr<scalar_t>();
  scalar_t* output = y.mutable_data_ptr<scalar_t>();
  int64_t* output_lag = lag.mutable_data_ptr<int64_t>();
  const scalar_t sign = largest ? 1 : -1;
  const index_t min_count = std::max<int64_t>(1, min_periods);
  const int64_t rows = clamp_window(panels, window);
  using Suffix = Maxima<scalar_t, index_t>;
  for_each_window_block<Suffix>(panels, rows, 1, [&](const WindowBlock& block, Suffix* suffix) {
    const int64_t offset = block.panel * panels.size() + block.first;
    rolling_extrema_block<scalar_t, index_t>(input + offset, output + offset, output_lag + offset, panels.assets, block,
                                             rows, min_count, sign, suffix);
  });
}

std::tuple<Tensor, Tensor> rolling_extrema(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods,
                                           bool largest) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_extrema: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  Tensor lag = on_huge_pages(new_empty(x, x.sizes(), torch::headeronly::ScalarType::Long));
  THO_DISPATCH_V2(x.scalar_type(), "rolling_extrema", AT_WRAP([&] {
                    rolling_extrema_of<scalar_t>(x, y, lag, window, min_periods.value_or(window), largest);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {y, lag};
}

}  // namespace

COMMODITY_OPERATOR(rolling_extrema,
                   "(Tensor x, SymInt window, SymInt? min_periods=None, bool largest=True) -> (Tensor, Tensor)")
