// What the parameters and the returns (..., T, N) owe to the gradient of egarch_variance: (..., T + 5, N). Backwards in
// time, L_t is what ln h_{t+1} owes, with all that follows from it: given h, a linear recurrence.
#include "variance_backward_device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct OfEgarch {
  VarianceRows<scalar_t> rows;

  struct Row {
    double x, variance, z, alpha, gamma;
  };

  // What has no logarithm takes no part; a missing return counts as z = 0.
  COMMODITY_INLINE Row row(int64_t panel, int64_t t, int64_t n) const {
    const int64_t at = rows.at(panel, t, n), column = panel * rows.assets + n;
    const double x = read(rows.r + at), given = read(rows.h + at);
    const double variance = given > 0 && given < HUGE_VAL ? given : 1;
    const double z = (x == x ? x : 0) / std::sqrt(variance);
    return {x, variance, z, read(rows.alpha + column), read(rows.gamma + column)};
  }
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t t, int64_t n) const {
    const Row now = row(panel, t, n);
    const int64_t at = rows.at(panel, t, n);
    const double given = read(rows.h + at), beta = read(rows.beta + panel * rows.assets + n);
    const double slope = beta - (now.alpha * std::abs(now.z) + now.gamma * now.z) / 2;
    return {slope, {given == given ? now.variance * read(rows.grad + at) : 0}};
  }
  COMMODITY_INLINE scalar_t by_return(int64_t panel, int64_t t, int64_t n, double owed) const {
    const Row now = row(panel, t, n);
    const double sign = now.z > 0 ? now.alpha : now.z < 0 ? -now.alpha : 0;
    return now.x == now.x ? owed * (sign + now.gamma) / std::sqrt(now.variance) : 0;
  }
  COMMODITY_INLINE void add(int64_t panel, int64_t t, int64_t n, double (&sums)[kParts]) const {
    const Row now = row(panel, t, n);
    const double owed = rows.owed[rows.at(panel, t, n)];
    sums[0] += owed;
    sums[1] += now.x == now.x ? owed * (std::abs(now.z) - kMeanAbsolute) : 0;
    sums[2] += owed * std::log(now.variance);
    sums[3] += owed * now.z;
  }
};

Tensor egarch_variance_backward(const Tensor& grad, const Tensor& returns, const Tensor& alpha, const Tensor& beta,
                                const Tensor& gamma, const Tensor& h) {
  return variance_backward<OfEgarch>("egarch_variance_backward", grad, returns, alpha, beta, gamma, h);
}

}  // namespace

COMMODITY_CUDA(egarch_variance_backward)
