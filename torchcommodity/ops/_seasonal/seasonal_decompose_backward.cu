// Gradient of seasonal_decompose with respect to the prices: one thread per column. Scheme: see seasonal_adjoint.h.
#include "device_windows.h"
#include "seasonal_adjoint.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Memory {
  FiniteValues<scalar_t> prices, gradients[3];
  scalar_t* dx;
  double *rows, *phases;
  int64_t panel, n, batch, period;

  COMMODITY_INLINE void price(int64_t t, double& to) const { to = prices(panel, t, n); }
  COMMODITY_INLINE void gradient(int part, int64_t t, double& to) const { to = gradients[part](panel, t, n); }
  COMMODITY_INLINE void write(int64_t t, double value) const {
    dx[prices.at(panel, t, n)] = static_cast<scalar_t>(value);
  }
  COMMODITY_INLINE double& row(int kind, int64_t t) const {
    return rows[kind * batch * prices.steps * prices.assets + prices.at(panel, t, n)];
  }
  COMMODITY_INLINE double& phase(int kind, int64_t k) const {
    return phases[((kind * batch + panel) * period + k) * prices.assets + n];
  }
};

template <typename scalar_t>
struct Adjoint {
  Memory<scalar_t> memory;
  bool multiplicative, causal;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    SeasonalAdjoint<double, Memory<scalar_t>> column(memory, memory.period, memory.prices.steps, multiplicative,
                                                     causal);
    column.memory.panel = panel, column.memory.n = n;
    for (int64_t k = 0; k < memory.period; ++k)
      for (int kind = 0; kind < kPhaseKinds; ++kind) column.memory.phase(kind, k) = 0;
    column.run();
  }
};

Tensor seasonal_decompose_backward(const Tensor& prices_, const Tensor& d_trend_, const Tensor& d_seasonal_,
                                   const Tensor& d_residual_, int64_t period, bool multiplicative, bool causal) {
  STD_TORCH_CHECK(period >= 2, "seasonal_decompose_backward: period must be >= 2");
  for (const Tensor* grad : {&d_trend_, &d_seasonal_, &d_residual_})
    check_same("seasonal_decompose_backward", prices_, *grad);
  const Tensor prices = contiguous(prices_), d_trend = contiguous(d_trend_), d_seasonal = contiguous(d_seasonal_);
  const Tensor d_residual = contiguous(d_residual_), dx = new_empty(prices, prices.sizes());
  const Panels panels(prices);
  period = limit_window(period, panels.steps);
  const Tensor rows = scratch(prices, kRowKinds * prices.numel());
  const Tensor phases = scratch(prices, kPhaseKinds * panels.batch * period * panels.assets);
  dispatch("seasonal_decompose_backward", prices, [&]<typename scalar_t>() {
    const Memory<scalar_t> memory{
        finite_values<scalar_t>(prices, panels),
        {finite_values<scalar_t>(d_trend, panels), finite_values<scalar_t>(d_seasonal, panels),
         finite_values<scalar_t>(d_residual, panels)},
        dx.mutable_data_ptr<scalar_t>(),
        data_ptr<double>(rows),
        data_ptr<double>(phases),
        0,
        0,
        panels.batch,
        period};
    launch_grid(prices, Grid(panels.batch, panels.assets, 1), Adjoint<scalar_t>{memory, multiplicative, causal});
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(seasonal_decompose_backward)
