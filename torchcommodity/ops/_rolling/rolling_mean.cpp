// Rolling mean of the finite values in each window of (..., T, N). windows.h explains the scheme: suffix sums of the
// previous block plus a running total.
#include "windows.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void rolling_mean_block(const scalar_t* x, scalar_t* __restrict y, int64_t stride,
                                       const WindowBlock& block, int64_t window, double min_periods,
                                       double* __restrict suffix) {
  const int64_t rows = block.end - block.begin, width = block.width;
  double total[kStrip] = {}, count[kStrip] = {};
  const auto add = [&](int64_t t) {
    const scalar_t* row = x + t * stride;
    for (int64_t n = 0; n < width; ++n) {
      const bool finite = row[n] - row[n] == 0;
      total[n] += finite ? row[n] : 0;
      count[n] += finite ? 1 : 0;
    }
  };
  if (block.begin == 0) std::fill_n(suffix, 2 * rows * kStrip, 0.0);
  for (int64_t j = window - 1; block.begin > 0 && j >= 0; --j) {
    std::copy_n(total, width, suffix + 2 * j * kStrip);
    std::copy_n(count, width, suffix + (2 * j + 1) * kStrip);
    add(block.begin - window + j);
  }
  std::fill_n(total, width, 0.0), std::fill_n(count, width, 0.0);
  for (int64_t j = 0; j < rows; ++j) {
    add(block.begin + j);
    scalar_t* output = y + (block.begin + j) * stride;
    if (j + kPrefetchRows < rows) {
      prefetch(x + (block.begin + j + kPrefetchRows) * stride, width);
      prefetch(output + kPrefetchRows * stride, width);
    }
    const double *suffix_total = suffix + 2 * j * kStrip, *suffix_count = suffix_total + kStrip;
    for (int64_t n = 0; n < width; ++n) {
      const double window_count = suffix_count[n] + count[n];
      const bool defined = window_count >= min_periods;
      output[n] = static_cast<scalar_t>(defined ? (suffix_total[n] + total[n]) / window_count : NAN);
    }
  }
}

Tensor rolling_mean(const Tensor& x_, int64_t window, int64_t min_periods) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_mean: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  THO_DISPATCH_V2(x.scalar_type(), "rolling_mean", AT_WRAP([&] {
                    const scalar_t* input = x.const_data_ptr<scalar_t>();
                    scalar_t* output = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(panels, rows, 2, [&](const WindowBlock& block, double* suffix) {
                      const int64_t offset = block.panel * panels.size() + block.first;
                      rolling_mean_block(input + offset, output + offset, panels.assets, block, rows,
                                         double(min_periods), suffix);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_mean, "(Tensor x, SymInt window, SymInt min_periods) -> Tensor")
