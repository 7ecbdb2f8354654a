// Gradient of stl without robustness weights, which is linear in x: the transpose of its passes. Scheme: see stl.h.
#include "stl.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Gradients {
  const scalar_t *x, *trend, *seasonal, *residual;
  scalar_t* to;
};

// In double for every dtype: compiled once.
COMMODITY_SIMD void run_transpose(StlBlock& block) {
  if (block.missing) block.update_fit_factors();
  for (int64_t pass = 0; pass < block.plan.inner; ++pass) block.inner_pass_transpose(block.missing);
}

// Forward: y = x - level, residual = y - trend - seasonal, and level is added to the trend.
template <typename scalar_t>
void transpose(const Plan& plan, const Gradients<scalar_t>& g, int64_t first, int64_t stride, int64_t width) {
  StlBlock block(plan);
  block.read(g.x + first, stride, width);
  std::fill(block.y.begin(), block.y.end(), 0.0);
  double level[kLanes] = {};
  for (int64_t t = 0; t < plan.steps; ++t)
    for (int64_t n = 0; n < width; ++n) {
      const int64_t i = t * kLanes + n, offset = first + t * stride + n;
      block.y[i] = block.present[i] ? g.residual[offset] : 0;
      block.trend[i] = g.trend[offset] - block.y[i];
      block.seasonal[i] = g.seasonal[offset] - block.y[i];
      level[n] += g.trend[offset];
    }
  run_transpose(block);
  for (int64_t i = 0; i < block.size; ++i) level[i % kLanes] -= block.present[i] ? block.y[i] : 0;
  for (int64_t t = 0; t < plan.steps; ++t)
    for (int64_t n = 0; n < width; ++n) {
      const int64_t i = t * kLanes + n;
      const double dy = block.y[i] + level[n] / std::max(block.count[n], 1.0);
      g.to[first + t * stride + n] = block.present[i] ? scalar_t(dy) : scalar_t(0);
    }
}

template <typename scalar_t>
void transpose_blocks(const Tensor (&inputs)[4], int64_t period, const std::array<Smoother, 3>& smoothers,
                      int64_t inner, Tensor& to) {
  const Panels panels(to);
  const Plan plan(panels.steps, period, smoothers, inner, 0, !all_finite<scalar_t>(inputs[0]));
  const scalar_t* in[4];
  for (int i = 0; i < 4; ++i) in[i] = inputs[i].const_data_ptr<scalar_t>();
  const Gradients<scalar_t> g{in[0], in[1], in[2], in[3], to.mutable_data_ptr<scalar_t>()};
  for_each_lanes(panels, [&](int64_t first, int64_t width) { transpose(plan, g, first, panels.assets, width); });
}

Tensor stl_backward(const Tensor& trend_, const Tensor& seasonal_, const Tensor& residual_, const Tensor& x_,
                    int64_t period, std::vector<int64_t> lengths, std::vector<int64_t> degrees,
                    std::vector<int64_t> jumps, int64_t inner) {
  STD_TORCH_CHECK(period >= 2 && x_.size(-2) >= 2 * period, "stl_backward: needs T >= 2 period");
  for (const Tensor* grad : {&trend_, &seasonal_, &residual_}) check_same("stl_backward", *grad, x_);
  const auto smoothers = make_smoothers(lengths, degrees, jumps);
  const Tensor inputs[4] = {contiguous(x_), contiguous(trend_), contiguous(seasonal_), contiguous(residual_)};
  Tensor to = new_empty(inputs[0], inputs[0].sizes());
  dispatch("stl_backward", x_,
           [&]<typename scalar_t>() { transpose_blocks<scalar_t>(inputs, period, smoothers, inner, to); });
  return to;
}

}  // namespace

COMMODITY_OPERATOR(stl_backward,
                   "(Tensor d_trend, Tensor d_seasonal, Tensor d_residual, Tensor x, SymInt period, SymInt[] lengths, "
                   "SymInt[] degrees, SymInt[] jumps, SymInt inner) -> Tensor")
