// Exponentially weighted mean of (..., T, N), with pandas' rules for missing values and one alpha per column.
#include "ewm_block.h"

using namespace commodity;

namespace {

// A missing value has share zero and leaves the mean unchanged.
template <typename scalar_t>
COMMODITY_SIMD void ewm_mean_block(const scalar_t* x, scalar_t* __restrict y, int64_t steps, EwmBlock& block) {
  double mean[kStrip] = {}, shares[kRows * kStrip];
  for (int64_t t = 0; t < steps; t += kRows) {
    const int64_t rows = std::min(kRows, steps - t);
    const bool shared = block.next(x, steps - t, shares);
    for (int64_t j = 0; j < rows; ++j, x += block.stride, y += block.stride) {
      const double *share = shares + j * kStrip, row = double(t + j);
      if (t + j + kPrefetchRows < steps) prefetch(y + kPrefetchRows * block.stride, block.width);
      for (int64_t n = 0; shared && n < block.width; ++n)
        mean[n] += share[0] * (x[n] - mean[n]), y[n] = static_cast<scalar_t>(mean[n]);
      for (int64_t n = 0; !shared && n < block.width; ++n) {
        const double value = x[n] - x[n] == 0 ? x[n] : mean[n];
        mean[n] += share[n] * (value - mean[n]);
        y[n] = static_cast<scalar_t>(row >= block.undefined[n] ? mean[n] : NAN);
      }
    }
  }
}

Tensor ewm_mean(const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na, int64_t min_periods, bool) {
  STD_TORCH_CHECK(x_.scalar_type() == alpha_.scalar_type(), "ewm_mean: alpha must have the dtype of x");
  const Tensor x = contiguous(x_), alpha = contiguous(alpha_);
  const Panels panels(x);
  STD_TORCH_CHECK(alpha.numel() == panels.batch * panels.assets || panels.steps == 0, "ewm_mean: alpha (..., N)");
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  THO_DISPATCH_V2(x.scalar_type(), "ewm_mean", AT_WRAP([&] {
                    const scalar_t* input = x.const_data_ptr<scalar_t>();
                    const scalar_t* alphas = alpha.const_data_ptr<scalar_t>();
                    scalar_t* output = y.mutable_data_ptr<scalar_t>();
                    for_each_block(
                        panels,
                        [&](int64_t panel, int64_t first, int64_t last) {
                          const int64_t offset = panel * panels.size() + first;
                          EwmBlock block(alphas + panel * panels.assets + first, panels.assets, last - first, adjust,
                                         ignore_na, min_periods);
                          ewm_mean_block(input + offset, output + offset, panels.steps, block);
                        },
                        kStrip);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(ewm_mean,
                   "(Tensor x, Tensor alpha, bool adjust, bool ignore_na, SymInt min_periods, bool learned) -> Tensor")
