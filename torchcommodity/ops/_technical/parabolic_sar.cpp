// Parabolic stop and reverse (SAR) of (..., T, N). The rule is in parabolic_sar.h.
#include "parabolic_sar.h"

#include "native.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Rows {
  scalar_t *stop, *stop_weight, *price_weight;
  int64_t *high_lag, *low_lag, *position;
};

template <typename scalar_t>
void run_block(const scalar_t* high, const scalar_t* low, const Rows<scalar_t>& out, int64_t steps, int64_t stride,
               int64_t width, const SarSettings<scalar_t>& settings) {
  Sar<scalar_t> series[kBlock];
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t n = 0, i = t * stride; n < width; ++n, ++i) {
      const SarRow<scalar_t> row = series[n].next(high[i], low[i], t, settings);
      out.stop[i] = row.stop, out.stop_weight[i] = row.stop_weight, out.price_weight[i] = row.price_weight,
      out.position[i] = row.position;
      const int64_t lag = row.source < 0 ? -1 : t - row.source;
      out.high_lag[i] = row.source_is_high ? lag : -1, out.low_lag[i] = row.source_is_high ? -1 : lag;
    }
  }
}

using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

template <typename scalar_t>
void run_panels(const Tensor& high, const Tensor& low, Outputs& outputs, const SarSettings<scalar_t>& settings) {
  auto& [stop, stop_weight, price_weight, high_lag, low_lag, position] = outputs;
  const scalar_t* highs = high.const_data_ptr<scalar_t>();
  const scalar_t* lows = low.const_data_ptr<scalar_t>();
  const Rows<scalar_t> out = {stop.mutable_data_ptr<scalar_t>(),         stop_weight.mutable_data_ptr<scalar_t>(),
                              price_weight.mutable_data_ptr<scalar_t>(), high_lag.mutable_data_ptr<int64_t>(),
                              low_lag.mutable_data_ptr<int64_t>(),       position.mutable_data_ptr<int64_t>()};
  const Panels panels(high);
  for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
    const int64_t offset = panel * panels.size() + first;
    const Rows<scalar_t> block = {out.stop + offset,     out.stop_weight + offset, out.price_weight + offset,
                                  out.high_lag + offset, out.low_lag + offset,     out.position + offset};
    run_block(highs + offset, lows + offset, block, panels.steps, panels.assets, last - first, settings);
  });
}

Outputs parabolic_sar(const Tensor& high_, const Tensor& low_, double start, double offset, double initial_long,
                      double step_long, double max_long, double initial_short, double step_short, double max_short) {
  check_same("parabolic_sar", high_, low_);
  const Tensor high = contiguous(high_), low = contiguous(low_);
  const auto empty = [&](auto... type) { return new_empty(high, high.sizes(), type...); };
  constexpr auto kLong = torch::headeronly::ScalarType::Long;
  Outputs outputs = {empty(), empty(), empty(), empty(kLong), empty(kLong), empty(kLong)};
  const double settings[] = {start, offset, initial_long, initial_short, step_long, step_short, max_long, max_short};
  THO_DISPATCH_V2(high.scalar_type(), "parabolic_sar",
                  AT_WRAP([&] { run_panels(high, low, outputs, sar_settings<scalar_t>(settings)); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return outputs;
}

}  // namespace

COMMODITY_OPERATOR(parabolic_sar,
                   "(Tensor high, Tensor low, float start, float offset, float initial_long, float step_long, float "
                   "max_long, float initial_short, float step_short, float max_short) -> (Tensor, Tensor, Tensor, "
                   "Tensor, Tensor, Tensor)")
