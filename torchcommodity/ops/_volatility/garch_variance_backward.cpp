// Gradients of garch_variance with respect to the returns and the parameters: (..., T + 5, N), see variance.h.
#include "variance.h"

using namespace commodity;

namespace {

constexpr int64_t kPrefetchRows = 8;  // rows to prefetch: the hardware does not follow a stride of a whole row
constexpr int64_t kShortSum = 32;     // rows summed in the dtype of the panel before float64 takes over

// Sums over time, one for each parameter but initial.
template <typename scalar_t>
struct Sums {
  scalar_t partial[kParameters - 1][kBlock] = {};
  double total[kParameters - 1][kBlock] = {};

  void flush(int64_t width) {
    for (int i = 0; i < kParameters - 1; ++i)
      for (int64_t n = 0; n < width; ++n) {
        total[i][n] += partial[i][n];
        partial[i][n] = 0;
      }
  }
};

template <typename scalar_t>
COMMODITY_SIMD void adjoint_recursion(const scalar_t* const* parameters, const scalar_t* __restrict grad,
                                      const scalar_t* __restrict r, const scalar_t* __restrict h,
                                      scalar_t* __restrict gradients, int64_t gradient_stride, int64_t steps,
                                      int64_t stride, int64_t width) {
  scalar_t alpha[kBlock], beta[kBlock], alpha_negative[kBlock], persistence[kBlock], adjoint[kBlock] = {};
  scalar_t* const local[3] = {alpha, beta, alpha_negative};
  for (int i = 0; i < 3; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t n = 0; n < width; ++n) {
    persistence[n] = alpha[n] + alpha_negative[n] / 2 + beta[n];  // alpha_negative holds gamma so far
    alpha_negative[n] += alpha[n];
  }
  Sums<scalar_t> sums;
  for (int64_t t = steps - 1; t >= 0; --t) {
    const int64_t row = t * stride;
    if (t >= kPrefetchRows)
      for (int64_t n = 0; n < width; n += 64 / sizeof(scalar_t)) {
        const int64_t ahead = row - kPrefetchRows * stride + n;
        __builtin_prefetch(grad + ahead);
        __builtin_prefetch(r + ahead);
        __builtin_prefetch(h + ahead);
        __builtin_prefetch(gradients + (t - kPrefetchRows) * gradient_stride + n, 1);
      }
    COMMODITY_IVDEP
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t x = r[row + n], h_value = h[row + n], next = adjoint[n];
      const scalar_t value = x == x ? x : 0, variance = h_value == h_value ? h_value : 0, product = next * value;
      const scalar_t weight = x < 0 ? alpha_negative[n] : alpha[n];
      const scalar_t square = x == x ? product * value : next * variance;
      const scalar_t not_positive = x >= 0 ? 0 : square;  // a negative return counts in full, a missing one by half
      gradients[t * gradient_stride + n] = 2 * weight * product;
      sums.partial[0][n] += next;
      sums.partial[1][n] += square;
      sums.partial[2][n] += next * variance;
      sums.partial[3][n] += x == x ? not_positive : not_positive / 2;
      adjoint[n] = (h_value == h_value ? grad[row + n] : 0) + (x == x ? beta[n] : persistence[n]) * next;
    }
    if (t % kShortSum == 0) sums.flush(width);
  }
  gradients += steps * gradient_stride;
  for (int i = 0; i < kParameters - 1; ++i, gradients += stride) std::copy_n(sums.total[i], width, gradients);
  std::copy_n(adjoint, width, gradients);
}

struct Kernel {
  static constexpr const char* kName = "garch_variance_backward";

  template <typename... Block>
  void operator()(Block... block) const {
    adjoint_recursion(block...);
  }
};

Tensor garch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                               const Tensor& gamma, const Tensor& h, bool needs_returns) {
  return variance_backward(Kernel{}, grad, returns, {alpha, beta, gamma}, h, needs_returns);
}

}  // namespace

COMMODITY_OPERATOR(
    garch_variance_backward,
    "(Tensor grad, Tensor returns, Tensor alpha, Tensor beta, Tensor gamma, Tensor h, bool needs_returns) -> Tensor")
