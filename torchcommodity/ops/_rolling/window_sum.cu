// Sum over the last `window` rows of (..., T, N), or over this row and the following window - 1 (`ahead`).
// device_windows.h explains the scheme.
#include "device_windows.h"

using namespace commodity;

namespace {

template <typename sum_t>
struct Sum {
  using Anchor = NoAnchor;
  static constexpr int kMissing = 0;
  sum_t total = 0;

  template <typename Value>
  COMMODITY_INLINE void add(NoAnchor, Value value, int) {
    total += value;
  }
};

// With `ahead`, rows are numbered backward, from the last one.
template <typename scalar_t, typename sum_t, int kWindows>
struct WindowSum {
  static constexpr int kRows = kWindows;
  const scalar_t* x;
  scalar_t* y;
  int64_t steps, assets, window;
  bool ahead;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t begin = (panel * steps + (ahead ? steps - 1 : 0)) * assets + n, stride = ahead ? -assets : assets;
    const WindowRows<scalar_t> rows(x + begin, stride, first, steps, window, kRows);
    write_windows<kRows, Sum<sum_t>>(rows, y + begin + first * stride,
                                     [](int, const Sum<sum_t>& older, NoAnchor, const Sum<sum_t>& newer, NoAnchor) {
                                       return static_cast<scalar_t>(older.total + newer.total);
                                     });
  }
};

template <typename scalar_t, typename sum_t>
void window_sums(const Tensor& x, Tensor& y, int64_t window, bool ahead) {
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  dispatch_rows<16>(rows, [&]<int kRows>() {
    launch_windows(x, panels,
                   WindowSum<scalar_t, sum_t, kRows>{x.const_data_ptr<scalar_t>(), data_ptr<scalar_t>(y), panels.steps,
                                                     panels.assets, rows, ahead});
  });
}

Tensor window_sum(const Tensor& x_, int64_t window, bool ahead) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "window_sum: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_empty(x, x.sizes());
  if (x.scalar_type() == torch::headeronly::ScalarType::Long)
    window_sums<int64_t, int64_t>(x, y, window, ahead);
  else
    dispatch("window_sum", x, [&]<typename scalar_t>() { window_sums<scalar_t, double>(x, y, window, ahead); });
  return y;
}

}  // namespace

COMMODITY_CUDA(window_sum)
