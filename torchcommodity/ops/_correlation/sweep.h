// Conditional expectations of a row with missing residuals, by sweeping a covariance matrix: see sweep.py. Shared by
// the CPU and CUDA kernels.
#pragma once
#include "portable.h"

namespace commodity {

// Replaces a symmetric matrix (n, n) by its sweep on index k.
COMMODITY_INLINE void sweep(double* matrix, int64_t n, int64_t k) {
  double* row_k = matrix + k * n;
  const double inverse = 1 / row_k[k];
  for (int64_t i = 0; i < n; ++i) {
    if (i == k) continue;
    double* row = matrix + i * n;
    const double factor = row[k] * inverse;
    for (int64_t j = 0; j < n; ++j) row[j] -= factor * row_k[j];
    row[k] = factor;
  }
  for (int64_t j = 0; j < n; ++j) row_k[j] *= inverse;
  row_k[k] = -inverse;
}

// Sweeps on the indices whose value in x is not NaN; returns ln of the determinant of their block.
template <typename scalar_t>
COMMODITY_INLINE double sweep_observed(double* matrix, const scalar_t* x, int64_t n) {
  double log_determinant = 0;
  for (int64_t k = 0; k < n; ++k) {
    if (x[k] != x[k]) continue;
    const double pivot = matrix[k * n + k];
    log_determinant += pivot > 0 ? std::log(pivot) : NAN;
    if (pivot > 0) sweep(matrix, n, k);
  }
  return log_determinant;
}

template <typename scalar_t>
COMMODITY_INLINE bool any_missing(const scalar_t* x, int64_t n) {
  bool missing = false;
  for (int64_t i = 0; i < n; ++i) missing |= x[i] != x[i];
  return missing;
}

// A row given a covariance matrix q: the expectation of x x', with missing values, is means means' + covariance.
struct Regression {
  double *swept, *means, *solution;  // (n, n), (n,), (n,); `solution` is S_oo^-1 x_o, zero where x is missing
  int64_t n;

  static COMMODITY_INLINE int64_t size(int64_t n) { return n * n + 2 * n; }
  COMMODITY_INLINE Regression(double* memory, int64_t n)
      : swept(memory), means(memory + n * n), solution(means + n), n(n) {}

  template <typename matrix_t, typename scalar_t>
  COMMODITY_INLINE void fit(const matrix_t* q, const scalar_t* x) const {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) swept[i * n + j] = (double(q[i * n + j]) + q[j * n + i]) / 2;
    sweep_observed(swept, x, n);
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += x[k] == x[k] ? swept[i * n + k] * x[k] : 0;
      means[i] = x[i] == x[i] ? x[i] : sum;
      solution[i] = x[i] == x[i] ? -sum : 0;
    }
  }
  template <typename scalar_t>
  COMMODITY_INLINE double covariance(const scalar_t* x, int64_t i, int64_t j) const {
    return x[i] != x[i] && x[j] != x[j] ? swept[i * n + j] : 0;
  }
};

}  // namespace commodity
