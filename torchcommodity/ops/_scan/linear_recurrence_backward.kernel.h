// Gradient of y_t = a_t y_{t-1} + b_t for (..., T, N): L_t = grad_t + a_{t+1} L_{t+1} backward in time, d_b = L and
// d_a_t = L_t y_{t-1}. The gradient of a NaN y is ignored.
#include "kernel.h"

using namespace commodity;

namespace {

// Rows are numbered backward, from the last one.
template <typename scalar_t>
struct Gradient {
  using number_t = Number<scalar_t>;
  using Map = Affine<1, number_t>;
  using State = typename Map::State;
  struct Column {
    int64_t panel, n;
  };
  struct Row {
    scalar_t grad, factor, current, previous;
  };
  const scalar_t *grad, *a, *y, *initial_data;
  scalar_t *d_a, *d_b;
  int64_t steps, assets;

  COMMODITY_INLINE Column column(int64_t panel, int64_t n) const { return {panel, n}; }
  COMMODITY_INLINE int64_t row(int64_t panel, int64_t back) const {
    return (panel * steps + steps - 1 - back) * assets;
  }
  COMMODITY_INLINE bool has_previous(int64_t back) const { return back < steps - 1 || initial_data; }
  COMMODITY_INLINE Row load(const Column& c, int64_t, int64_t back) const {
    const int64_t now = row(c.panel, back), later = back ? now + assets : now;
    const scalar_t* before = back < steps - 1 ? y + now - assets : initial_data ? initial_data + c.panel * assets : y;
    const scalar_t factor = read(a + later + c.n);
    return {read(grad + now + c.n), back ? factor : 0, read(y + now + c.n), read(before + c.n)};
  }
  COMMODITY_INLINE Map map(const Column&, const Row& row) const {
    return {row.factor == row.factor ? row.factor : 0, {row.current == row.current ? row.grad : 0}};
  }
  COMMODITY_INLINE State initial(const Column&) const { return {}; }
  COMMODITY_INLINE void write(const Column& c, int64_t, int64_t back, const Row& values, const State&,
                              const State& state) const {
    const number_t total = state.y[0], previous = values.previous;
    const bool valid = has_previous(back) && previous == previous;  // never infinity * 0
    d_b[row(c.panel, back) + c.n] = static_cast<scalar_t>(total);
    d_a[row(c.panel, back) + c.n] = static_cast<scalar_t>(valid ? total * previous : 0);
  }
};

std::tuple<Tensor, Tensor> linear_recurrence_backward(const Tensor& grad_, const Tensor& a_, const Tensor& y_,
                                                      const std::optional<Tensor>& initial_) {
  check_same("linear_recurrence_backward", grad_, a_);
  check_same("linear_recurrence_backward", grad_, y_);
  if (initial_) check_rows("linear_recurrence_backward", "initial", *initial_, a_);
  const Tensor grad = contiguous(grad_), a = contiguous(a_), y = contiguous(y_);
  const std::optional<Tensor> initial = initial_ ? std::optional(contiguous(*initial_)) : std::nullopt;
  Tensor d_a = new_output(a, a.sizes()), d_b = new_output(a, a.sizes());
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
    run_scan<scalar_t>(a, panels.batch, panels.steps, panels.assets, body);
  });
  return {d_a, d_b};
}

}  // namespace

COMMODITY_KERNEL(linear_recurrence_backward,
                 "(Tensor grad, Tensor a, Tensor y, Tensor? initial=None) -> (Tensor, Tensor)")
