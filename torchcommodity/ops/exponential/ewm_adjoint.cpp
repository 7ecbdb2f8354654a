// What the exponentially weighted mean makes of a gradient: each value gets its share of every later row's.
#include <memory>

#include "ewm_weights.h"
#include "windows.h"

using namespace commodity;

namespace {

// The shares are found forwards in time, and kept; the gradient then runs backwards: L_t = grad_t + (1 - b_{t+1})
// L_{t+1}.
template <typename scalar_t>
COMMODITY_SIMD void adjoint(const scalar_t* grad, const scalar_t* x, const scalar_t* alpha_, scalar_t* __restrict dx,
                            int64_t steps, int64_t stride, int64_t width, bool adjust, bool ignore_na,
                            double* __restrict share) {
  double alpha[kBlock], carried[kBlock] = {};
  EwmWeight weight[kBlock];
  std::copy_n(alpha_, width, alpha);
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t value = x[t * stride + n];
      share[t * kBlock + n] = weight[n].next(value - value == 0, alpha[n], adjust, ignore_na);
    }
  for (int64_t t = steps - 1; t >= 0; --t)
    for (int64_t n = 0; n < width; ++n) {
      const double total = grad[t * stride + n] + carried[n], own = share[t * kBlock + n] * total;
      dx[t * stride + n] = static_cast<scalar_t>(own);
      carried[n] = total - own;
    }
}

Tensor ewm_adjoint(const Tensor& grad_, const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na, bool) {
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
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first;
                      const std::unique_ptr<double[]> share(new double[panels.steps * kBlock]);
                      adjoint(from + at, values + at, by + panel * panels.assets + first, to + at, panels.steps,
                              panels.assets, last - first, adjust, ignore_na, share.get());
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(ewm_adjoint,
                   "(Tensor grad, Tensor x, Tensor alpha, bool adjust, bool ignore_na, bool learned) -> Tensor")
