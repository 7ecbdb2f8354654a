// Conditional expectations of a row with missing residuals, by sweeping a covariance matrix: see sweep.py. Shared by
// the CPU and CUDA kernels.
#pragma once
#include "kernel.h"

namespace commodity {

// Replaces a symmetric matrix (n, n) by its sweep on index k; `pivots` is memory for a row.
COMMODITY_INLINE void sweep(const Team& team, double* matrix, double* pivots, int64_t n, int64_t k) {
  double* row_k = matrix + k * n;
  const double inverse = 1 / row_k[k];
  team.each(n, [&](int64_t j) {
    pivots[j] = j == k ? 0 : row_k[j];  // 0 keeps column k
    if (j != k) row_k[j] *= inverse, matrix[j * n + k] *= inverse;
  });
  team.each_row(n, [&](int64_t i) {
    if (i == k) return team.each_column(n, [&](int64_t j) { row_k[j] = j == k ? -inverse : row_k[j]; });
    double* row = matrix + i * n;
    const double factor = pivots[i] * inverse;  // row[k], which another thread of the row writes
    team.each_column(n, [&](int64_t j) { row[j] -= factor * pivots[j]; });
  });
}

// Sweeps on the indices whose value in x is not NaN; returns ln of the determinant of their block.
template <typename scalar_t>
COMMODITY_INLINE double sweep_observed(const Team& team, double* matrix, double* pivots, const scalar_t* x, int64_t n) {
  double determinant = 1, log_determinant = 0;
  for (int64_t k = 0; k < n; ++k) {
    if (x[k] != x[k]) continue;
    const double pivot = matrix[k * n + k];
    determinant *= pivot > 0 ? pivot : NAN;
    if (!(determinant > 1e-100 && determinant < 1e100)) log_determinant += std::log(determinant), determinant = 1;
    if (pivot > 0) sweep(team, matrix, pivots, n, k);
  }
  return log_determinant + std::log(determinant);
}

// A row given a covariance matrix q: the expectation of x x' is means means' + covariance.
struct Regression {
  double *swept, *means, *solution, *pivots;  // (n, n), then n each; `solution` is S_oo^-1 x_o, zero where x is missing
  int64_t n;

  static COMMODITY_INLINE int64_t size(int64_t n) { return n * n + 3 * n; }
  COMMODITY_INLINE Regression(double* memory, int64_t n)
      : swept(memory), means(memory + n * n), solution(means + n), pivots(solution + n), n(n) {}

  // Returns whether a value is missing; if none is, only the means are computed.
  template <typename matrix_t, typename scalar_t>
  COMMODITY_INLINE bool fit(const Team& team, const matrix_t* q, const scalar_t* x) const {
    bool missing = false;
    for (int64_t i = 0; i < n; ++i) missing |= x[i] != x[i];
    if (missing) {
      team.each_row(n, [&](int64_t i) {
        team.each_column(n, [&](int64_t j) { swept[i * n + j] = (double(q[i * n + j]) + q[j * n + i]) / 2; });
      });
      sweep_observed(team, swept, pivots, x, n);
    }
    team.each(n, [&](int64_t i) {
      double sum = 0;
      for (int64_t k = 0; missing && k < n; ++k) sum += x[k] == x[k] ? swept[i * n + k] * x[k] : 0;
      means[i] = x[i] == x[i] ? x[i] : sum;
      solution[i] = x[i] == x[i] ? -sum : 0;
    });
    return missing;
  }
  template <typename scalar_t>
  COMMODITY_INLINE double covariance(const scalar_t* x, int64_t i, int64_t j) const {
    return x[i] != x[i] && x[j] != x[j] ? swept[i * n + j] : 0;
  }
};

}  // namespace commodity
