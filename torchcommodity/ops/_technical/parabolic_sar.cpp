// Parabolic stop and reverse (SAR) of (..., T, N). The rule is in parabolic_sar.h.
#include "parabolic_sar.h"

#include "native.h"
#include "simd.h"

using namespace commodity;

namespace {

using Lane = Vec<double>;
constexpr int64_t kColumns = Simd<double>::count, kMaxColumns = 256, kPrefetchRows = 16;

template <typename scalar_t>
struct Stops {
  const scalar_t *high, *low;
  scalar_t* stop;
  int8_t* position;
  int64_t steps, stride;
  SarSettings settings;

  // Whole vectors of columns row by row, then the last columns one by one: alone, a series is faster without vectors.
  COMMODITY_SIMD void run(int64_t first, int64_t last) const {
    Sar<Lane> states[kMaxColumns / kColumns];
    for (Sar<Lane>& state : states) state = Sar<Lane>::none();
    const int64_t vectors = (last - first) / kColumns;
    for (int64_t t = 0; t < steps; ++t)
      for (int64_t k = 0; k < vectors; ++k) {
        const int64_t i = first + t * stride + k * kColumns, ahead = i + kPrefetchRows * stride;
        __builtin_prefetch(high + ahead), __builtin_prefetch(low + ahead);
        advance(i, states[k]);
      }
    for (first += vectors * kColumns; first < last; ++first) {
      Sar<double> state = Sar<double>::none();
      for (int64_t t = 0; t < steps; ++t) advance(first + t * stride, state);
    }
  }

  template <typename Number>
  void advance(int64_t i, Sar<Number>& state) const {
    Number h, l, value;
    load<double>(h, high + i), load<double>(l, low + i);
    state.next(h, l, settings, value);
    store<double>(value, stop + i), store<double>(state.side, position + i);
  }
};

template <typename scalar_t>
void run_panels(const Tensor& high, const Tensor& low, Tensor& stop, Tensor& position, const SarSettings& settings) {
  const Panels panels(high);
  const Stops<scalar_t> stops{high.const_data_ptr<scalar_t>(),
                              low.const_data_ptr<scalar_t>(),
                              stop.mutable_data_ptr<scalar_t>(),
                              position.mutable_data_ptr<int8_t>(),
                              panels.steps,
                              panels.assets,
                              settings};
  const auto run = [&](int64_t panel, int64_t first, int64_t last) {
    stops.run(panel * panels.size() + first, panel * panels.size() + last);
  };
  for_each_block(panels, run, kMaxColumns);
}

std::tuple<Tensor, Tensor> parabolic_sar(const Tensor& high_, const Tensor& low_, double start, double offset,
                                         double initial_long, double step_long, double max_long, double initial_short,
                                         double step_short, double max_short) {
  check_same("parabolic_sar", high_, low_);
  const Tensor high = contiguous(high_), low = contiguous(low_);
  Tensor stop = on_huge_pages(new_empty(high, high.sizes()));
  Tensor position = on_huge_pages(new_empty(high, high.sizes(), torch::headeronly::ScalarType::Char));
  const SarSettings settings{
      start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}};
  THO_DISPATCH_V2(high.scalar_type(), "parabolic_sar",
                  AT_WRAP([&] { run_panels<scalar_t>(high, low, stop, position, settings); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {stop, position};
}

}  // namespace

COMMODITY_OPERATOR(parabolic_sar,
                   "(Tensor high, Tensor low, float start, float offset, float initial_long, float step_long, float "
                   "max_long, float initial_short, float step_short, float max_short) -> (Tensor, Tensor)")
