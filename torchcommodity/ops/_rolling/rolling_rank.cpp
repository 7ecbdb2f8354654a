// Rolling rank of the latest value in each window of (..., T, N): every window is scanned, a strip of columns at a
// time.
#include "windows.h"

using namespace commodity;

namespace {

// rank = number of smaller values + low + high * number of equal values, x_t included: (1, 0) gives the minimum rank of
// equal values, (0, 1) the maximum, (0.5, 0.5) the average.
template <typename scalar_t>
COMMODITY_SIMD void rolling_rank_block(const scalar_t* x, scalar_t* __restrict y, int64_t stride,
                                       const WindowBlock& block, int64_t window, double min_periods, double low,
                                       double high, bool ascending, bool pct) {
  for (int64_t t = block.begin; t < block.end; ++t) {
    const scalar_t* latest = x + t * stride;
    double less[kStrip] = {}, equal[kStrip] = {}, count[kStrip] = {};
    for (int64_t r = std::max<int64_t>(0, t - window + 1); r <= t; ++r) {
      const scalar_t* row = x + r * stride;
      for (int64_t n = 0; n < block.width; ++n) {
        const bool finite = row[n] - row[n] == 0, before = ascending ? row[n] < latest[n] : row[n] > latest[n];
        count[n] += finite ? 1 : 0;
        less[n] += (finite & before) ? 1 : 0;
        equal[n] += row[n] == latest[n] ? 1 : 0;
      }
    }
    scalar_t* output = y + t * stride;
    for (int64_t n = 0; n < block.width; ++n) {
      const bool defined = (latest[n] - latest[n] == 0) & (count[n] >= min_periods);
      const double rank = less[n] + low + high * equal[n];
      output[n] = static_cast<scalar_t>(defined ? (pct ? rank / count[n] : rank) : NAN);
    }
  }
}

Tensor rolling_rank(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods, double low, double high,
                    bool ascending, bool pct) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_rank: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  const double min_count = double(std::max<int64_t>(1, min_periods.value_or(window)));
  THO_DISPATCH_V2(x.scalar_type(), "rolling_rank", AT_WRAP([&] {
                    const scalar_t* input = x.const_data_ptr<scalar_t>();
                    scalar_t* output = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(panels, rows, 0, [&](const WindowBlock& block, double*) {
                      const int64_t offset = block.panel * panels.size() + block.first;
                      rolling_rank_block(input + offset, output + offset, panels.assets, block, rows, min_count, low,
                                         high, ascending, pct);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_rank,
                   "(Tensor x, SymInt window, SymInt? min_periods=None, float low=0.5, float high=0.5, bool "
                   "ascending=True, bool pct=False) -> "
                   "Tensor")
