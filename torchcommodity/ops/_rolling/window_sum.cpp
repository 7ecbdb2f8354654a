// The sum over the last `window` rows of (..., T, N), or over this row and the window - 1 after it.
#include "windows.h"

using namespace commodity;

namespace {

// With a negative stride, time runs backwards.
template <typename sum_t, typename scalar_t>
COMMODITY_SIMD void sums(const scalar_t* x, scalar_t* __restrict y, int64_t stride, const WindowBlock& block,
                         int64_t window, sum_t* __restrict suffix) {
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
    scalar_t* to = y + (block.begin + j) * stride;
    const sum_t* before = suffix + j * kStrip;
    if (j + kPrefetchRows < rows)
      prefetch(row + kPrefetchRows * stride, width), prefetch(to + kPrefetchRows * stride, width);
    for (int64_t n = 0; n < width; ++n) {
      total[n] += row[n];
      to[n] = static_cast<scalar_t>(before[n] + total[n]);
    }
  }
}

template <typename scalar_t>
void all_sums(const Tensor& x, Tensor& y, int64_t window, bool ahead) {
  using sum_t = std::conditional_t<std::is_integral_v<scalar_t>, scalar_t, double>;
  const Panels panels(x);
  const scalar_t* from = x.const_data_ptr<scalar_t>();
  scalar_t* to = y.mutable_data_ptr<scalar_t>();
  const int64_t stride = ahead ? -panels.assets : panels.assets, start = ahead ? panels.size() - panels.assets : 0;
  window = clamp_window(panels, window);
  for_each_window_block<sum_t>(panels, window, 1, [&](const WindowBlock& block, sum_t* suffix) {
    const int64_t at = block.panel * panels.size() + start + block.first;
    sums<sum_t>(from + at, to + at, stride, block, window, suffix);
  });
}

Tensor window_sum(const Tensor& x_, int64_t window, bool ahead) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "window_sum: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  THO_DISPATCH_V2(x.scalar_type(), "window_sum", AT_WRAP([&] { all_sums<scalar_t>(x, y, window, ahead); }),
                  AT_EXPAND(AT_FLOATING_TYPES), torch::headeronly::ScalarType::Long);
  return y;
}

}  // namespace

COMMODITY_OPERATOR(window_sum, "(Tensor x, SymInt window, bool ahead) -> Tensor")
