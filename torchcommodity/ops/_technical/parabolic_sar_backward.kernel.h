// Gradient of parabolic_sar with respect to its prices, in float64: a forward pass stores the state before each row, a
// pass in reverse time transposes each row. The arithmetic of a row is in parabolic_sar.h.
#include "lanes.h"
#include "parabolic_sar.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Gradient {
  static constexpr bool kAlone = true;
  const scalar_t *high, *low, *grad;
  scalar_t *d_high, *d_low;
  int64_t steps, assets;
  SarSettings settings;

  int64_t numbers() const { return steps * kSarFields; }

  template <typename Lanes, typename Memory>
  COMMODITY_INLINE void operator()(const Lanes& lanes, const Memory& states, int64_t panel, int64_t n) const {
    using Number = typename Lanes::Number;
    const int64_t first = panel * steps * assets + n;
    Sar<Number> state = Sar<Number>::none();
    for (int64_t t = 0, i = first; t < steps; ++t, i += assets) {
      if (t + kSarPrefetchRows < steps)
        for (const scalar_t* row : {high, low, grad}) lanes.prefetch(row + i + kSarPrefetchRows * assets);
      state.for_each_field([&](int64_t k, const Number& field) { states[t * kSarFields + k] = field; });
      Number stop;
      state.next(lanes.load(high + i), lanes.load(low + i), settings, stop);
    }
    SarAdjoint<Number> adjoint{};
    for (int64_t t = steps - 1, i = first + t * assets; t >= 0; --t, i -= assets) {
      state.for_each_field([&](int64_t k, Number& field) { field = states[t * kSarFields + k]; });
      const Number g = lanes.load(grad + i);
      Number d_h, d_l;
      adjoint.previous(state, lanes.load(high + i), lanes.load(low + i), g == g ? g : Number{}, settings, d_h, d_l);
      lanes.store(d_h, d_high + i), lanes.store(d_l, d_low + i);
    }
  }
};

std::tuple<Tensor, Tensor> parabolic_sar_backward(const Tensor& high_, const Tensor& low_, const Tensor& grad_,
                                                  double start, double offset, double initial_long, double step_long,
                                                  double max_long, double initial_short, double step_short,
                                                  double max_short) {
  check_same("parabolic_sar_backward", high_, low_), check_same("parabolic_sar_backward", high_, grad_);
  const Tensor high = contiguous(high_), low = contiguous(low_), grad = contiguous(grad_);
  Tensor d_high = new_output(high, high.sizes()), d_low = new_output(high, high.sizes());
  const SarSettings settings{
      start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}};
  const Panels panels(high);
  dispatch("parabolic_sar_backward", high, [&]<typename scalar_t>() {
    for_each_column(high, panels.batch, panels.steps, panels.assets,
                    Gradient<scalar_t>{high.const_data_ptr<scalar_t>(), low.const_data_ptr<scalar_t>(),
                                       grad.const_data_ptr<scalar_t>(), d_high.mutable_data_ptr<scalar_t>(),
                                       d_low.mutable_data_ptr<scalar_t>(), panels.steps, panels.assets, settings});
  });
  return {d_high, d_low};
}

}  // namespace

COMMODITY_KERNEL(parabolic_sar_backward,
                 "(Tensor high, Tensor low, Tensor grad, float start, float offset, float initial_long, float "
                 "step_long, float max_long, float initial_short, float step_short, float max_short) -> (Tensor, "
                 "Tensor)")
