// Gradient of parabolic_sar with respect to its prices, in float64: a forward pass stores the state before each row, a
// pass in reverse time transposes each row. The arithmetic of a row is in parabolic_sar.h.
#include "native.h"
#include "parabolic_sar.h"
#include "simd.h"

using namespace commodity;

namespace {

using Lane = Vec<double>;
constexpr int64_t kColumns = Simd<double>::count, kPrefetchRows = 16;

template <typename scalar_t>
struct Gradient {
  const scalar_t *high, *low, *grad;
  scalar_t *d_high, *d_low;
  int64_t steps, stride;
  SarSettings settings;

  COMMODITY_SIMD void run(int64_t first, int64_t last) const {
    AlignedVector<Sar<Lane>> states(steps);
    for (; first + kColumns <= last; first += kColumns) run_columns(first, states.data());
    for (; first < last; ++first) run_columns(first, reinterpret_cast<Sar<double>*>(states.data()));
  }

  // `states`: memory for the state before each row.
  template <typename Number>
  void run_columns(int64_t first, Sar<Number>* states) const {
    Sar<Number> state = Sar<Number>::none();
    Number h, l, g, d_h, d_l;
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t i = first + t * stride, ahead = i + kPrefetchRows * stride;
      __builtin_prefetch(high + ahead), __builtin_prefetch(low + ahead), __builtin_prefetch(grad + ahead);
      states[t] = state;
      load<double>(h, high + i), load<double>(l, low + i);
      state.next(h, l, settings, g);
    }
    SarAdjoint<Number> adjoint{};
    for (int64_t t = steps - 1; t >= 0; --t) {
      const int64_t i = first + t * stride;
      load<double>(h, high + i), load<double>(l, low + i), load<double>(g, grad + i);
      adjoint.previous(states[t], h, l, g == g ? g : Number(), settings, d_h, d_l);
      store<double>(d_h, d_high + i), store<double>(d_l, d_low + i);
    }
  }
};

template <typename scalar_t>
void run_panels(const Tensor& high, const Tensor& low, const Tensor& grad, Tensor& d_high, Tensor& d_low,
                const SarSettings& settings) {
  const Panels panels(high);
  const Gradient<scalar_t> gradient{high.const_data_ptr<scalar_t>(),
                                    low.const_data_ptr<scalar_t>(),
                                    grad.const_data_ptr<scalar_t>(),
                                    d_high.mutable_data_ptr<scalar_t>(),
                                    d_low.mutable_data_ptr<scalar_t>(),
                                    panels.steps,
                                    panels.assets,
                                    settings};
  for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
    gradient.run(panel * panels.size() + first, panel * panels.size() + last);
  });
}

std::tuple<Tensor, Tensor> parabolic_sar_backward(const Tensor& high_, const Tensor& low_, const Tensor& grad_,
                                                  double start, double offset, double initial_long, double step_long,
                                                  double max_long, double initial_short, double step_short,
                                                  double max_short) {
  check_same("parabolic_sar_backward", high_, low_), check_same("parabolic_sar_backward", high_, grad_);
  const Tensor high = contiguous(high_), low = contiguous(low_), grad = contiguous(grad_);
  Tensor d_high = on_huge_pages(new_empty(high, high.sizes())), d_low = on_huge_pages(new_empty(high, high.sizes()));
  const SarSettings settings{
      start, offset, {initial_long, initial_short}, {step_long, step_short}, {max_long, max_short}};
  THO_DISPATCH_V2(high.scalar_type(), "parabolic_sar_backward",
                  AT_WRAP([&] { run_panels<scalar_t>(high, low, grad, d_high, d_low, settings); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {d_high, d_low};
}

}  // namespace

COMMODITY_OPERATOR(parabolic_sar_backward,
                   "(Tensor high, Tensor low, Tensor grad, float start, float offset, float initial_long, float "
                   "step_long, float max_long, float initial_short, float step_short, float max_short) -> (Tensor, "
                   "Tensor)")
