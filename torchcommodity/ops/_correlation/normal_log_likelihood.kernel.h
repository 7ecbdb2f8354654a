// Log-density of rows (..., N) under normal distributions with mean zero and covariances (..., N, N).
#include "kernel.h"
#include "sweep.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct NormalLogLikelihood {
  const scalar_t *x, *covariance;
  scalar_t* y;
  int64_t n;

  COMMODITY_INLINE int64_t memory() const { return n * n; }
  int64_t work() const { return n * n * n; }

  COMMODITY_INLINE void operator()(int64_t row, double* swept) const {
    const scalar_t *values = x + row * n, *matrix = covariance + row * n * n;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) swept[i * n + j] = (double(matrix[i * n + j]) + matrix[j * n + i]) / 2;
    double twice = sweep_observed(swept, values, n);
    for (int64_t i = 0; i < n; ++i) {
      if (values[i] != values[i]) continue;
      double solution = 0;
      for (int64_t j = 0; j < n; ++j) solution -= values[j] == values[j] ? swept[i * n + j] * values[j] : 0;
      twice += 1.8378770664093454836 + values[i] * solution;  // ln(2 pi)
    }
    y[row] = static_cast<scalar_t>(-twice / 2);
  }
};

Tensor normal_log_likelihood(const Tensor& x_, const Tensor& covariance_) {
  STD_TORCH_CHECK(covariance_.numel() == x_.numel() * x_.size(-1) && covariance_.scalar_type() == x_.scalar_type(),
                  "normal_log_likelihood: covariance must be (..., N, N) and have the dtype of x (..., N)");
  const Tensor x = contiguous(x_), covariance = contiguous(covariance_);
  Tensor y = new_empty(x, std::vector<int64_t>(x.sizes().begin(), x.sizes().end() - 1));
  dispatch("normal_log_likelihood", x, [&]<typename scalar_t>() {
    for_each_panel(y, y.numel(),
                   NormalLogLikelihood<scalar_t>{x.const_data_ptr<scalar_t>(), covariance.const_data_ptr<scalar_t>(),
                                                 y.mutable_data_ptr<scalar_t>(), x.size(-1)});
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(normal_log_likelihood, "(Tensor x, Tensor covariance) -> Tensor")
