// Parabolic stop and reverse (SAR) of (..., T, N). The rule is in parabolic_sar.h; it depends on the previous row, so
// that a GPU, too, goes row by row.
#include "lanes.h"
#include "parabolic_sar.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Stops {
  const scalar_t *high, *low;
  scalar_t* stop;
  int8_t* position;
  int64_t steps, assets;
  SarSettings settings;
  const double* before = nullptr;  // of a live update: the state (kSarFields, N) of each panel before its first row,
  double* after = nullptr;         // and after its last

  template <typename Lanes>
  COMMODITY_INLINE auto initial(const Lanes& lanes, int64_t panel, int64_t n) const {
    auto state = Sar<typename Lanes::Number>::none();
    if (before)
      state.for_each_field(
          [&](int64_t k, auto& field) { field = lanes.load(before + (panel * kSarFields + k) * assets + n); });
    return state;
  }

  template <typename Lanes, typename Number>
  COMMODITY_INLINE void advance(const Lanes& lanes, int64_t panel, int64_t t, int64_t n, Sar<Number>& state) const {
    const int64_t i = (panel * steps + t) * assets + n, ahead = i + kSarPrefetchRows * assets;
    if (t + kSarPrefetchRows < steps) lanes.prefetch(high + ahead), lanes.prefetch(low + ahead);
    Number value;
    state.next(lanes.load(high + i), lanes.load(low + i), settings, value);
    lanes.store(value, stop + i), lanes.store(state.side, position + i);
  }

  template <typename Lanes, typename Number>
  COMMODITY_INLINE void finish(const Lanes& lanes, int64_t panel, int64_t n, Sar<Number>& state) const {
    if (after)
      state.for_each_field(
          [&](int64_t k, const auto& field) { lanes.store(field, after + (panel * kSarFields + k) * assets + n); });
  }
};

std::tuple<Tensor, Tensor> stops(const Tensor& high_, const Tensor& low_, const SarSettings& settings,
                                 const double* before = nullptr, double* after = nullptr) {
  check_same("parabolic_sar", high_, low_);
  const Tensor high = contiguous(high_), low = contiguous(low_);
  Tensor stop = new_output(high, high.sizes());
  Tensor position = new_output(high, high.sizes(), torch::headeronly::ScalarType::Char);
  const int64_t steps = high.size(-2), assets = high.size(-1);
  dispatch("parabolic_sar", high, [&]<typename scalar_t>() {
    advance_columns(high, count_panels(high), steps, assets,  // also without rows: a state passes through
                    Stops<scalar_t>{high.const_data_ptr<scalar_t>(), low.const_data_ptr<scalar_t>(),
                                    stop.mutable_data_ptr<scalar_t>(), position.mutable_data_ptr<int8_t>(), steps,
                                    assets, settings, before, after});
  });
  return {stop, position};
}

std::tuple<Tensor, Tensor> parabolic_sar(const Tensor& high, const Tensor& low, double start, double offset,
                                         double initial_long, double step_long, double max_long, double initial_short,
                                         double step_short, double max_short) {
  return stops(high, low,
               {start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}});
}

#if !defined(COMMODITY_GPU)
// Some rows, and the state (..., kSarFields, N) after them, from that before them; none: the first rows.
std::tuple<Tensor, Tensor, Tensor> parabolic_sar_step(const Tensor& high, const Tensor& low,
                                                      const std::optional<Tensor>& before_, double start, double offset,
                                                      double initial_long, double step_long, double max_long,
                                                      double initial_short, double step_short, double max_short) {
  std::vector<int64_t> shape(high.sizes().begin(), high.sizes().end());
  shape.end()[-2] = kSarFields;
  Tensor after = new_empty(high, shape, torch::headeronly::ScalarType::Double);
  const std::optional<Tensor> before = before_ ? std::optional(contiguous(*before_)) : std::nullopt;
  STD_TORCH_CHECK(!before || (before->scalar_type() == torch::headeronly::ScalarType::Double &&
                              before->sizes().equals(after.sizes())),
                  "parabolic_sar_step: the state must be float64 (..., 6, N)");
  const auto [stop, position] =
      stops(high, low, {start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}},
            before ? before->const_data_ptr<double>() : nullptr, after.mutable_data_ptr<double>());
  return {stop, position, after};
}
#endif

}  // namespace

COMMODITY_KERNEL(parabolic_sar,
                 "(Tensor high, Tensor low, float start=0.0, float offset=0.0, float initial_long=0.02, float "
                 "step_long=0.02, float max_long=0.2, float initial_short=0.02, float step_short=0.02, float "
                 "max_short=0.2) -> (Tensor, Tensor)")
#if !defined(COMMODITY_GPU)
COMMODITY_OPERATOR(parabolic_sar_step,
                   "(Tensor high, Tensor low, Tensor? state, float start, float offset, float initial_long, float "
                   "step_long, float max_long, float initial_short, float step_short, float max_short) -> (Tensor, "
                   "Tensor, Tensor)")
#endif
