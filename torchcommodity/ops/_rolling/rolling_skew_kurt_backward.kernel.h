// Gradient of the rolling skewness (order 3) or kurtosis (order 4) of (..., T, N).
#include "window_gradient.h"

using namespace commodity;

namespace {

// With z = x_s - mean, k, q and r depending on n alone:
//   skew = k M3 / M2^1.5:    3 g (k z^2 / M2^1.5 - skew z / M2), minus its mean
//   kurt = q M4 / M2^2 - r:  4 g (q z^3 / M2^2 - (kurt + r) z / M2), minus its mean
template <int order>
struct StandardizedMoment {
  static constexpr int kOrder = order;
  static constexpr bool kReadsOutput = true;

  template <typename Number>
  struct Factors {
    Number n, inverse_n, scale, offset;
  };
  template <typename Number>
  COMMODITY_INLINE Factors<Number> factors(const Number& n) const {
    if constexpr (order == 3) return {n, 1 / n, 3 * n * root_of(Number(n - 1)) / (n - 2), Number{}};
    const Number scale = (n - 1) / ((n - 2) * (n - 3));
    return {n, 1 / n, 4 * scale * (n + 1) * n, 3 * scale * (n - 1)};
  }
  template <typename Number>
  COMMODITY_INLINE WindowWeights<Number> weights(const Factors<Number>& f, const Number& g, const Number& y,
                                                 const Number& m2, const Number& m3) const {
    const Number inverse = 1 / m2, leading = g * f.scale * inverse * (order == 3 ? root_of(inverse) : inverse);
    const Number moment = order == 3 ? m2 : m3;
    return {(y == y) & (f.n >= order) & (m2 > 0), leading, order * g * (y + f.offset) * inverse,
            leading * moment * f.inverse_n, Number{}};
  }
};

Tensor rolling_skew_kurt_backward(const Tensor& grad_, const Tensor& x_, const Tensor& y_, int64_t window,
                                  int64_t order) {
  check_same("rolling_skew_kurt_backward", grad_, x_);
  check_same("rolling_skew_kurt_backward", y_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1 && (order == 3 || order == 4),
                  "rolling_skew_kurt_backward: x (..., T, N), window >= 1, order 3 or 4");
  const Tensor grad = contiguous(grad_), x = contiguous(x_), y = contiguous(y_);
  Tensor dx = new_output(x, x.sizes());
  dispatch("rolling_skew_kurt_backward", x, [&]<typename scalar_t>() {
    const scalar_t* output = y.const_data_ptr<scalar_t>();
    order == 3 ? window_gradient<scalar_t>(grad, x, output, dx, window, StandardizedMoment<3>{})
               : window_gradient<scalar_t>(grad, x, output, dx, window, StandardizedMoment<4>{});
  });
  return dx;
}

}  // namespace

COMMODITY_KERNEL(rolling_skew_kurt_backward, "(Tensor grad, Tensor x, Tensor y, SymInt window, SymInt order) -> Tensor")
