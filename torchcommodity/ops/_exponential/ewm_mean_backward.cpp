// Gradient of the exponentially weighted mean of (..., T, N): dx_t = b_t L_t with L_t = grad_t + (1 - b_{t+1}) L_{t+1},
// where b_t is the share of x_t in the mean of row t.
#include "ewm_block.h"

using namespace commodity;

namespace {

// One pass forward in time stores the shares; the gradient then runs backward. Gradients of NaN means are ignored.
template <typename scalar_t>
COMMODITY_SIMD void ewm_gradient_block(const scalar_t* grad, const scalar_t* x, scalar_t* __restrict dx, int64_t steps,
                                       EwmBlock& block, double* __restrict shares, bool* __restrict shared) {
  const int64_t stride = block.stride, width = block.width;
  for (int64_t t = 0; t < steps; t += kRows)
    shared[t / kRows] = block.next(x + t * stride, steps - t, shares + t * kStrip);
  double later[kStrip] = {};
  for (int64_t t = steps - 1; t >= 0; --t) {
    const scalar_t* g = grad + t * stride;
    const double* share = shares + t * kStrip;
    scalar_t* output = dx + t * stride;
    if (t >= kPrefetchRows) {
      prefetch(g - kPrefetchRows * stride, width);
      prefetch(output - kPrefetchRows * stride, width);
    }
    const bool one_share = shared[t / kRows];
    for (int64_t n = 0; one_share && n < width; ++n) {
      const double total = g[n] + later[n], value = share[0] * total;
      output[n] = static_cast<scalar_t>(value), later[n] = total - value;
    }
    for (int64_t n = 0; !one_share && n < width; ++n) {
      const double total = (double(t) >= block.undefined[n] ? g[n] : 0) + later[n], value = share[n] * total;
      output[n] = static_cast<scalar_t>(value), later[n] = total - value;
    }
  }
}

Tensor ewm_mean_backward(const Tensor& grad_, const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na,
                         int64_t min_periods, bool) {
  check_same("ewm_mean_backward", grad_, x_);
  check_rows("ewm_mean_backward", "alpha", alpha_, x_);
  const Tensor grad = contiguous(grad_), x = contiguous(x_), alpha = contiguous(alpha_);
  Tensor dx = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  dispatch("ewm_mean_backward", x, [&]<typename scalar_t>() {
    const scalar_t* grads = grad.const_data_ptr<scalar_t>();
    const scalar_t* values = x.const_data_ptr<scalar_t>();
    const scalar_t* alphas = alpha.const_data_ptr<scalar_t>();
    scalar_t* output = dx.mutable_data_ptr<scalar_t>();
    for_each_block(
        panels,
        [&](int64_t panel, int64_t first, int64_t last) {
          const int64_t offset = panel * panels.size() + first;
          const std::unique_ptr<double[]> shares(new double[panels.steps * kStrip]);
          const std::unique_ptr<bool[]> shared(new bool[panels.steps / kRows + 1]);
          EwmBlock block(alphas + panel * panels.assets + first, panels.assets, last - first, adjust, ignore_na,
                         min_periods);
          ewm_gradient_block(grads + offset, values + offset, output + offset, panels.steps, block, shares.get(),
                             shared.get());
        },
        kStrip);
  });
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(ewm_mean_backward,
                   "(Tensor grad, Tensor x, Tensor alpha, bool adjust, bool ignore_na, SymInt min_periods, "
                   "bool learned) -> Tensor")
