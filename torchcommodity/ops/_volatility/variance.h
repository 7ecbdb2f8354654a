// GARCH and EGARCH variances of returns (..., T, N) with parameters (..., N): one recursion over time for each series.
//
// Columns are handled in blocks (see native.h). A kernel copies the parameters of its block to local arrays, keeps the
// variance of every column there, and steps through time once; the loop over the columns of a row is what vectorizes.
//
// The gradient is the same in reverse time. The adjoint of row t is dL/dh_{t+1}, the gradient with respect to the next
// variance through all later rows; the parameters' gradients are sums over time of adjoint x regressor. The result is
// one tensor (..., T + 5, N): gradients with respect to the T returns, then omega, alpha, beta, gamma and initial.
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
std::array<const scalar_t*, count> parameter_pointers(const std::array<Tensor, count>& parameters, int64_t column = 0) {
  std::array<const scalar_t*, count> pointers;
  for (size_t i = 0; i < count; ++i) pointers[i] = parameters[i].template const_data_ptr<scalar_t>() + column;
  return pointers;
}

// An uninitialized (..., T + 5, N), or (..., 5, N) without the returns. With T = 0 the gradients of the parameters are
// zero and must still be written.
inline Tensor new_gradients(const Tensor& returns, bool needs_returns) {
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape[shape.size() - 2] = (needs_returns ? returns.size(-2) : 0) + kParameters;
  return new_empty(returns, shape);
}

// kernel(parameters, returns, h, steps, stride, width) writes the variances of one block of columns.
template <typename Kernel>
Tensor variance(const Kernel& kernel, const Tensor& returns_, const Tensor (&tensors)[5]) {
  const Tensor returns = contiguous(returns_);
  const auto parameters = check_parameters(Kernel::kName, returns, tensors);
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes());
  THO_DISPATCH_V2(returns.scalar_type(), Kernel::kName, AT_WRAP([&] {
                    const scalar_t* r_data = returns.const_data_ptr<scalar_t>();
                    scalar_t* h_data = h.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t offset = panel * panels.size() + first;
                      const auto block = parameter_pointers<scalar_t>(parameters, panel * panels.assets + first);
                      kernel(block.data(), r_data + offset, h_data + offset, panels.steps, panels.assets, last - first);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return h;
}

// kernel(parameters, grad, returns, h, gradients, gradient_stride, steps, stride, width) writes the gradients of one
// block of columns; its parameters are alpha, beta and gamma. Where the gradient of the returns is not needed, its rows
// have stride 0: they pass through the first row of the output, which ends as the gradient of omega.
template <typename Kernel>
Tensor variance_backward(const Kernel& kernel, const Tensor& grad_, const Tensor& returns_, const Tensor (&tensors)[3],
                         const Tensor& h_, bool needs_returns) {
  check_same(Kernel::kName, grad_, returns_);
  check_same(Kernel::kName, h_, returns_);
  const Tensor grad = contiguous(grad_), returns = contiguous(returns_), h = contiguous(h_);
  const auto parameters = check_parameters(Kernel::kName, returns, tensors);
  Tensor gradients = on_huge_pages(new_gradients(returns, needs_returns));
  const Panels panels(Panels(gradients).batch, returns.size(-2), returns.size(-1));
  THO_DISPATCH_V2(returns.scalar_type(), Kernel::kName, AT_WRAP([&] {
                    const scalar_t* h_data = h.const_data_ptr<scalar_t>();
                    const scalar_t* grad_data = grad.const_data_ptr<scalar_t>();
                    const scalar_t* r_data = returns.const_data_ptr<scalar_t>();
                    scalar_t* out = gradients.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t offset = panel * panels.size() + first;
                      const auto block = parameter_pointers<scalar_t>(parameters, panel * panels.assets + first);
                      scalar_t* out_block = out + panel * gradients.size(-2) * panels.assets + first;
                      kernel(block.data(), grad_data + offset, r_data + offset, h_data + offset, out_block,
                             needs_returns ? panels.assets : 0, panels.steps, panels.assets, last - first);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return gradients;
}

}  // namespace commodity
