// The exponentially weighted mean of (..., T, N), with pandas' rules for what is missing, for one alpha per column.
#include "ewm_weights.h"
#include "windows.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void means(const scalar_t* x, const scalar_t* alpha_, scalar_t* __restrict y, int64_t steps,
                          int64_t stride, int64_t width, bool adjust, bool ignore_na, double least) {
  double alpha[kBlock], mean[kBlock] = {}, count[kBlock] = {};
  EwmWeight weight[kBlock];
  std::copy_n(alpha_, width, alpha);
  for (int64_t t = 0; t < steps; ++t, x += stride, y += stride) {
    if (t + kAhead < steps) fetch(x + kAhead * stride, width), fetch(y + kAhead * stride, width);
    for (int64_t n = 0; n < width; ++n) {
      const bool present = x[n] - x[n] == 0;
      const double share = weight[n].next(present, alpha[n], adjust, ignore_na);
      mean[n] += present ? share * (x[n] - mean[n]) : 0;
      count[n] += present ? 1 : 0;
      y[n] = static_cast<scalar_t>(count[n] >= least ? mean[n] : NAN);
    }
  }
}

Tensor ewm_mean(const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na, int64_t min_periods, bool) {
  STD_TORCH_CHECK(x_.scalar_type() == alpha_.scalar_type(), "ewm_mean: alpha must have the dtype of x");
  const Tensor x = contiguous(x_), alpha = contiguous(alpha_);
  const Panels panels(x);
  STD_TORCH_CHECK(alpha.numel() == panels.batch * panels.assets || panels.steps == 0, "ewm_mean: alpha (..., N)");
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const double least = double(std::max<int64_t>(1, min_periods));
  THO_DISPATCH_V2(x.scalar_type(), "ewm_mean", AT_WRAP([&] {
                    const scalar_t* from = x.const_data_ptr<scalar_t>();
                    const scalar_t* by = alpha.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first;
                      means(from + at, by + panel * panels.assets + first, to + at, panels.steps, panels.assets,
                            last - first, adjust, ignore_na, least);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(ewm_mean,
                   "(Tensor x, Tensor alpha, bool adjust, bool ignore_na, SymInt min_periods, bool learned) -> Tensor")
