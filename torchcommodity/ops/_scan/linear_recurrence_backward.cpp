// Gradient of y_t = a_t y_{t-1} + b_t for (..., T, N): L_t = grad_t + a_{t+1} L_{t+1} backward in time, d_b = L and
// d_a_t = L_t y_{t-1}. The gradient of a NaN y is ignored.
#include "windows.h"

using namespace commodity;

namespace {

constexpr int64_t kColumns = 1024;  // columns per block: the caches hold their five streams

template <typename scalar_t>
COMMODITY_SIMD void gradient_block(const scalar_t* grad, const scalar_t* a, const scalar_t* y, const scalar_t* initial,
                                   scalar_t* __restrict d_a, scalar_t* __restrict d_b, int64_t steps, int64_t stride,
                                   int64_t width) {
  scalar_t later[kColumns] = {}, first[kColumns] = {};
  if (initial) std::copy_n(initial, width, first);
  for (int64_t t = steps - 1; t >= 0; --t) {
    const scalar_t *g = grad + t * stride, *factor = a + t * stride, *current = y + t * stride;
    const scalar_t* previous = t ? current - stride : first;
    if (t >= kPrefetchRows)
      for (const scalar_t* row : {g, factor, current}) prefetch(row - kPrefetchRows * stride, width);
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t total = (current[n] == current[n] ? g[n] : 0) + later[n];
      const scalar_t valid_factor = factor[n] == factor[n] ? factor[n] : 0;
      d_b[t * stride + n] = total;
      // without `initial`, exactly zero in the first row, where the total may be infinite
      d_a[t * stride + n] = (t || initial) && previous[n] == previous[n] ? total * previous[n] : 0;
      later[n] = valid_factor * total;
    }
  }
}

std::tuple<Tensor, Tensor> linear_recurrence_backward(const Tensor& grad_, const Tensor& a_, const Tensor& y_,
                                                      const std::optional<Tensor>& initial_) {
  check_same("linear_recurrence_backward", grad_, a_);
  check_same("linear_recurrence_backward", grad_, y_);
  if (initial_) check_rows("linear_recurrence_backward", "initial", *initial_, a_);
  const Tensor grad = contiguous(grad_), a = contiguous(a_), y = contiguous(y_);
  const std::optional<Tensor> initial = initial_ ? std::optional(contiguous(*initial_)) : std::nullopt;
  Tensor d_a = on_huge_pages(new_empty(a, a.sizes())), d_b = on_huge_pages(new_empty(a, a.sizes()));
  const Panels panels(a);
  THO_DISPATCH_V2(a.scalar_type(), "linear_recurrence_backward", AT_WRAP([&] {
                    const scalar_t* grad_data = grad.const_data_ptr<scalar_t>();
                    const scalar_t* a_data = a.const_data_ptr<scalar_t>();
                    const scalar_t* y_data = y.const_data_ptr<scalar_t>();
                    const scalar_t* initial_data = initial ? initial->const_data_ptr<scalar_t>() : nullptr;
                    scalar_t* d_a_data = d_a.mutable_data_ptr<scalar_t>();
                    scalar_t* d_b_data = d_b.mutable_data_ptr<scalar_t>();
                    for_each_block(
                        panels,
                        [&](int64_t panel, int64_t first, int64_t last) {
                          const int64_t offset = panel * panels.size() + first;
                          gradient_block(grad_data + offset, a_data + offset, y_data + offset,
                                         initial_data ? initial_data + panel * panels.assets + first : nullptr,
                                         d_a_data + offset, d_b_data + offset, panels.steps, panels.assets,
                                         last - first);
                        },
                        kColumns);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {d_a, d_b};
}

}  // namespace

COMMODITY_OPERATOR(linear_recurrence_backward,
                   "(Tensor grad, Tensor a, Tensor y, Tensor? initial=None) -> (Tensor, Tensor)")
