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

  COMMODITY_INLINE int64_t memory() const { return n * n + 2 * n; }
  int64_t work() const { return n * n * n; }

  COMMODITY_INLINE void operator()(const Team& team, int64_t row, double* swept) const {
    const scalar_t *values = x + row * n, *matrix = covariance + row * n * n;
    double *const pivots = swept + n * n, *const terms = pivots + n;
    team.each_row(n, [&](int64_t i) {
      team.each_column(n, [&](int64_t j) { swept[i * n + j] = (double(matrix[i * n + j]) + matrix[j * n + i]) / 2; });
    });
    const double log_determinant = sweep_observed(team, swept, pivots, values, n);
    team.each(n, [&](int64_t i) {
      double solution = 0;
      for (int64_t j = 0; j < n; ++j) solution -= values[j] == values[j] ? swept[i * n + j] * values[j] : 0;
      terms[i] = values[i] == values[i] ? 1.8378770664093454836 + values[i] * solution : 0;  // ln(2 pi)
    });
    team.each(1, [&](int64_t) {
      double twice = log_determinant;
      for (int64_t i = 0; i < n; ++i) twice += terms[i];
      y[row] = static_cast<scalar_t>(-twice / 2);
    });
  }
};

Tensor normal_log_likelihood(const Tensor& x_, const Tensor& covariance_) {
  STD_TORCH_CHECK(covariance_.numel() == x_.numel() * x_.size(-1) && covariance_.scalar_type() == x_.scalar_type(),
                  "normal_log_likelihood: covariance must be (..., N, N) and have the dtype of x (..., N)");
  const Tensor x = contiguous(x_), covariance = contiguous(covariance_);
  Tensor y = new_empty(x, std::vector<int64_t>(x.sizes().begin(), x.sizes().end() - 1));
  dispatch("normal_log_likelihood", x, [&]<typename scalar_t>() {
    for_each_matrix(y, y.numel(), x.size(-1),
                    NormalLogLikelihood<scalar_t>{x.const_data_ptr<scalar_t>(), covariance.const_data_ptr<scalar_t>(),
                                                  y.mutable_data_ptr<scalar_t>(), x.size(-1)});
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(normal_log_likelihood, "(Tensor x, Tensor covariance) -> Tensor")
