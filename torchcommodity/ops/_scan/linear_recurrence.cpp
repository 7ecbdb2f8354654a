// y_t = a_t y_{t-1} + b_t along time, for (..., T, N): row by row, all columns of a block at once.
#include "native.h"

using namespace commodity;

namespace {

template <typename scalar_t>
void recurrence_block(const scalar_t* a, const scalar_t* b, const scalar_t* initial, scalar_t* y, int64_t steps,
                      int64_t stride, int64_t width) {
  for (int64_t n = 0; n < width; ++n) y[n] = (initial ? a[n] * initial[n] : scalar_t(0)) + b[n];
  for (int64_t t = 1; t < steps; ++t) {
    a += stride, b += stride, y += stride;
    for (int64_t n = 0; n < width; ++n) y[n] = a[n] * y[n - stride] + b[n];
  }
}

Tensor linear_recurrence(const Tensor& a_, const Tensor& b_, const std::optional<Tensor>& initial_) {
  check_same("linear_recurrence", a_, b_);
  if (initial_) check_rows("linear_recurrence", "initial", *initial_, b_);
  const Tensor a = contiguous(a_), b = contiguous(b_);
  const std::optional<Tensor> initial = initial_ ? std::optional(contiguous(*initial_)) : std::nullopt;
  Tensor y = new_empty(b, b.sizes());
  const Panels panels(b);
  THO_DISPATCH_V2(b.scalar_type(), "linear_recurrence", AT_WRAP([&] {
                    const scalar_t* a_data = a.const_data_ptr<scalar_t>();
                    const scalar_t* b_data = b.const_data_ptr<scalar_t>();
                    const scalar_t* initial_data = initial ? initial->const_data_ptr<scalar_t>() : nullptr;
                    scalar_t* y_data = y.mutable_data_ptr<scalar_t>();
                    for_each_block(
                        panels,
                        [&](int64_t panel, int64_t first, int64_t last) {
                          const int64_t offset = panel * panels.size() + first;
                          recurrence_block(a_data + offset, b_data + offset,
                                           initial_data ? initial_data + panel * panels.assets + first : nullptr,
                                           y_data + offset, panels.steps, panels.assets, last - first);
                        },
                        panels.assets);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(linear_recurrence, "(Tensor a, Tensor b, Tensor? initial=None) -> Tensor")
