// Sum over the last `window` rows of (..., T, N), or over this row and the following window - 1 (`ahead`). windows.h
// explains the scheme: suffix sums of the previous block plus a running total.
#include "windows.h"

using namespace commodity;

namespace {

// With a negative stride, time runs backward.
template <typename sum_t, typename scalar_t>
COMMODITY_SIMD void window_sum_block(const scalar_t* x, scalar_t* __restrict y, int64_t stride,
                                     const WindowBlock& block, int64_t window, sum_t* __restrict suffix) {
  const int64_t rows = block.end - block.begin, width = block.width;
  sum_t total[kStrip] = {};
  if (block.begin == 0) std::fill_n(suffix, rows * kStrip, sum_t(0));
  for (int64_t j = window - 1; block.begin > 0 && j >= 0; --j) {
    std::copy_n(total, width, suffix + j * kStrip);
    const scalar_t* row = x + (block.begin - window + j) * stride;
    for (int64_t n = 0; n < width; ++n) total[n] += row[n];
  }
  std::fill_n(total, width, sum_t(0));
  for (int64_t j = 0; j < rows; ++j) {
    const scalar_t* row = x + (block.begin + j) * stride;
    scalar_t* output = y + (block.begin + j) * stride;
    const sum_t* suffix_total = suffix + j * kStrip;
    if (j + kPrefetchRows < rows) {
      prefetch(row + kPrefetchRows * stride, width);
      prefetch(output + kPrefetchRows * stride, width);
    }
    for (int64_t n = 0; n < width; ++n) {
      total[n] += row[n];
      output[n] = static_cast<scalar_t>(suffix_total[n] + total[n]);
    }
  }
}

template <typename scalar_t>
void window_sums(const Tensor& x, Tensor& y, int64_t window, bool ahead) {
  using sum_t = std::conditional_t<std::is_integral_v<scalar_t>, scalar_t, double>;
  const Panels panels(x);
  const scalar_t* input = x.const_data_ptr<scalar_t>();
  scalar_t* output = y.mutable_data_ptr<scalar_t>();
  const int64_t stride = ahead ? -panels.assets : panels.assets;
  const int64_t first_row = ahead ? panels.size() - panels.assets : 0;
  window = clamp_window(panels, window);
  for_each_window_block<sum_t>(panels, window, 1, [&](const WindowBlock& block, sum_t* suffix) {
    const int64_t offset = block.panel * panels.size() + first_row + block.first;
    window_sum_block<sum_t>(input + offset, output + offset, stride, block, window, suffix);
  });
}

Tensor window_sum(const Tensor& x_, int64_t window, bool ahead) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "window_sum: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  THO_DISPATCH_V2(x.scalar_type(), "window_sum", AT_WRAP([&] { window_sums<scalar_t>(x, y, window, ahead); }),
                  AT_EXPAND(AT_FLOATING_TYPES), torch::headeronly::ScalarType::Long);
  return y;
}

}  // namespace

COMMODITY_OPERATOR(window_sum, "(Tensor x, SymInt window, bool ahead=False) -> Tensor")
