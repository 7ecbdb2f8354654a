// What the parameters and the returns (..., T, N) owe to the gradient of garch_variance: (..., T + 5, N). Backwards in
// time, L_t is what h_{t+1} owes, with all that follows from it.
#include "variance.h"

using namespace commodity;

namespace {

constexpr int64_t kPrefetchRows =
    8;                          // rows to fetch before they are needed: no prefetcher follows a stride of a whole row
constexpr int64_t kBrief = 32;  // rows that are summed before float64 takes over

// Sums over time, short ones in the panel's own dtype, of which the long ones are made in float64.
template <typename scalar_t>
struct Sums {
  scalar_t brief[kSums - 1][kBlock] = {};
  double whole[kSums - 1][kBlock] = {};

  void gather(int64_t width) {
    for (int i = 0; i < kSums - 1; ++i)
      for (int64_t n = 0; n < width; ++n) {
        whole[i][n] += brief[i][n];
        brief[i][n] = 0;
      }
  }
};

template <typename scalar_t>
COMMODITY_SIMD void adjoint(const scalar_t* const* parameters, const scalar_t* __restrict grad,
                            const scalar_t* __restrict r, const scalar_t* __restrict h, scalar_t* __restrict to,
                            int64_t steps, int64_t stride, int64_t width) {
  scalar_t rising[kBlock], beta[kBlock], falling[kBlock], expected[kBlock], later[kBlock] = {};
  scalar_t* const local[3] = {rising, beta, falling};
  for (int i = 0; i < 3; ++i) std::copy_n(parameters[i], width, local[i]);
  for (int64_t n = 0; n < width; ++n) {
    expected[n] = rising[n] + falling[n] / 2 + beta[n];
    falling[n] += rising[n];
  }
  Sums<scalar_t> sums;
  for (int64_t t = steps - 1; t >= 0; --t) {
    const int64_t at = t * stride;
    if (t >= kPrefetchRows)
      for (int64_t n = 0; n < width; n += 64 / sizeof(scalar_t)) {
        const int64_t ahead = at - kPrefetchRows * stride + n;
        __builtin_prefetch(grad + ahead);
        __builtin_prefetch(r + ahead);
        __builtin_prefetch(h + ahead);
        __builtin_prefetch(to + ahead, 1);
      }
#pragma GCC ivdep
    for (int64_t n = 0; n < width; ++n) {
      const scalar_t x = r[at + n], variance = h[at + n], owed = later[n];
      const scalar_t value = x == x ? x : 0, now = variance == variance ? variance : 0, pulled = owed * value;
      const scalar_t side = x < 0 ? falling[n] : rising[n], of_square = x == x ? pulled * value : owed * now;
      const scalar_t below = x >= 0 ? 0 : of_square;  // all of a falling one, half of a missing one
      to[at + n] = 2 * side * pulled;
      sums.brief[0][n] += owed;
      sums.brief[1][n] += of_square;
      sums.brief[2][n] += owed * now;
      sums.brief[3][n] += x == x ? below : below / 2;
      later[n] = (variance == variance ? grad[at + n] : 0) + (x == x ? beta[n] : expected[n]) * owed;
    }
    if (t % kBrief == 0) sums.gather(width);
  }
  to += steps * stride;
  for (int i = 0; i < kSums - 1; ++i, to += stride) std::copy_n(sums.whole[i], width, to);
  std::copy_n(later, width, to);
}

struct Body {
  static constexpr const char* kName = "garch_variance_backward";

  template <typename... Block>
  void operator()(Block... block) const {
    adjoint(block...);
  }
};

Tensor garch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                               const Tensor& gamma, const Tensor& h) {
  return variance_backward(Body{}, grad, returns, {alpha, beta, gamma}, h);
}

}  // namespace

COMMODITY_OPERATOR(garch_variance_backward,
                   "(Tensor grad, Tensor returns, Tensor alpha, Tensor beta, Tensor gamma, Tensor h) -> Tensor")
