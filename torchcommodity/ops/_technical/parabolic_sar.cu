// Parabolic stop and reverse (SAR) of (..., T, N). The rule is in parabolic_sar.h; it depends on the previous row, so
// that one thread runs each series.
#include "device.h"
#include "parabolic_sar.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Series {
  const scalar_t *high, *low;
  scalar_t *stop, *stop_weight, *price_weight;
  int64_t *high_lag, *low_lag, *position, steps, assets;
  SarSettings<scalar_t> settings;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    Sar<scalar_t> series;
#pragma unroll 4
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t i = (panel * steps + t) * assets + n;
      const SarRow<scalar_t> row = series.next(read(high + i), read(low + i), t, settings);
      stop[i] = row.stop, stop_weight[i] = row.stop_weight, price_weight[i] = row.price_weight,
      position[i] = row.position;
      const int64_t lag = row.source < 0 ? -1 : t - row.source;
      high_lag[i] = row.source_is_high ? lag : -1, low_lag[i] = row.source_is_high ? -1 : lag;
    }
  }
};

using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Outputs parabolic_sar(const Tensor& high_, const Tensor& low_, double start, double offset, double initial_long,
                      double step_long, double max_long, double initial_short, double step_short, double max_short) {
  check_same("parabolic_sar", high_, low_);
  const Tensor high = contiguous(high_), low = contiguous(low_);
  const auto empty = [&](auto... type) { return new_empty(high, high.sizes(), type...); };
  constexpr auto kLong = torch::headeronly::ScalarType::Long;
  Tensor stop = empty(), stop_weight = empty(), price_weight = empty(), high_lag = empty(kLong), low_lag = empty(kLong);
  Tensor position = empty(kLong);
  const double settings[] = {start, offset, initial_long, initial_short, step_long, step_short, max_long, max_short};
  const Panels panels(high);
  dispatch("parabolic_sar", high, [&]<typename scalar_t>() {
    launch_grid(
        high, Grid(panels.batch, panels.assets, 1),
        Series<scalar_t>{high.const_data_ptr<scalar_t>(), low.const_data_ptr<scalar_t>(), data_ptr<scalar_t>(stop),
                         data_ptr<scalar_t>(stop_weight), data_ptr<scalar_t>(price_weight), data_ptr<int64_t>(high_lag),
                         data_ptr<int64_t>(low_lag), data_ptr<int64_t>(position), panels.steps, panels.assets,
                         sar_settings<scalar_t>(settings)});
  });
  return {stop, stop_weight, price_weight, high_lag, low_lag, position};
}

}  // namespace

COMMODITY_CUDA(parabolic_sar)
