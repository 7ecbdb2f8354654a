// Log-likelihood of DCC and its derivatives by a and b: sums over time (..., 9) of residuals (..., T, N).
#include "dcc_score.h"

#include "dcc_panels.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void run_panel(const DccScore<scalar_t>& score, int64_t panel, double* memory) {
  score(panel, memory);
}

template <typename scalar_t>
void run(const Tensor& z, const Tensor& weights, const Tensor& target, Tensor& y, bool derivatives) {
  const Panels panels(weights.numel() / 2, z.size(-2), z.size(-1));
  const DccScore<scalar_t> score{z.const_data_ptr<scalar_t>(),
                                 weights.const_data_ptr<scalar_t>(),
                                 target.const_data_ptr<scalar_t>(),
                                 y.mutable_data_ptr<scalar_t>(),
                                 panels.steps,
                                 panels.assets,
                                 derivatives};
  for_each_panel(panels, score.memory(), [&](int64_t panel, double* memory) { run_panel(score, panel, memory); });
}

Tensor dcc_score(const Tensor& z, const Tensor& weights, const Tensor& target, bool derivatives) {
  check_dcc("dcc_score", z, weights, target);
  std::vector<int64_t> shape(weights.sizes().begin(), weights.sizes().end());
  shape.back() = kScoreSums;
  Tensor y = new_empty(z, shape);
  THO_DISPATCH_V2(z.scalar_type(), "dcc_score", AT_WRAP([&] {
                    run<scalar_t>(contiguous(z), contiguous(weights), contiguous(target), y, derivatives);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(dcc_score, "(Tensor z, Tensor weights, Tensor target, bool derivatives) -> Tensor")
