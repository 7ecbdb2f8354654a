// Dynamic conditional correlation: Q (..., T, N, N) of residuals (..., T, N). Panels run in parallel, each in one pass.
#include "dcc_correlation.h"

#include "dcc_panels.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void run_panel(const DccRecursion<scalar_t>& recursion, int64_t panel, double* memory) {
  recursion(panel, memory);
}

template <typename scalar_t>
void run(const Tensor& z, const Tensor& weights, const Tensor& target, const Tensor& initial, Tensor& y) {
  const Panels panels(z);
  const DccRecursion<scalar_t> recursion{z.const_data_ptr<scalar_t>(),
                                         weights.const_data_ptr<scalar_t>(),
                                         target.const_data_ptr<scalar_t>(),
                                         initial.const_data_ptr<scalar_t>(),
                                         y.mutable_data_ptr<scalar_t>(),
                                         panels.steps,
                                         panels.assets};
  for_each_panel(panels, recursion.memory(),
                 [&](int64_t panel, double* memory) { run_panel(recursion, panel, memory); });
}

Tensor dcc_correlation(const Tensor& z, const Tensor& weights, const Tensor& target, const Tensor& initial) {
  check_dcc("dcc_correlation", z, weights, target);
  check_same("dcc_correlation", initial, target);
  Tensor y = new_empty(z, matrix_shape(z));
  THO_DISPATCH_V2(z.scalar_type(), "dcc_correlation", AT_WRAP([&] {
                    run<scalar_t>(contiguous(z), contiguous(weights), contiguous(target), contiguous(initial), y);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(dcc_correlation, "(Tensor z, Tensor weights, Tensor target, Tensor initial) -> Tensor")
