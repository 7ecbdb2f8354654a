// Gradient of parabolic_sar with respect to its prices, in float64: one thread for each series, forward, then back. The
// arithmetic of a row is in parabolic_sar.h.
#include "device.h"
#include "parabolic_sar.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Gradient {
  const scalar_t *high, *low, *grad;
  scalar_t *d_high, *d_low;
  Sar<double>* states;  // before each row
  int64_t steps, assets;
  SarSettings settings;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    const int64_t first = panel * steps * assets + n;
    Sar<double> state = Sar<double>::none();
    for (int64_t t = 0, i = first; t < steps; ++t, i += assets) {
      double stop;
      states[i] = state;
      state.next(read(high + i), read(low + i), settings, stop);
    }
    SarAdjoint<double> adjoint{};
    for (int64_t t = steps - 1, i = first + t * assets; t >= 0; --t, i -= assets) {
      const double g = read(grad + i);
      double d_h, d_l;
      adjoint.previous(states[i], read(high + i), read(low + i), g == g ? g : 0, settings, d_h, d_l);
      d_high[i] = static_cast<scalar_t>(d_h), d_low[i] = static_cast<scalar_t>(d_l);
    }
  }
};

std::tuple<Tensor, Tensor> parabolic_sar_backward(const Tensor& high_, const Tensor& low_, const Tensor& grad_,
                                                  double start, double offset, double initial_long, double step_long,
                                                  double max_long, double initial_short, double step_short,
                                                  double max_short) {
  check_same("parabolic_sar_backward", high_, low_), check_same("parabolic_sar_backward", high_, grad_);
  const Tensor high = contiguous(high_), low = contiguous(low_), grad = contiguous(grad_);
  Tensor d_high = new_empty(high, high.sizes()), d_low = new_empty(high, high.sizes());
  const Tensor states = scratch(high, high.numel() * sizeof(Sar<double>) / sizeof(double));
  const SarSettings settings{
      start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}};
  const Panels panels(high);
  dispatch("parabolic_sar_backward", high, [&]<typename scalar_t>() {
    launch_grid(
        high, Grid(panels.batch, panels.assets, 1),
        Gradient<scalar_t>{high.const_data_ptr<scalar_t>(), low.const_data_ptr<scalar_t>(),
                           grad.const_data_ptr<scalar_t>(), data_ptr<scalar_t>(d_high), data_ptr<scalar_t>(d_low),
                           data_ptr<Sar<double>>(states), panels.steps, panels.assets, settings});
  });
  return {d_high, d_low};
}

}  // namespace

COMMODITY_CUDA(parabolic_sar_backward)
