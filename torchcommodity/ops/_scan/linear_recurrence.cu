// y_t = a_t y_{t-1} + b_t along time, for (..., T, N), in chunks of time (device.h).
#include "device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Recurrence {
  const scalar_t *a, *b, *initial;
  scalar_t* y;
  int64_t steps, assets;

  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const int64_t i = (panel * steps + t) * assets + n;
    return {read(a + i), {read(b + i)}};
  }
  COMMODITY_INLINE State<> operator()(int64_t panel, int64_t n) const {
    return {initial ? read(initial + panel * assets + n) : 0};
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, const State<>&, const State<>& state) const {
    y[(panel * steps + t) * assets + n] = static_cast<scalar_t>(state.y[0]);
  }
};

Tensor linear_recurrence(const Tensor& a_, const Tensor& b_, const std::optional<Tensor>& initial_) {
  check_same("linear_recurrence", a_, b_);
  if (initial_) check_rows("linear_recurrence", "initial", *initial_, b_);
  const Tensor a = contiguous(a_), b = contiguous(b_);
  const std::optional<Tensor> initial = initial_ ? std::optional(contiguous(*initial_)) : std::nullopt;
  Tensor y = new_empty(b, b.sizes());
  const Panels panels(b);
  dispatch("linear_recurrence", b, [&]<typename scalar_t>() {
    const scalar_t* initial_data = initial ? initial->const_data_ptr<scalar_t>() : nullptr;
    const Recurrence<scalar_t> body{a.const_data_ptr<scalar_t>(),
                                    b.const_data_ptr<scalar_t>(),
                                    initial_data,
                                    y.mutable_data_ptr<scalar_t>(),
                                    panels.steps,
                                    panels.assets};
    run_recurrence(y, panels.batch, panels.steps, panels.assets, body, body, body);
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(linear_recurrence)
