// Parabolic stop and reverse (SAR) of (..., T, N). The rule is in parabolic_sar.h; it depends on the previous row, so
// that one thread runs each series.
#include "device.h"
#include "parabolic_sar.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Series {
  const scalar_t *high, *low;
  scalar_t* stop;
  int8_t* position;
  int64_t steps, assets;
  SarSettings settings;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    Sar<double> state = Sar<double>::none();
#pragma unroll 4
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t i = (panel * steps + t) * assets + n;
      double value;
      state.next(read(high + i), read(low + i), settings, value);
      stop[i] = static_cast<scalar_t>(value), position[i] = static_cast<int8_t>(state.side);
    }
  }
};

std::tuple<Tensor, Tensor> parabolic_sar(const Tensor& high_, const Tensor& low_, double start, double offset,
                                         double initial_long, double step_long, double max_long, double initial_short,
                                         double step_short, double max_short) {
  check_same("parabolic_sar", high_, low_);
  const Tensor high = contiguous(high_), low = contiguous(low_);
  Tensor stop = new_empty(high, high.sizes());
  Tensor position = new_empty(high, high.sizes(), torch::headeronly::ScalarType::Char);
  const SarSettings settings{
      start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}};
  const Panels panels(high);
  dispatch("parabolic_sar", high, [&]<typename scalar_t>() {
    launch_grid(
        high, Grid(panels.batch, panels.assets, 1),
        Series<scalar_t>{high.const_data_ptr<scalar_t>(), low.const_data_ptr<scalar_t>(), data_ptr<scalar_t>(stop),
                         data_ptr<int8_t>(position), panels.steps, panels.assets, settings});
  });
  return {stop, position};
}

}  // namespace

COMMODITY_CUDA(parabolic_sar)
