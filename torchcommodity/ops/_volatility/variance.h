// GARCH and EGARCH variances of returns (..., T, N) with parameters (..., N), and their gradients: one tensor
// (..., T + 5, N) of those with respect to the T returns, then omega, alpha, beta, gamma and initial.
#pragma once
#include <array>

#include "native.h"

namespace commodity {

constexpr int kParameters = 5;                            // omega, alpha, beta, gamma, initial
constexpr double kMeanAbsolute = 0.79788456080286535588;  // E|z| = sqrt(2 / pi) of a standard normal variable

template <size_t count>
std::array<Tensor, count> check_parameters(const char* operation, const Tensor& returns,
                                           const Tensor (&tensors)[count]) {
  std::array<Tensor, count> parameters;
  for (size_t i = 0; i < count; ++i) {
    check_rows(operation, "parameters", tensors[i], returns);
    parameters[i] = contiguous(tensors[i]);
  }
  return parameters;
}

template <typename scalar_t, size_t count>
std::array<const scalar_t*, count> parameter_pointers(const std::array<Tensor, count>& parameters) {
  std::array<const scalar_t*, count> pointers;
  for (size_t i = 0; i < count; ++i) pointers[i] = parameters[i].template const_data_ptr<scalar_t>();
  return pointers;
}

}  // namespace commodity
