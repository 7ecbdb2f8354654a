// L_t = grad_t + a_{t+1} L_{t+1} backwards in time, for (..., T, N): what y_t = a_t y_{t-1} + b_t makes of a gradient.
// Where y is NaN it takes no part.
#include "windows.h"

using namespace commodity;

namespace {

constexpr int64_t kTogether = 1024;  // columns whose five streams the caches hold

template <typename scalar_t>
COMMODITY_SIMD void adjoint(const scalar_t* grad, const scalar_t* a, const scalar_t* y, const scalar_t* initial,
                            scalar_t* __restrict d_a, scalar_t* __restrict d_b, int64_t steps, int64_t stride,
                            int64_t width) {
  scalar_t carried[kTogether] = {}, before[kTogether] = {};
  if (initial) std::copy_n(initial, width, before);
  for (int64_t t = steps - 1; t >= 0; --t) {
    const scalar_t *g = grad + t * stride, *factor = a + t * stride, *now = y + t * stride;
    const scalar_t* previous = t ? now - stride : before;
    if (t >= kPrefetchRows)
      for (const scalar_t* row : {g, factor, now}) prefetch(row - kPrefetchRows * stride, width);
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t total = (now[n] == now[n] ? g[n] : 0) + carried[n], keep = factor[n] == factor[n] ? factor[n] : 0;
      d_b[t * stride + n] = total;
      d_a[t * stride + n] = (t || initial) && previous[n] == previous[n] ? total * previous[n] : 0;  // not infinity * 0
      carried[n] = keep * total;
    }
  }
}

std::tuple<Tensor, Tensor> linear_recurrence_adjoint(const Tensor& grad_, const Tensor& a_, const Tensor& y_,
                                                     const std::optional<Tensor>& initial_) {
  check_same("linear_recurrence_adjoint", grad_, a_);
  check_same("linear_recurrence_adjoint", grad_, y_);
  const Tensor grad = contiguous(grad_), a = contiguous(a_), y = contiguous(y_);
  const std::optional<Tensor> initial = initial_ ? std::optional(contiguous(*initial_)) : std::nullopt;
  Tensor d_a = on_huge_pages(new_empty(a, a.sizes())), d_b = on_huge_pages(new_empty(a, a.sizes()));
  const Panels panels(a);
  THO_DISPATCH_V2(a.scalar_type(), "linear_recurrence_adjoint", AT_WRAP([&] {
                    const scalar_t* from = grad.const_data_ptr<scalar_t>();
                    const scalar_t* from_a = a.const_data_ptr<scalar_t>();
                    const scalar_t* from_y = y.const_data_ptr<scalar_t>();
                    const scalar_t* before = initial ? initial->const_data_ptr<scalar_t>() : nullptr;
                    scalar_t* to_a = d_a.mutable_data_ptr<scalar_t>();
                    scalar_t* to_b = d_b.mutable_data_ptr<scalar_t>();
                    for_each_block(
                        panels,
                        [&](int64_t panel, int64_t first, int64_t last) {
                          const int64_t at = panel * panels.size() + first;
                          adjoint(from + at, from_a + at, from_y + at,
                                  before ? before + panel * panels.assets + first : nullptr, to_a + at, to_b + at,
                                  panels.steps, panels.assets, last - first);
                        },
                        kTogether);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {d_a, d_b};
}

}  // namespace

COMMODITY_OPERATOR(linear_recurrence_adjoint,
                   "(Tensor grad, Tensor a, Tensor y, Tensor? initial=None) -> (Tensor, Tensor)")
