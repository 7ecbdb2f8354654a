// What the parameters and the returns (..., T, N) owe to the gradient of garch_variance: (..., T + 5, N). Backwards in
// time, L_t is what h_{t+1} owes, with all that follows from it: a linear recurrence.
#include "variance_backward_device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct OfGarch {
  VarianceRows<scalar_t> rows;

  COMMODITY_INLINE double weight(int64_t panel, int64_t n, double x) const {
    const int64_t column = panel * rows.assets + n;
    const double rising = read(rows.alpha + column), falling = rising + read(rows.gamma + column);
    return x != x ? (falling + rising) / 2 : x < 0 ? falling : rising;
  }
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const int64_t at = rows.at(panel, t, n);
    const double x = read(rows.r + at), variance = read(rows.h + at);
    const double more = x == x ? 0 : weight(panel, n, x);
    return {read(rows.beta + panel * rows.assets + n) + more, {variance == variance ? read(rows.grad + at) : 0}};
  }
  COMMODITY_INLINE scalar_t by_return(int64_t panel, int64_t t, int64_t n, double owed) const {
    const double x = read(rows.r + rows.at(panel, t, n));
    return x == x ? 2 * owed * weight(panel, n, x) * x : 0;
  }
  COMMODITY_INLINE void add(int64_t panel, int64_t t, int64_t n, double (&sums)[kParts]) const {
    const int64_t at = rows.at(panel, t, n);
    const double x = read(rows.r + at), variance = read(rows.h + at), owed = rows.owed[at];
    const double now = variance == variance ? variance : 0, square = owed * (x == x ? x * x : now);
    sums[0] += owed, sums[1] += square, sums[2] += owed * now;
    sums[3] += x != x ? square / 2 : x < 0 ? square : 0;
  }
};

Tensor garch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                               const Tensor& gamma, const Tensor& h) {
  return variance_backward<OfGarch>("garch_variance_backward", grad, returns, alpha, beta, gamma, h);
}

}  // namespace

COMMODITY_CUDA(garch_variance_backward)
