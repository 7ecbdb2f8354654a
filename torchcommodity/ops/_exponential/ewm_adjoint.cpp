// What the exponentially weighted mean makes of a gradient: each value gets its share of every later row's.
#include "ewm_block.h"

using namespace commodity;

namespace {

// The shares are found forwards in time, and kept; the gradient then runs backwards: L_t = grad_t + (1 - b_{t+1})
// L_{t+1}. Where the mean is NaN its gradient takes no part.
template <typename scalar_t>
COMMODITY_SIMD void adjoint(const scalar_t* grad, const scalar_t* x, scalar_t* __restrict dx, int64_t steps,
                            EwmBlock& block, double* __restrict shares, bool* __restrict one) {
  const int64_t stride = block.stride, width = block.width;
  for (int64_t t = 0; t < steps; t += kRows)
    one[t / kRows] = block.next(x + t * stride, steps - t, shares + t * kStrip);
  double carried[kStrip] = {};
  for (int64_t t = steps - 1; t >= 0; --t) {
    const scalar_t* g = grad + t * stride;
    const double* share = shares + t * kStrip;
    scalar_t* to = dx + t * stride;
    if (t >= kPrefetchRows) prefetch(g - kPrefetchRows * stride, width), prefetch(to - kPrefetchRows * stride, width);
    const bool alike = one[t / kRows];
    for (int64_t n = 0; alike && n < width; ++n) {
      const double total = g[n] + carried[n], own = share[0] * total;
      to[n] = static_cast<scalar_t>(own), carried[n] = total - own;
    }
    for (int64_t n = 0; !alike && n < width; ++n) {
      const double total = (double(t) >= block.unknown[n] ? g[n] : 0) + carried[n], own = share[n] * total;
      to[n] = static_cast<scalar_t>(own), carried[n] = total - own;
    }
  }
}

Tensor ewm_adjoint(const Tensor& grad_, const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na,
                   int64_t min_periods, bool) {
  check_same("ewm_adjoint", grad_, x_);
  STD_TORCH_CHECK(x_.scalar_type() == alpha_.scalar_type(), "ewm_adjoint: alpha must have the dtype of x");
  const Tensor grad = contiguous(grad_), x = contiguous(x_), alpha = contiguous(alpha_);
  Tensor dx = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  THO_DISPATCH_V2(x.scalar_type(), "ewm_adjoint", AT_WRAP([&] {
                    const scalar_t* from = grad.const_data_ptr<scalar_t>();
                    const scalar_t* values = x.const_data_ptr<scalar_t>();
                    const scalar_t* by = alpha.const_data_ptr<scalar_t>();
                    scalar_t* to = dx.mutable_data_ptr<scalar_t>();
                    for_each_block(
                        panels,
                        [&](int64_t panel, int64_t first, int64_t last) {
                          const int64_t at = panel * panels.size() + first;
                          const std::unique_ptr<double[]> share(new double[panels.steps * kStrip]);
                          const std::unique_ptr<bool[]> one(new bool[panels.steps / kRows + 1]);
                          EwmBlock block(by + panel * panels.assets + first, panels.assets, last - first, adjust,
                                         ignore_na, min_periods);
                          adjoint(from + at, values + at, to + at, panels.steps, block, share.get(), one.get());
                        },
                        kStrip);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(ewm_adjoint,
                   "(Tensor grad, Tensor x, Tensor alpha, bool adjust, bool ignore_na, SymInt min_periods, "
                   "bool learned) -> Tensor")
