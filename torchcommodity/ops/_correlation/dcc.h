// Shapes of the DCC operators.
#pragma once
#include "native.h"

namespace commodity {

inline void check_dcc(const char* operation, const Tensor& z, const Tensor& weights, const Tensor& target) {
  const int64_t n = z.size(-1);
  STD_TORCH_CHECK(z.dim() >= 2 && weights.size(-1) == 2 && target.size(-1) == n && target.size(-2) == n &&
                      weights.scalar_type() == z.scalar_type() && target.scalar_type() == z.scalar_type() &&
                      weights.numel() == 2 * count_panels(z) && weights.numel() * n * n == target.numel() * 2,
                  operation, ": weights must be (..., 2), matrices (..., N, N), in the dtype of z (..., T, N)");
}

inline std::vector<int64_t> matrix_shape(const Tensor& z) {
  std::vector<int64_t> shape(z.sizes().begin(), z.sizes().end());
  shape.push_back(shape.back());
  return shape;
}

// Of the gradients of z (T N), weights (2), target and initial Q (N^2 each).
inline std::vector<int64_t> gradient_shape(const Tensor& z) {
  std::vector<int64_t> shape(z.sizes().begin(), z.sizes().end() - 1);
  shape.back() = z.size(-2) * z.size(-1) + 2 + 2 * z.size(-1) * z.size(-1);
  return shape;
}

}  // namespace commodity
