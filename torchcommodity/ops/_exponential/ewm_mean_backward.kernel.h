// Gradient of the exponentially weighted mean of (..., T, N): dx_t = b_t L_t with L_t = grad_t + (1 - b_{t+1}) L_{t+1},
// where b_t is the share of x_t in the mean of row t. One pass forward in time stores the shares; the gradient then
// runs backward. Gradients of NaN means, of fewer than `min_periods` values so far, are ignored.
#include "ewm_weights.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Arguments {
  const scalar_t *grad, *x, *alpha;
  scalar_t* dx;
  EwmRule rule;
  double min_periods;
};

#if defined(COMMODITY_GPU)

// The share of every value, negative where the mean of its row is NaN.
template <typename scalar_t>
struct EwmShares : Arguments<scalar_t> {
  double* shares;
  int64_t assets;

  COMMODITY_INLINE double column(int64_t panel, int64_t n) const { return read(this->alpha + panel * assets + n); }
  COMMODITY_INLINE scalar_t load(double, int64_t i, int64_t) const { return read(this->x + i); }
  COMMODITY_INLINE WeightMap map(double alpha, scalar_t value) const {
    return WeightMap::of_row(this->rule, is_finite(value), alpha);
  }
  COMMODITY_INLINE WeightState initial(double) const { return {0, 0}; }
  COMMODITY_INLINE void write(double alpha, int64_t i, int64_t, scalar_t value, const WeightState& previous,
                              const WeightState& state) const {
    double total = previous.total;
    const double share = this->rule.next_share(total, is_finite(value), alpha);
    shares[i] = state.count >= this->min_periods ? share : -share;
  }
};

// The recurrence of L. Rows are numbered backward, from the last one.
template <typename scalar_t>
struct EwmGradient {
  const scalar_t* grad;
  const double* shares;
  scalar_t* dx;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t back, int64_t n) const {
    return (panel * steps + steps - 1 - back) * assets + n;
  }
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t back, int64_t n) const {
    const int64_t i = at(panel, back, n);
    return {back ? 1 - std::abs(read(shares + i + assets)) : 0, {std::signbit(read(shares + i)) ? 0 : read(grad + i)}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<>&, const State<>& state) const {
    const int64_t i = at(panel, back, n);
    dx[i] = static_cast<scalar_t>(std::abs(read(shares + i)) * state.y[0]);
  }
};

template <typename scalar_t>
void run_gradients(const Tensor& like, const Panels& panels, const Arguments<scalar_t>& in) {
  const Tensor memory = scratch(like, like.numel());
  double* shares = data_ptr<double>(memory);
  run_scan<scalar_t>(like, panels.batch, panels.steps, panels.assets, EwmShares<scalar_t>{in, shares, panels.assets});
  const EwmGradient<scalar_t> body{in.grad, shares, in.dx, panels.steps, panels.assets};
  run_recurrence<scalar_t>(like, panels.batch, panels.steps, panels.assets, body, body, body);
}

#else

template <typename scalar_t>
COMMODITY_SIMD void run_block(const scalar_t* grad, const scalar_t* x, scalar_t* __restrict dx, int64_t steps,
                              EwmBlock& block, double* __restrict shares, bool* __restrict shared) {
  const int64_t stride = block.stride, width = block.width;
  for (int64_t t = 0; t < steps; t += kRows)
    shared[t / kRows] = block.next(x + t * stride, steps - t, shares + t * width);
  double later[kStrip] = {};
  for (int64_t t = steps - 1; t >= 0; --t) {
    const scalar_t* g = grad + t * stride;
    const double* share = shares + t * width;
    scalar_t* output = dx + t * stride;
    if (t >= kPrefetchRows) {
      prefetch(g - kPrefetchRows * stride, width);
      prefetch(output - kPrefetchRows * stride, width);
    }
    const bool one_share = shared[t / kRows];
    for (int64_t n = 0; one_share && n < width; ++n) {
      const double total = g[n] + later[n], value = share[0] * total;
      output[n] = static_cast<scalar_t>(value), later[n] = total - value;
    }
    for (int64_t n = 0; !one_share && n < width; ++n) {
      const double total = (double(t) >= block.undefined[n] ? g[n] : 0) + later[n], value = share[n] * total;
      output[n] = static_cast<scalar_t>(value), later[n] = total - value;
    }
  }
}

template <typename scalar_t>
void run_gradients(const Tensor&, const Panels& panels, const Arguments<scalar_t>& in) {
  for_each_block(
      panels,
      [&](int64_t panel, int64_t first, int64_t last) {
        const int64_t offset = panel * panels.size() + first;
        const std::unique_ptr<double[]> shares(new double[panels.steps * (last - first)]);
        const std::unique_ptr<bool[]> shared(new bool[panels.steps / kRows + 1]);
        EwmBlock block(in.rule, in.alpha + panel * panels.assets + first, panels.assets, last - first, in.min_periods);
        run_block(in.grad + offset, in.x + offset, in.dx + offset, panels.steps, block, shares.get(), shared.get());
      },
      kStrip);
}

#endif

Tensor ewm_mean_backward(const Tensor& grad_, const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na,
                         int64_t min_periods, bool) {
  check_same("ewm_mean_backward", grad_, x_);
  check_rows("ewm_mean_backward", "alpha", alpha_, x_);
  const Tensor grad = contiguous(grad_), x = contiguous(x_), alpha = contiguous(alpha_);
  Tensor dx = new_output(x, x.sizes());
  dispatch("ewm_mean_backward", x, [&]<typename scalar_t>() {
    run_gradients<scalar_t>(x, Panels(x),
                            {grad.const_data_ptr<scalar_t>(),
                             x.const_data_ptr<scalar_t>(),
                             alpha.const_data_ptr<scalar_t>(),
                             dx.mutable_data_ptr<scalar_t>(),
                             {adjust, ignore_na},
                             double(std::max<int64_t>(1, min_periods))});
  });
  return dx;
}

}  // namespace

COMMODITY_KERNEL(ewm_mean_backward,
                 "(Tensor grad, Tensor x, Tensor alpha, bool adjust, bool ignore_na, SymInt min_periods, "
                 "bool learned) -> Tensor")
