// Exponentially weighted mean of (..., T, N), with pandas' rules for missing values and one alpha per column.
#include "ewm_block.h"

using namespace commodity;

namespace {

// A missing value has share zero and leaves the mean unchanged. `mean` holds that of each column before the first row,
// and then after the last.
template <typename scalar_t>
COMMODITY_SIMD void ewm_mean_block(const scalar_t* x, scalar_t* __restrict y, int64_t steps, EwmBlock& block,
                                   double* final_mean) {
  double mean[kStrip], shares[kRows * kStrip];
  std::copy_n(final_mean, kStrip, mean);
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
  std::copy_n(mean, kStrip, final_mean);
}

// `before` and `after`: mean, total weight and count (..., 3, N) before the first row and after the last, or null.
Tensor run(const Tensor& x_, const Tensor& alpha_, const double* before, double* after, bool adjust, bool ignore_na,
           int64_t min_periods) {
  STD_TORCH_CHECK(x_.scalar_type() == alpha_.scalar_type(), "ewm_mean: alpha must have the dtype of x");
  const Tensor x = contiguous(x_), alpha = contiguous(alpha_);
  const Panels panels(x);
  STD_TORCH_CHECK(alpha.numel() == panels.batch * panels.assets || panels.steps == 0, "ewm_mean: alpha (..., N)");
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  dispatch("ewm_mean", x, [&]<typename scalar_t>() {
    const scalar_t* input = x.const_data_ptr<scalar_t>();
    const scalar_t* alphas = alpha.const_data_ptr<scalar_t>();
    scalar_t* output = y.mutable_data_ptr<scalar_t>();
    for_each_block(
        panels,
        [&](int64_t panel, int64_t first, int64_t last) {
          const int64_t offset = panel * panels.size() + first, width = last - first;
          const int64_t state = panel * 3 * panels.assets + first;
          EwmBlock block(alphas + panel * panels.assets + first, panels.assets, width, adjust, ignore_na, min_periods);
          double mean[kStrip] = {};
          if (before) {
            std::copy_n(before + state, width, mean);
            block.load(before + state + panels.assets);
          }
          ewm_mean_block(input + offset, output + offset, panels.steps, block, mean);
          if (after) {
            std::copy_n(mean, width, after + state);
            block.store(after + state + panels.assets);
          }
        },
        kStrip);
  });
  return y;
}

Tensor ewm_mean(const Tensor& x, const Tensor& alpha, bool adjust, bool ignore_na, int64_t min_periods, bool) {
  return run(x, alpha, nullptr, nullptr, adjust, ignore_na, min_periods);
}

std::tuple<Tensor, Tensor> ewm_mean_step(const Tensor& x, const Tensor& alpha, const Tensor& state_, bool adjust,
                                         bool ignore_na, int64_t min_periods) {
  const Tensor before = contiguous(state_);
  STD_TORCH_CHECK(before.scalar_type() == torch::headeronly::ScalarType::Double && before.size(-2) == 3 &&
                      before.numel() == 3 * alpha.numel() && x.size(-2) > 0,
                  "ewm_mean_step: state must be float64 (..., 3, N) for x (..., T, N), T >= 1");
  Tensor after = new_empty(before, before.sizes());
  Tensor y =
      run(x, alpha, before.const_data_ptr<double>(), after.mutable_data_ptr<double>(), adjust, ignore_na, min_periods);
  return {y, after};
}

}  // namespace

COMMODITY_OPERATOR(ewm_mean,
                   "(Tensor x, Tensor alpha, bool adjust=True, bool ignore_na=False, SymInt min_periods=0, bool "
                   "learned=True) -> Tensor")
COMMODITY_OPERATOR(ewm_mean_step,
                   "(Tensor x, Tensor alpha, Tensor state, bool adjust, bool ignore_na, SymInt min_periods) -> "
                   "(Tensor, Tensor)")
