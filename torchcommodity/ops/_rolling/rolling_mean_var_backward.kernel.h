// Gradient of the rolling mean (order 1), variance (order 2) or standard deviation (order 2 with `std`) of (..., T, N).
#include "window_gradient.h"

using namespace commodity;

namespace {

enum Kind { kMean, kVariance, kStd };

// Of window t: grad_t / n_t, or z 2 grad_t / (n_t - ddof), or half of that over std_t.
template <Kind kind>
struct MeanOrVariance {
  static constexpr int kOrder = kind == kMean ? 1 : 2;
  static constexpr bool kReadsOutput = kind == kStd;
  double min_periods, ddof;

  template <typename Number>
  struct Factors {
    Number n, inverse_n, scale;
  };
  template <typename Number>
  COMMODITY_INLINE Factors<Number> factors(const Number& n) const {
    return {n, 1 / n, (kind == kVariance ? 2 : 1) / (kind == kMean ? n : n - ddof)};
  }
  template <typename Number>
  COMMODITY_INLINE WindowWeights<Number> weights(const Factors<Number>& f, const Number& g, const Number& y,
                                                 const Number&, const Number&) const {
    const Number zero = {};
    if constexpr (kind == kStd) return {(f.n >= min_periods) & (y > 0), g * f.scale / y, zero, zero, zero};
    return {f.n >= min_periods, g * f.scale, zero, zero, zero};
  }
};

Tensor rolling_mean_var_backward(const Tensor& grad_, const Tensor& x_, const std::optional<Tensor>& deviation_,
                                 int64_t window, int64_t min_periods, int64_t ddof, int64_t order) {
  check_same("rolling_mean_var_backward", grad_, x_);
  if (deviation_) check_same("rolling_mean_var_backward", *deviation_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_mean_var_backward: x (..., T, N), window >= 1");
  const Tensor grad = contiguous(grad_), x = contiguous(x_);
  const std::optional<Tensor> deviation = deviation_ ? std::optional(contiguous(*deviation_)) : std::nullopt;
  Tensor dx = new_output(x, x.sizes());
  const double min_count = double(std::max(min_periods, ddof + 1)), freedom = double(ddof);
  dispatch("rolling_mean_var_backward", x, [&]<typename scalar_t>() {
    const auto run = [&](const scalar_t* y, const auto& body) {
      window_gradient<scalar_t>(grad, x, y, dx, window, body);
    };
    if (deviation) return run(deviation->const_data_ptr<scalar_t>(), MeanOrVariance<kStd>{min_count, freedom});
    order == 2 ? run(nullptr, MeanOrVariance<kVariance>{min_count, freedom})
               : run(nullptr, MeanOrVariance<kMean>{min_count, freedom});
  });
  return dx;
}

}  // namespace

COMMODITY_KERNEL(rolling_mean_var_backward,
                 "(Tensor grad, Tensor x, Tensor? std, SymInt window, SymInt min_periods, SymInt ddof, SymInt "
                 "order) -> Tensor")
