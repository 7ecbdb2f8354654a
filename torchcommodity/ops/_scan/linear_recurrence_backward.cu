// Gradient of y_t = a_t y_{t-1} + b_t for (..., T, N): L_t = grad_t + a_{t+1} L_{t+1} backward in time, d_b = L and
// d_a_t = L_t y_{t-1}. The gradient of a NaN y is ignored.
#include "device_scan.h"

using namespace commodity;

namespace {

// Rows are numbered backward, from the last one.
template <typename scalar_t>
struct Gradient {
  const scalar_t *grad, *a, *y, *initial;
  scalar_t *d_a, *d_b;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t back, int64_t n) const {
    return (panel * steps + steps - 1 - back) * assets + n;
  }
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t back, int64_t n) const {
    const double factor = back ? read(a + at(panel, back - 1, n)) : 0, current = read(y + at(panel, back, n));
    return {factor == factor ? factor : 0, {current == current ? read(grad + at(panel, back, n)) : 0}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<>&, const State<>& state) const {
    const bool first = back == steps - 1;
    const double previous = !first    ? read(y + at(panel, back + 1, n))
                            : initial ? read(initial + panel * assets + n)
                                      : 0;
    d_b[at(panel, back, n)] = static_cast<scalar_t>(state.y[0]);
    const bool valid = (!first || initial) && previous == previous;  // never infinity * 0
    d_a[at(panel, back, n)] = static_cast<scalar_t>(valid ? state.y[0] * previous : 0);
  }
};

std::tuple<Tensor, Tensor> linear_recurrence_backward(const Tensor& grad_, const Tensor& a_, const Tensor& y_,
                                                      const std::optional<Tensor>& initial_) {
  check_same("linear_recurrence_backward", grad_, a_);
  check_same("linear_recurrence_backward", grad_, y_);
  if (initial_) check_rows("linear_recurrence_backward", "initial", *initial_, a_);
  const Tensor grad = contiguous(grad_), a = contiguous(a_), y = contiguous(y_);
  const std::optional<Tensor> initial = initial_ ? std::optional(contiguous(*initial_)) : std::nullopt;
  Tensor d_a = new_empty(a, a.sizes()), d_b = new_empty(a, a.sizes());
  const Panels panels(a);
  dispatch("linear_recurrence_backward", a, [&]<typename scalar_t>() {
    const scalar_t* initial_data = initial ? initial->const_data_ptr<scalar_t>() : nullptr;
    const Gradient<scalar_t> body{grad.const_data_ptr<scalar_t>(),
                                  a.const_data_ptr<scalar_t>(),
                                  y.const_data_ptr<scalar_t>(),
                                  initial_data,
                                  d_a.mutable_data_ptr<scalar_t>(),
                                  d_b.mutable_data_ptr<scalar_t>(),
                                  panels.steps,
                                  panels.assets};
    run_recurrence(a, panels.batch, panels.steps, panels.assets, body, body, body);
  });
  return {d_a, d_b};
}

}  // namespace

COMMODITY_CUDA(linear_recurrence_backward)
