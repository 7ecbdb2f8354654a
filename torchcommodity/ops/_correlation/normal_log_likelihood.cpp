// Log-density of rows (..., N) under normal distributions with mean zero and covariances (..., N, N), rows in parallel.
#include "normal_log_likelihood.h"

#include "dcc_panels.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void run_row(const NormalLogLikelihood<scalar_t>& density, int64_t row, double* memory) {
  density(row, memory);
}

template <typename scalar_t>
void run(const Tensor& x, const Tensor& covariance, Tensor& y) {
  const NormalLogLikelihood<scalar_t> density{x.const_data_ptr<scalar_t>(), covariance.const_data_ptr<scalar_t>(),
                                              y.mutable_data_ptr<scalar_t>(), x.size(-1)};
  for_each_panel(Panels(y.numel(), x.size(-1), x.size(-1)), density.memory(),
                 [&](int64_t row, double* memory) { run_row(density, row, memory); });
}

Tensor normal_log_likelihood(const Tensor& x, const Tensor& covariance) {
  STD_TORCH_CHECK(covariance.numel() == x.numel() * x.size(-1) && covariance.scalar_type() == x.scalar_type(),
                  "normal_log_likelihood: covariance must be (..., N, N) and have the dtype of x (..., N)");
  Tensor y = new_empty(x, std::vector<int64_t>(x.sizes().begin(), x.sizes().end() - 1));
  THO_DISPATCH_V2(x.scalar_type(), "normal_log_likelihood",
                  AT_WRAP([&] { run<scalar_t>(contiguous(x), contiguous(covariance), y); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(normal_log_likelihood, "(Tensor x, Tensor covariance) -> Tensor")
