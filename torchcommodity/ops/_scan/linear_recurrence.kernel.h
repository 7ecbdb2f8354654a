// y_t = a_t y_{t-1} + b_t along time, for (..., T, N).
#include "kernel.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Recurrence {
  using Map = Affine<1, Number<scalar_t>>;
  using State = typename Map::State;
  struct Row {
    scalar_t a, b;
  };
  const scalar_t *a, *b, *initial_data;
  scalar_t* y;
  int64_t assets;

  COMMODITY_INLINE int64_t column(int64_t panel, int64_t n) const { return panel * assets + n; }
  COMMODITY_INLINE Row load(int64_t, int64_t i, int64_t) const { return {read(a + i), read(b + i)}; }
  COMMODITY_INLINE Map map(int64_t, const Row& row) const { return {row.a, {row.b}}; }
  COMMODITY_INLINE State initial(int64_t series) const { return {initial_data ? read(initial_data + series) : 0}; }
  COMMODITY_INLINE void write(int64_t, int64_t i, int64_t, const Row&, const State&, const State& state) const {
    y[i] = static_cast<scalar_t>(state.y[0]);
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
    const Recurrence<scalar_t> body{a.const_data_ptr<scalar_t>(), b.const_data_ptr<scalar_t>(), initial_data,
                                    y.mutable_data_ptr<scalar_t>(), panels.assets};
    run_scan<scalar_t>(y, panels.batch, panels.steps, panels.assets, body);
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(linear_recurrence, "(Tensor a, Tensor b, Tensor? initial=None) -> Tensor")
