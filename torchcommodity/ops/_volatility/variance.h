// What the recursive variances share: their parameters (..., N) of returns (..., T, N), and on the CPU the doors, of
// which an operator gives what one block of columns does.
#pragma once
#include <array>

#include "native.h"

namespace commodity {

constexpr int kSums = 5;  // what a gradient adds up: by omega, alpha, beta, gamma, initial
constexpr double kMeanAbsolute = 0.79788456080286535588;  // of a standard normal number: sqrt(2 / pi)

template <size_t count>
std::array<Tensor, count> of_columns(const char* operation, const Tensor& returns, const Tensor (&given)[count]) {
  std::array<Tensor, count> parameters;
  for (size_t i = 0; i < count; ++i) {
    STD_TORCH_CHECK(
        given[i].numel() * returns.size(-2) == returns.numel() && given[i].scalar_type() == returns.scalar_type(),
        operation, ": parameters must be (..., N) and have the dtype of returns (..., T, N)");
    parameters[i] = contiguous(given[i]);
  }
  return parameters;
}

template <typename scalar_t, size_t count>
std::array<const scalar_t*, count> data_of_columns(const std::array<Tensor, count>& parameters, int64_t first = 0) {
  std::array<const scalar_t*, count> data;
  for (size_t i = 0; i < count; ++i) data[i] = parameters[i].template const_data_ptr<scalar_t>() + first;
  return data;
}

// A fresh (..., T + 5, N): by the returns, then the sums. Where there is no row these are zero, and still written.
inline Tensor with_sums(const Tensor& returns) {
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape[shape.size() - 2] += kSums;
  return new_empty(returns, shape);
}

// body(parameters, returns, h, steps, stride, width) makes the variance h of a block of columns; Body::kName is the
// operator.
template <typename Body>
Tensor variance(const Body& body, const Tensor& returns_, const Tensor (&given)[5]) {
  const Tensor returns = contiguous(returns_);
  const auto parameters = of_columns(Body::kName, returns, given);
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes());
  THO_DISPATCH_V2(returns.scalar_type(), Body::kName, AT_WRAP([&] {
                    const scalar_t* from = returns.const_data_ptr<scalar_t>();
                    scalar_t* to = h.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first;
                      const auto columns = data_of_columns<scalar_t>(parameters, panel * panels.assets + first);
                      body(columns.data(), from + at, to + at, panels.steps, panels.assets, last - first);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return h;
}

// body(parameters, grad, returns, h, to, steps, stride, width) makes what a block of columns owes, of alpha, beta and
// gamma.
template <typename Body>
Tensor variance_backward(const Body& body, const Tensor& grad_, const Tensor& returns_, const Tensor (&given)[3],
                         const Tensor& h_) {
  check_same(Body::kName, grad_, returns_);
  check_same(Body::kName, h_, returns_);
  const Tensor grad = contiguous(grad_), returns = contiguous(returns_), h = contiguous(h_);
  const auto parameters = of_columns(Body::kName, returns, given);
  Tensor y = on_huge_pages(with_sums(returns));
  const Panels panels(Panels(y).batch, returns.size(-2), returns.size(-1));
  THO_DISPATCH_V2(returns.scalar_type(), Body::kName, AT_WRAP([&] {
                    const scalar_t* of_h = h.const_data_ptr<scalar_t>();
                    const scalar_t* of_grad = grad.const_data_ptr<scalar_t>();
                    const scalar_t* of_r = returns.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first;
                      const auto columns = data_of_columns<scalar_t>(parameters, panel * panels.assets + first);
                      body(columns.data(), of_grad + at, of_r + at, of_h + at, to + at + panel * kSums * panels.assets,
                           panels.steps, panels.assets, last - first);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace commodity
