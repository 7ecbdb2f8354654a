// The transpose of stl without robustness weights, eight series side by side, in double.
#include "stl.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Gradients {
  const scalar_t *x, *trend, *seasonal, *residual;
  scalar_t* to;
};

// In double, whatever came: compiled once.
COMMODITY_SIMD void run_back(Series& series) {
  if (series.missing) series.balance_all();
  for (int64_t pass = 0; pass < series.plan.inner; ++pass) series.inner_pass_back(series.missing);
}

// y = x - level, residual = y - trend - seasonal, and the level comes back to the trend.
template <typename scalar_t>
void transpose(const Plan& plan, const Gradients<scalar_t>& g, int64_t first, int64_t stride, int64_t width) {
  Series series(plan);
  series.read(g.x + first, stride, width);
  std::fill(series.y.begin(), series.y.end(), 0.0);
  double level[kLanes] = {};
  for (int64_t t = 0; t < plan.steps; ++t)
    for (int64_t n = 0; n < width; ++n) {
      const int64_t i = t * kLanes + n, at = first + t * stride + n;
      series.y[i] = series.present[i] ? g.residual[at] : 0;
      series.trend[i] = g.trend[at] - series.y[i];
      series.seasonal[i] = g.seasonal[at] - series.y[i];
      level[n] += g.trend[at];
    }
  run_back(series);
  for (int64_t i = 0; i < series.size; ++i) level[i % kLanes] -= series.present[i] ? series.y[i] : 0;
  for (int64_t t = 0; t < plan.steps; ++t)
    for (int64_t n = 0; n < width; ++n) {
      const int64_t i = t * kLanes + n;
      const double whole = series.y[i] + level[n] / std::max(series.count[n], 1.0);
      g.to[first + t * stride + n] = series.present[i] ? scalar_t(whole) : scalar_t(0);
    }
}

template <typename scalar_t>
void transpose_all(const Tensor (&inputs)[4], int64_t period, const Smoothers& smoothers, int64_t inner, Tensor& to) {
  const Panels panels(to);
  const Plan plan(panels.steps, period, smoothers.by, inner, 0, !complete<scalar_t>(inputs[0]));
  const scalar_t* from[4];
  for (int i = 0; i < 4; ++i) from[i] = inputs[i].const_data_ptr<scalar_t>();
  const Gradients<scalar_t> g{from[0], from[1], from[2], from[3], to.mutable_data_ptr<scalar_t>()};
  for_each_lanes(panels, [&](int64_t first, int64_t width) { transpose(plan, g, first, panels.assets, width); });
}

Tensor stl_backward(const Tensor& trend_, const Tensor& seasonal_, const Tensor& residual_, const Tensor& x_,
                    int64_t period, std::vector<int64_t> lengths, std::vector<int64_t> degrees,
                    std::vector<int64_t> jumps, int64_t inner) {
  STD_TORCH_CHECK(period >= 2 && x_.size(-2) >= 2 * period, "stl_backward: needs T >= 2 period");
  for (const Tensor* grad : {&trend_, &seasonal_, &residual_}) check_same("stl_backward", *grad, x_);
  const Smoothers smoothers(lengths, degrees, jumps);
  const Tensor inputs[4] = {contiguous(x_), contiguous(trend_), contiguous(seasonal_), contiguous(residual_)};
  Tensor to = new_empty(inputs[0], inputs[0].sizes());
  THO_DISPATCH_V2(x_.scalar_type(), "stl_backward",
                  AT_WRAP([&] { transpose_all<scalar_t>(inputs, period, smoothers, inner, to); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return to;
}

}  // namespace

COMMODITY_OPERATOR(stl_backward,
                   "(Tensor d_trend, Tensor d_seasonal, Tensor d_residual, Tensor x, SymInt period, SymInt[] lengths, "
                   "SymInt[] degrees, SymInt[] jumps, SymInt inner) -> Tensor")
