// Tangent of parabolic_sar for tangents of its prices, in float64: the second derivative. The arithmetic of a row is in
// parabolic_sar.h.
#include "kernel.h"
#include "parabolic_sar.h"

using namespace commodity;

namespace {

// One series of (panels, T, N): the index of a series counts panels and their columns.
template <typename scalar_t>
struct SeriesTangent {
  const scalar_t *high, *low, *d_high, *d_low;
  scalar_t* d_stop;
  int64_t steps, assets;
  SarSettings settings;

  COMMODITY_INLINE int64_t memory() const { return 0; }
  int64_t work() const { return steps; }

  COMMODITY_INLINE void operator()(int64_t series, double*) const {
    Sar<double> state = Sar<double>::none();
    SarTangent<double> tangent{};
    const int64_t first = series / assets * steps * assets + series % assets;
    for (int64_t t = 0, i = first; t < steps; ++t, i += assets) {
      const double h = high[i], l = low[i];
      d_stop[i] = static_cast<scalar_t>(tangent.next(state, h, l, d_high[i], d_low[i], settings));
      double stop;
      state.next(h, l, settings, stop);
    }
  }
};

Tensor parabolic_sar_tangent(const Tensor& high_, const Tensor& low_, const Tensor& d_high_, const Tensor& d_low_,
                             double start, double offset, double initial_long, double step_long, double max_long,
                             double initial_short, double step_short, double max_short) {
  for (const Tensor& x : {low_, d_high_, d_low_}) check_same("parabolic_sar_tangent", high_, x);
  const Tensor high = contiguous(high_), low = contiguous(low_), d_high = contiguous(d_high_),
               d_low = contiguous(d_low_);
  Tensor d_stop = new_empty(high, high.sizes());
  const SarSettings settings{
      start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}};
  const Panels panels(high);
  dispatch("parabolic_sar_tangent", high, [&]<typename scalar_t>() {
    for_each_panel(high, panels.batch * panels.assets,
                   SeriesTangent<scalar_t>{high.const_data_ptr<scalar_t>(), low.const_data_ptr<scalar_t>(),
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
