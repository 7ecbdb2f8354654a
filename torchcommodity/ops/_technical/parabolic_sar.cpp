// Parabolic stop and reverse, for (..., T, N).
#include "parabolic_sar.h"

#include "native.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Rows {
  scalar_t *stop, *keep, *gain;
  int64_t *high_since, *low_since, *side;
};

template <typename scalar_t>
void stops(const scalar_t* high, const scalar_t* low, const Rows<scalar_t>& to, int64_t steps, int64_t stride,
           int64_t width, const SarSettings<scalar_t>& settings) {
  Sar<scalar_t> series[kBlock];
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t n = 0, at = t * stride; n < width; ++n, ++at) {
      const SarRow<scalar_t> row = series[n].next(high[at], low[at], t, settings);
      to.stop[at] = row.stop, to.keep[at] = row.keep, to.gain[at] = row.gain, to.side[at] = row.side;
      const int64_t since = row.source < 0 ? -1 : t - row.source;
      to.high_since[at] = row.of_high ? since : -1, to.low_since[at] = row.of_high ? -1 : since;
    }
  }
}

using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

template <typename scalar_t>
void all_stops(const Tensor& high, const Tensor& low, Outputs& outputs, const SarSettings<scalar_t>& settings) {
  auto& [stop, keep, gain, high_since, low_since, side] = outputs;
  const scalar_t* highs = high.const_data_ptr<scalar_t>();
  const scalar_t* lows = low.const_data_ptr<scalar_t>();
  const Rows<scalar_t> to = {stop.mutable_data_ptr<scalar_t>(),     keep.mutable_data_ptr<scalar_t>(),
                             gain.mutable_data_ptr<scalar_t>(),     high_since.mutable_data_ptr<int64_t>(),
                             low_since.mutable_data_ptr<int64_t>(), side.mutable_data_ptr<int64_t>()};
  const Panels panels(high);
  for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
    const int64_t at = panel * panels.size() + first;
    const Rows<scalar_t> from = {to.stop + at,       to.keep + at,      to.gain + at,
                                 to.high_since + at, to.low_since + at, to.side + at};
    stops(highs + at, lows + at, from, panels.steps, panels.assets, last - first, settings);
  });
}

Outputs parabolic_sar(const Tensor& high_, const Tensor& low_, double start, double offset, double initial_long,
                      double step_long, double most_long, double initial_short, double step_short, double most_short) {
  check_same("parabolic_sar", high_, low_);
  const Tensor high = contiguous(high_), low = contiguous(low_);
  const auto like = [&](auto... type) { return new_empty(high, high.sizes(), type...); };
  constexpr auto kLong = torch::headeronly::ScalarType::Long;
  Outputs outputs = {like(), like(), like(), like(kLong), like(kLong), like(kLong)};
  const double settings[] = {start, offset, initial_long, initial_short, step_long, step_short, most_long, most_short};
  THO_DISPATCH_V2(high.scalar_type(), "parabolic_sar",
                  AT_WRAP([&] { all_stops(high, low, outputs, sar_settings<scalar_t>(settings)); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return outputs;
}

}  // namespace

COMMODITY_OPERATOR(parabolic_sar,
                   "(Tensor high, Tensor low, float start, float offset, float initial_long, float step_long, float "
                   "most_long, float initial_short, float step_short, float most_short) -> (Tensor, Tensor, Tensor, "
                   "Tensor, Tensor, Tensor)")
