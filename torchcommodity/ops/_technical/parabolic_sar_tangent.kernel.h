// Tangent of parabolic_sar for tangents of its prices, in float64: the second derivative. The arithmetic of a row is in
// parabolic_sar.h.
#include "lanes.h"
#include "parabolic_sar.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Tangents {
  template <typename Number>
  struct State {
    Sar<Number> stop;
    SarTangent<Number> tangent;
  };
  const scalar_t *high, *low, *d_high, *d_low;
  scalar_t* d_stop;
  int64_t steps, assets;
  SarSettings settings;

  template <typename Lanes>
  COMMODITY_INLINE auto initial(const Lanes&, int64_t, int64_t) const {
    return State<typename Lanes::Number>{Sar<typename Lanes::Number>::none(), {}};
  }

  template <typename Lanes, typename Number>
  COMMODITY_INLINE void advance(const Lanes& lanes, int64_t panel, int64_t t, int64_t n, State<Number>& state) const {
    const int64_t i = (panel * steps + t) * assets + n;
    const Number h = lanes.load(high + i), l = lanes.load(low + i);
    lanes.store(state.tangent.next(state.stop, h, l, lanes.load(d_high + i), lanes.load(d_low + i), settings),
                d_stop + i);
    Number stop;
    state.stop.next(h, l, settings, stop);
  }
};

Tensor parabolic_sar_tangent(const Tensor& high_, const Tensor& low_, const Tensor& d_high_, const Tensor& d_low_,
                             double start, double offset, double initial_long, double step_long, double max_long,
                             double initial_short, double step_short, double max_short) {
  for (const Tensor& x : {low_, d_high_, d_low_}) check_same("parabolic_sar_tangent", high_, x);
  const Tensor high = contiguous(high_), low = contiguous(low_), d_high = contiguous(d_high_),
               d_low = contiguous(d_low_);
  Tensor d_stop = new_output(high, high.sizes());
  const SarSettings settings{
      start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}};
  const Panels panels(high);
  dispatch("parabolic_sar_tangent", high, [&]<typename scalar_t>() {
    advance_columns(high, panels.batch, panels.steps, panels.assets,
                    Tangents<scalar_t>{high.const_data_ptr<scalar_t>(), low.const_data_ptr<scalar_t>(),
                                       d_high.const_data_ptr<scalar_t>(), d_low.const_data_ptr<scalar_t>(),
                                       d_stop.mutable_data_ptr<scalar_t>(), panels.steps, panels.assets, settings});
  });
  return d_stop;
}

}  // namespace

COMMODITY_KERNEL(parabolic_sar_tangent,
                 "(Tensor high, Tensor low, Tensor d_high, Tensor d_low, float start, float offset, float "
                 "initial_long, float step_long, float max_long, float initial_short, float step_short, float "
                 "max_short) -> Tensor")
