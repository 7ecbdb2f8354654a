// How many finite values of the last `window` rows of (..., T, N) are less than this row's, equal to it, and there.
#include "windows.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void ranks(const scalar_t* x, scalar_t* __restrict y, int64_t stride, const WindowBlock& block,
                          int64_t window, double least, double low, double high, bool ascending, bool share) {
  for (int64_t t = block.begin; t < block.end; ++t) {
    const scalar_t* now = x + t * stride;
    double less[kStrip] = {}, equal[kStrip] = {}, held[kStrip] = {};
    for (int64_t r = std::max<int64_t>(0, t - window + 1); r <= t; ++r) {
      const scalar_t* row = x + r * stride;
      for (int64_t n = 0; n < block.width; ++n) {
        const bool finite = row[n] - row[n] == 0, before = ascending ? row[n] < now[n] : row[n] > now[n];
        held[n] += finite ? 1 : 0;
        less[n] += finite & before ? 1 : 0;
        equal[n] += row[n] == now[n] ? 1 : 0;
      }
    }
    scalar_t* to = y + t * stride;
    for (int64_t n = 0; n < block.width; ++n) {
      const bool known = (now[n] - now[n] == 0) & (held[n] >= least);
      const double rank = less[n] + low + high * equal[n];
      to[n] = static_cast<scalar_t>(known ? (share ? rank / held[n] : rank) : NAN);
    }
  }
}

// Among equal values a rank is `low` + `high` times how many they are: 1 and 0 the least, 0 and 1 the greatest, half
// and half the mean.
Tensor rolling_rank(const Tensor& x_, int64_t window, int64_t min_periods, double low, double high, bool ascending,
                    bool pct) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_rank: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  const double least = double(std::max<int64_t>(1, min_periods));
  THO_DISPATCH_V2(x.scalar_type(), "rolling_rank", AT_WRAP([&] {
                    const scalar_t* from = x.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(panels, rows, 0, [&](const WindowBlock& block, double*) {
                      const int64_t at = block.panel * panels.size() + block.first;
                      ranks(from + at, to + at, panels.assets, block, rows, least, low, high, ascending, pct);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_rank,
                   "(Tensor x, SymInt window, SymInt min_periods, float low, float high, bool ascending, bool pct) -> "
                   "Tensor")
