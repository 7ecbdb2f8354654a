// STL of x (..., T, N): trend, seasonal, residual, robustness weights. Scheme: see stl.h.
#include "stl.h"

using namespace commodity;

namespace {

COMMODITY_SIMD void run(StlBlock& block) { block.run(); }  // in double for every dtype: compiled once

template <typename scalar_t>
void decompose(const Plan& plan, const scalar_t* x, scalar_t* const (&to)[4], int64_t offset, int64_t stride,
               int64_t width) {
  StlBlock block(plan);
  block.read(x + offset, stride, width);
  run(block);
  block.write(to, offset, stride, width);
}

template <typename scalar_t>
void decompose_all(const Tensor& x, const Plan& plan, Tensor (&parts)[4]) {
  const Panels panels(x);
  const scalar_t* in = x.const_data_ptr<scalar_t>();
  scalar_t* to[4];
  for (int i = 0; i < 4; ++i) to[i] = parts[i].mutable_data_ptr<scalar_t>();
  for_each_lanes(panels, [&](int64_t offset, int64_t width) { decompose(plan, in, to, offset, panels.assets, width); });
}

std::tuple<Tensor, Tensor, Tensor, Tensor> stl(const Tensor& x_, int64_t period, std::vector<int64_t> lengths,
                                               std::vector<int64_t> degrees, std::vector<int64_t> jumps, int64_t inner,
                                               int64_t outer) {
  STD_TORCH_CHECK(period >= 2 && x_.size(-2) >= 2 * period, "stl: needs T >= 2 period");
  const auto smoothers = make_smoothers(lengths, degrees, jumps);
  const Tensor x = contiguous(x_);
  const auto empty = [&] { return new_empty(x, x.sizes()); };
  Tensor parts[4] = {empty(), empty(), empty(), empty()};
  dispatch("stl", x, [&]<typename scalar_t>() {
    const bool with_weights = outer > 0 || !all_finite<scalar_t>(x);
    decompose_all<scalar_t>(x, {x.size(-2), period, smoothers, inner, outer, with_weights}, parts);
  });
  return {parts[0], parts[1], parts[2], parts[3]};
}

}  // namespace

COMMODITY_OPERATOR(stl,
                   "(Tensor x, SymInt period, SymInt[] lengths, SymInt[] degrees, SymInt[] jumps, SymInt inner, "
                   "SymInt outer) -> (Tensor, Tensor, Tensor, Tensor)")
