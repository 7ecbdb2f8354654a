// y_t = a_t y_{t-1} + b_t along time, for (..., T, N): row by row, all columns of a block at once.
#include "native.h"

using namespace commodity;

namespace {

// One loop for all rows: a live update begins with any of them, and must give the same bits.
template <typename scalar_t>
void recurrence_block(const scalar_t* a, const scalar_t* b, const scalar_t* previous, scalar_t* y, int64_t steps,
                      int64_t stride, int64_t width) {
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t n = 0; n < width; ++n) y[n] = a[n] * previous[n] + b[n];
    previous = y;
    a += stride, b += stride, y += stride;
  }
}

Tensor linear_recurrence(const Tensor& a_, const Tensor& b_, const std::optional<Tensor>& initial_) {
  check_same("linear_recurrence", a_, b_);
  if (initial_) check_rows("linear_recurrence", "initial", *initial_, b_);
  const Tensor a = contiguous(a_), b = contiguous(b_);
  const Panels panels(b);
  const Tensor initial = initial_ ? contiguous(*initial_) : new_zeros(b, {panels.batch * panels.assets});
  Tensor y = new_empty(b, b.sizes());
  THO_DISPATCH_V2(b.scalar_type(), "linear_recurrence", AT_WRAP([&] {
                    const scalar_t* a_data = a.const_data_ptr<scalar_t>();
                    const scalar_t* b_data = b.const_data_ptr<scalar_t>();
                    const scalar_t* initial_data = initial.const_data_ptr<scalar_t>();
                    scalar_t* y_data = y.mutable_data_ptr<scalar_t>();
                    for_each_block(
                        panels,
                        [&](int64_t panel, int64_t first, int64_t last) {
                          const int64_t offset = panel * panels.size() + first;
                          recurrence_block(a_data + offset, b_data + offset,
                                           initial_data + panel * panels.assets + first, y_data + offset, panels.steps,
                                           panels.assets, last - first);
                        },
                        panels.assets);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(linear_recurrence, "(Tensor a, Tensor b, Tensor? initial=None) -> Tensor")
