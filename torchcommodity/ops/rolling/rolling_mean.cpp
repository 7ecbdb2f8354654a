// The mean of what is finite among the last `window` rows of (..., T, N).
#include "windows.h"

using namespace commodity;

namespace {

// Of each column: how many values, and their sum.
template <bool all>
struct Sums {
  double total[kStrip] = {}, count[kStrip] = {};

  template <typename scalar_t>
  inline void add(const scalar_t* row, int64_t width) {
    for (int64_t n = 0; n < width; ++n) {
      const bool finite = all || row[n] - row[n] == 0;
      total[n] += finite ? row[n] : 0;
      if (!all) count[n] += finite ? 1 : 0;
    }
  }
};

template <bool all, typename scalar_t>
inline void means_of_block(const scalar_t* x, scalar_t* __restrict y, int64_t stride, const WindowBlock& block,
                           int64_t window, double least, double* __restrict suffix) {
  const int64_t rows = block.end - block.begin, width = block.width;
  Sums<all> earlier, now;
  if (block.begin == 0) std::fill_n(suffix, 2 * rows * kStrip, 0.0);
  for (int64_t j = window - 1; block.begin > 0 && j >= 0; --j) {
    std::copy_n(earlier.total, width, suffix + 2 * j * kStrip);
    if (!all) std::copy_n(earlier.count, width, suffix + (2 * j + 1) * kStrip);
    earlier.add(x + (block.begin - window + j) * stride, width);
  }
  for (int64_t j = 0; j < rows; ++j) {
    now.add(x + (block.begin + j) * stride, width);
    scalar_t* to = y + (block.begin + j) * stride;
    if (j + kAhead < rows) fetch(to + kAhead * stride, width);
    const double *before = suffix + 2 * j * kStrip, *counted = before + kStrip;
    const double every = double(block.begin ? window : j + 1);
    for (int64_t n = 0; n < width; ++n) {
      const double held = all ? every : counted[n] + now.count[n];
      to[n] = static_cast<scalar_t>(held >= least ? (before[n] + now.total[n]) / held : NAN);
    }
  }
}

template <typename scalar_t>
COMMODITY_SIMD void means(const scalar_t* x, scalar_t* y, int64_t stride, const WindowBlock& block, int64_t window,
                          double least, double* suffix) {
  if (complete(x, stride, block, window))
    means_of_block<true>(x, y, stride, block, window, least, suffix);
  else
    means_of_block<false>(x, y, stride, block, window, least, suffix);
}

Tensor rolling_mean(const Tensor& x_, int64_t window, int64_t min_periods) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_mean: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = reach(panels, window);
  THO_DISPATCH_V2(x.scalar_type(), "rolling_mean", AT_WRAP([&] {
                    const scalar_t* from = x.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(panels, rows, 2, [&](const WindowBlock& block, double* suffix) {
                      const int64_t at = block.panel * panels.size() + block.first;
                      means(from + at, to + at, panels.assets, block, rows, double(min_periods), suffix);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_mean, "(Tensor x, SymInt window, SymInt min_periods) -> Tensor")
