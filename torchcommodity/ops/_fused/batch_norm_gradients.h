// What the backward pass of batch normalization takes and returns, on every device.
#pragma once
#include "memory_format.h"

namespace commodity {
namespace {

// Contiguous, and in the memory format of the product.
struct GradientInputs {
  Tensor grad, product, mean, variance;
  std::optional<Tensor> grad_mean, grad_variance, gamma, beta;
  double eps;
};

struct ProductGradients {
  Tensor product, gamma, beta, valid;
};

}  // namespace
}  // namespace commodity
