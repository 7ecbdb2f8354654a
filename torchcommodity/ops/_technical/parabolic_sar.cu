// Parabolic stop and reverse, for (..., T, N). What a row does depends on where the last one stood: an item takes a
// column.
#include "device.h"
#include "parabolic_sar.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Stops {
  const scalar_t *high, *low;
  scalar_t *stop, *keep, *gain;
  int64_t *high_since, *low_since, *side, steps, assets;
  SarSettings<scalar_t> settings;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    Sar<scalar_t> series;
#pragma unroll 4
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t at = (panel * steps + t) * assets + n;
      const SarRow<scalar_t> row = series.next(read(high + at), read(low + at), t, settings);
      stop[at] = row.stop, keep[at] = row.keep, gain[at] = row.gain, side[at] = row.side;
      const int64_t since = row.source < 0 ? -1 : t - row.source;
      high_since[at] = row.of_high ? since : -1, low_since[at] = row.of_high ? -1 : since;
    }
  }
};

using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Outputs parabolic_sar(const Tensor& high_, const Tensor& low_, double start, double offset, double initial_long,
                      double step_long, double most_long, double initial_short, double step_short, double most_short) {
  check_same("parabolic_sar", high_, low_);
  const Tensor high = contiguous(high_), low = contiguous(low_);
  const auto like = [&](auto... type) { return new_empty(high, high.sizes(), type...); };
  constexpr auto kLong = torch::headeronly::ScalarType::Long;
  Tensor stop = like(), keep = like(), gain = like(), high_since = like(kLong), low_since = like(kLong);
  Tensor side = like(kLong);
  const double settings[] = {start, offset, initial_long, initial_short, step_long, step_short, most_long, most_short};
  const Panels panels(high);
  dispatch("parabolic_sar", high, [&]<typename scalar_t>() {
    launch_grid(high, Grid(panels.batch, panels.assets, 1),
                Stops<scalar_t>{high.const_data_ptr<scalar_t>(), low.const_data_ptr<scalar_t>(),
                                data_ptr<scalar_t>(stop), data_ptr<scalar_t>(keep), data_ptr<scalar_t>(gain),
                                data_ptr<int64_t>(high_since), data_ptr<int64_t>(low_since), data_ptr<int64_t>(side),
                                panels.steps, panels.assets, sar_settings<scalar_t>(settings)});
  });
  return {stop, keep, gain, high_since, low_since, side};
}

}  // namespace

COMMODITY_CUDA(parabolic_sar)
