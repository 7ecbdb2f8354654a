// What the parameters and the returns (..., T, N) owe to the gradient of garch_variance: (..., T + 5, N). Backwards in
// time, L_t is what h_{t+1} owes, with all that follows from it.
#include "native.h"

using namespace commodity;

namespace {

constexpr int64_t kAhead = 8;  // rows to fetch before they are needed: no prefetcher follows a stride of a whole row
constexpr int kSums = 5;       // by omega, alpha, beta, gamma, initial

template <typename scalar_t>
COMMODITY_SIMD void adjoint(const scalar_t* const parameters[3], const scalar_t* __restrict grad,
                            const scalar_t* __restrict r, const scalar_t* __restrict h, scalar_t* __restrict to,
                            int64_t steps, int64_t stride, int64_t width) {
  scalar_t rising[kBlock], beta[kBlock], falling[kBlock], later[kBlock] = {};
  scalar_t* const local[3] = {rising, beta, falling};
  for (int i = 0; i < 3; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t n = 0; n < width; ++n) falling[n] += rising[n];
  double omega[kBlock] = {}, square[kBlock] = {}, variance[kBlock] = {}, below[kBlock] = {};
  for (int64_t t = steps - 1; t >= 0; --t) {
    const int64_t at = t * stride;
    if (t >= kAhead)
      for (int64_t n = 0; n < width; n += 64 / sizeof(scalar_t)) {
        const int64_t ahead = at - kAhead * stride + n;
        __builtin_prefetch(grad + ahead);
        __builtin_prefetch(r + ahead);
        __builtin_prefetch(h + ahead);
        __builtin_prefetch(to + ahead, 1);
      }
#pragma GCC ivdep
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t x = r[at + n], owed = later[n];
      const bool seen = x == x, known = h[at + n] == h[at + n], down = x < 0;
      const scalar_t now = known ? h[at + n] : 0, value = seen ? x : 0;
      const scalar_t weight = seen ? (down ? falling[n] : rising[n]) : (falling[n] + rising[n]) / 2;
      const scalar_t of_square = owed * (seen ? value * value : now);
      to[at + n] = 2 * owed * weight * value;
      omega[n] += owed;
      square[n] += of_square;
      below[n] += seen ? (down ? of_square : 0) : of_square / 2;
      variance[n] += owed * now;
      later[n] = (known ? grad[at + n] : 0) + (beta[n] + (seen ? 0 : weight)) * owed;
    }
  }
  to += steps * stride;
  for (const double* sum : {omega, square, variance, below}) {
    std::copy_n(sum, width, to);
    to += stride;
  }
  std::copy_n(later, width, to);
}

Tensor garch_variance_backward(const Tensor& grad_, const Tensor& returns_, const Tensor& alpha, const Tensor& beta,
                               const Tensor& gamma, const Tensor& h_) {
  check_same("garch_variance_backward", grad_, returns_);
  check_same("garch_variance_backward", h_, returns_);
  const Tensor grad = contiguous(grad_), returns = contiguous(returns_), h = contiguous(h_);
  const Tensor parameters[3] = {contiguous(alpha), contiguous(beta), contiguous(gamma)};
  const Panels panels(returns);
  for (const Tensor& parameter : parameters)
    STD_TORCH_CHECK(
        parameter.numel() * panels.steps == returns.numel() && parameter.scalar_type() == returns.scalar_type(),
        "garch_variance_backward: parameters must be (..., N) and have the dtype of returns (..., T, N)");
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape[shape.size() - 2] += kSums;
  Tensor y = new_empty(returns, shape);
  Panels rows = panels;  // where there is no row the sums are zero, and they are still written
  rows.batch = y.numel() ? y.numel() / (y.size(-2) * y.size(-1)) : 0;
  THO_DISPATCH_V2(returns.scalar_type(), "garch_variance_backward", AT_WRAP([&] {
                    const scalar_t* of_h = h.const_data_ptr<scalar_t>();
                    const scalar_t* of_grad = grad.const_data_ptr<scalar_t>();
                    const scalar_t* of_r = returns.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_block(rows, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * rows.size() + first, column = panel * rows.assets + first;
                      const scalar_t* columns[3];
                      for (int i = 0; i < 3; ++i) columns[i] = parameters[i].const_data_ptr<scalar_t>() + column;
                      adjoint(columns, of_grad + at, of_r + at, of_h + at, to + at + panel * kSums * rows.assets,
                              rows.steps, rows.assets, last - first);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(garch_variance_backward,
                   "(Tensor grad, Tensor returns, Tensor alpha, Tensor beta, Tensor gamma, Tensor h) -> Tensor")
