// Gradient of seasonal_decompose with respect to the prices, a SIMD vector of columns at a time. Scheme: see
// seasonal_adjoint.h.
#include "seasonal_adjoint.h"
#include "trailing.h"

using namespace commodity;

namespace {

struct Settings {
  int64_t period, steps, stride;
  bool multiplicative, causal;
};

// Access to the columns of a vector and to the stored values of each row, all kinds of a row side by side.
template <typename scalar_t>
struct Memory {
  using Lane = Vec<double>;
  using Prices = PanelColumns<scalar_t, double>;
  Prices prices, gradients[3];
  scalar_t* dx;
  Lane *rows, *phases;

  void price(int64_t t, Lane& to) const { prices.read(t, to), prices.prefetch(t + kPrefetchColumnRows); }
  void gradient(int part, int64_t t, Lane& to) const {
    gradients[part].read(t, to), gradients[part].prefetch(t - kPrefetchColumnRows);
  }
  void write(int64_t t, const Lane& value) const { prices.write(t, value, dx); }
  Lane& row(int kind, int64_t t) const { return rows[t * kRowKinds + kind]; }
  Lane& phase(int kind, int64_t k) const { return phases[k * kPhaseKinds + kind]; }
};

// The columns of a vector, from the offset on in each of x, three gradients and dx.
template <typename scalar_t>
COMMODITY_SIMD void adjoint(const Settings& s, const scalar_t* const (&from)[4], int64_t offset,
                            AlignedVector<Vec<double>>& storage, scalar_t* dx) {
  const auto columns = [&](int i) { return PanelColumns<scalar_t, double>{from[i] + offset, s.steps, s.stride}; };
  std::fill(storage.begin() + s.steps * kRowKinds, storage.end(), Vec<double>{});
  Vec<double>* rows = storage.data();
  const Memory<scalar_t> access{
      columns(0), {columns(1), columns(2), columns(3)}, dx + offset, rows, rows + s.steps * kRowKinds};
  SeasonalAdjoint<Vec<double>, Memory<scalar_t>>(access, s.period, s.steps, s.multiplicative, s.causal).run();
}

template <typename scalar_t>
void adjoint(const Settings& s, const scalar_t* const (&from)[4], int64_t offset, int64_t width, scalar_t* dx) {
  constexpr int count = Simd<double>::count;
  AlignedVector<Vec<double>> storage(s.steps * kRowKinds + s.period * kPhaseKinds);
  for (; width >= count; width -= count, offset += count) adjoint(s, from, offset, storage, dx);
  if (width == 0) return;
  std::vector<PaddedColumns<scalar_t, count>> padded(5, {s.steps, s.stride, width});
  const scalar_t* rows[4];
  for (int i = 0; i < 4; ++i) rows[i] = padded[i].read(from[i] + offset);
  adjoint({s.period, s.steps, count, s.multiplicative, s.causal}, rows, 0, storage, padded[4].rows.data());
  padded[4].write(dx + offset);
}

template <typename scalar_t>
void adjoint_blocks(const Settings& s, const Tensor& prices, const std::array<Tensor, 3>& gradients, Tensor& dx) {
  const Panels panels(prices);
  const scalar_t* from[4] = {prices.const_data_ptr<scalar_t>()};
  for (int i = 0; i < 3; ++i) from[i + 1] = gradients[i].const_data_ptr<scalar_t>();
  scalar_t* to = dx.mutable_data_ptr<scalar_t>();
  for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
    adjoint(s, from, panel * panels.size() + first, last - first, to);
  });
}

Tensor seasonal_decompose_backward(const Tensor& prices_, const Tensor& d_trend_, const Tensor& d_seasonal_,
                                   const Tensor& d_residual_, int64_t period, bool multiplicative, bool causal) {
  STD_TORCH_CHECK(period >= 2, "seasonal_decompose_backward: period must be >= 2");
  for (const Tensor* grad : {&d_trend_, &d_seasonal_, &d_residual_})
    check_same("seasonal_decompose_backward", prices_, *grad);
  const Tensor prices = contiguous(prices_), d_trend = contiguous(d_trend_), d_seasonal = contiguous(d_seasonal_);
  const Tensor d_residual = contiguous(d_residual_);
  Tensor dx = new_empty(prices, prices.sizes());
  const std::array<Tensor, 3> gradients = {d_trend, d_seasonal, d_residual};
  const Settings s{limit_window(period, prices.size(-2)), prices.size(-2), prices.size(-1), multiplicative, causal};
  dispatch("seasonal_decompose_backward", prices,
           [&]<typename scalar_t>() { adjoint_blocks<scalar_t>(s, prices, gradients, dx); });
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(seasonal_decompose_backward,
                   "(Tensor prices, Tensor d_trend, Tensor d_seasonal, Tensor d_residual, SymInt period, "
                   "bool multiplicative, bool causal) -> Tensor")
