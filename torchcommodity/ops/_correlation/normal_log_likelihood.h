// Log-density of one row x (n,) under a normal distribution with mean zero and covariance (n, n). Shared by the CPU and
// CUDA kernels.
#pragma once
#include "sweep.h"

namespace commodity {

template <typename scalar_t>
struct NormalLogLikelihood {
  const scalar_t *x, *covariance;
  scalar_t* y;
  int64_t n;

  COMMODITY_INLINE int64_t memory() const { return n * n; }

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

}  // namespace commodity
