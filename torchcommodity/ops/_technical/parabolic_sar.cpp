// Parabolic stop and reverse (SAR) of (..., T, N). The rule is in parabolic_sar.h.
#include "parabolic_sar.h"

#include "native.h"
#include "simd.h"

using namespace commodity;

namespace {

using Lane = Vec<double>;
constexpr int64_t kColumns = Simd<double>::count, kMaxColumns = 256, kPrefetchRows = 16;

// `states`: null, or the state of each panel (kSarFields, N) before the first row and then after the last.
template <typename scalar_t>
struct Stops {
  const scalar_t *high, *low;
  scalar_t* stop;
  int8_t* position;
  double* states;
  Panels panels;
  SarSettings settings;

  // Whole vectors of columns row by row, then the last columns one by one: alone, a series is faster without vectors.
  COMMODITY_SIMD void run(int64_t panel, int64_t first, int64_t last) const {
    const int64_t vectors = (last - first) / kColumns;
    Sar<Lane> lanes[kMaxColumns / kColumns];
    for (int64_t k = 0; k < vectors; ++k) begin(panel, first + k * kColumns, lanes[k]);
    for (int64_t t = 0; t < panels.steps; ++t)
      for (int64_t k = 0; k < vectors; ++k) {
        const int64_t i = (panel * panels.steps + t) * panels.assets + first + k * kColumns;
        const int64_t ahead = i + kPrefetchRows * panels.assets;
        __builtin_prefetch(high + ahead), __builtin_prefetch(low + ahead);
        advance(i, lanes[k]);
      }
    for (int64_t k = 0; k < vectors; ++k) finish(panel, first + k * kColumns, lanes[k]);
    for (int64_t n = first + vectors * kColumns; n < last; ++n) {
      Sar<double> state;
      begin(panel, n, state);
      for (int64_t t = 0; t < panels.steps; ++t) advance((panel * panels.steps + t) * panels.assets + n, state);
      finish(panel, n, state);
    }
  }

  template <typename Number>
  void advance(int64_t i, Sar<Number>& state) const {
    Number h, l, value;
    load<double>(h, high + i), load<double>(l, low + i);
    state.next(h, l, settings, value);
    store<double>(value, stop + i), store<double>(state.side, position + i);
  }

  template <typename Number>
  void begin(int64_t panel, int64_t n, Sar<Number>& state) const {
    state = Sar<Number>::none();
    for (int64_t k = 0; states && k < kSarFields; ++k)
      load<double>(state.field(k), states + (panel * kSarFields + k) * panels.assets + n);
  }

  template <typename Number>
  void finish(int64_t panel, int64_t n, Sar<Number>& state) const {
    for (int64_t k = 0; states && k < kSarFields; ++k)
      store<double>(state.field(k), states + (panel * kSarFields + k) * panels.assets + n);
  }
};

template <typename scalar_t>
void run_panels(const Tensor& high, const Tensor& low, Tensor& stop, Tensor& position, double* states,
                const SarSettings& settings) {
  const Panels panels(high);
  const Stops<scalar_t> stops{high.const_data_ptr<scalar_t>(),
                              low.const_data_ptr<scalar_t>(),
                              stop.mutable_data_ptr<scalar_t>(),
                              position.mutable_data_ptr<int8_t>(),
                              states,
                              panels,
                              settings};
  const auto run = [&](int64_t panel, int64_t first, int64_t last) { stops.run(panel, first, last); };
  for_each_block(panels, run, kMaxColumns);
}

std::tuple<Tensor, Tensor> run(const Tensor& high_, const Tensor& low_, double* states, const SarSettings& settings) {
  check_same("parabolic_sar", high_, low_);
  const Tensor high = contiguous(high_), low = contiguous(low_);
  Tensor stop = on_huge_pages(new_empty(high, high.sizes()));
  Tensor position = on_huge_pages(new_empty(high, high.sizes(), torch::headeronly::ScalarType::Char));
  THO_DISPATCH_V2(high.scalar_type(), "parabolic_sar",
                  AT_WRAP([&] { run_panels<scalar_t>(high, low, stop, position, states, settings); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {stop, position};
}

std::tuple<Tensor, Tensor> parabolic_sar(const Tensor& high, const Tensor& low, double start, double offset,
                                         double initial_long, double step_long, double max_long, double initial_short,
                                         double step_short, double max_short) {
  const SarSettings settings{
      start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}};
  return run(high, low, nullptr, settings);
}

// Some rows, and the state (..., kSarFields, N) after them, from that before them; none: the first rows.
std::tuple<Tensor, Tensor, Tensor> parabolic_sar_step(const Tensor& high, const Tensor& low,
                                                      const std::optional<Tensor>& before_, double start, double offset,
                                                      double initial_long, double step_long, double max_long,
                                                      double initial_short, double step_short, double max_short) {
  const SarSettings settings{
      start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}};
  std::vector<int64_t> shape(high.sizes().begin(), high.sizes().end());
  shape.end()[-2] = kSarFields;
  Tensor after = new_empty(high, shape, torch::headeronly::ScalarType::Double);
  double* states = after.mutable_data_ptr<double>();
  if (before_) {
    const Tensor before = contiguous(*before_);
    STD_TORCH_CHECK(
        before.scalar_type() == torch::headeronly::ScalarType::Double && before.sizes().equals(after.sizes()),
        "parabolic_sar_step: the state must be float64 (..., 6, N)");
    std::copy_n(before.const_data_ptr<double>(), before.numel(), states);
  } else {
    Sar<double> none = Sar<double>::none();
    const int64_t assets = high.size(-1);
    for (int64_t i = 0; i < after.numel(); ++i) states[i] = none.field(i / assets % kSarFields);
  }
  const auto [stop, position] = run(high, low, states, settings);
  return {stop, position, after};
}

}  // namespace

COMMODITY_OPERATOR(parabolic_sar,
                   "(Tensor high, Tensor low, float start=0.0, float offset=0.0, float initial_long=0.02, float "
                   "step_long=0.02, float max_long=0.2, float initial_short=0.02, float step_short=0.02, float "
                   "max_short=0.2) -> (Tensor, Tensor)")
COMMODITY_OPERATOR(parabolic_sar_step,
                   "(Tensor high, Tensor low, Tensor? state, float start, float offset, float initial_long, float "
                   "step_long, float max_long, float initial_short, float step_short, float max_short) -> (Tensor, "
                   "Tensor, Tensor)")
