// Log-likelihood of GARCH and GJR-GARCH with its derivatives: the scheme of garch_score.cpp with one thread per series,
// since each row needs the variance and its derivatives of the previous row.
#include "device.h"

using namespace commodity;

namespace {

// kAlphas: 1 for GARCH, 2 for GJR-GARCH with one alpha for each sign of the return. kStudent: Student's t.
template <int kAlphas, bool kStudent>
struct Series {
  static constexpr int kBeta = kAlphas + 1, kVariance = kAlphas + 2, kTotal = kVariance + kStudent;
  static constexpr int kPairs = kTotal * (kTotal + 1) / 2;
  double omega, alpha, alpha_negative, beta, persistence, nu, constant_slope;  // parameters
  double h, dh[kVariance], d2h[kPairs] = {};                                   // the variance and its derivatives
  double likelihood = 0, score[kTotal] = {}, information[kPairs] = {}, outer[kPairs] = {};

  static constexpr COMMODITY_INLINE int pair(int i, int j) { return j * (j + 1) / 2 + i; }  // i <= j

  COMMODITY_INLINE Series(double backcast_n, double omega, double alpha, double alpha_negative, double beta, double nu,
                          double constant_slope)
      : omega(omega),
        alpha(alpha),
        alpha_negative(alpha_negative),
        beta(beta),
        persistence((alpha + alpha_negative) / 2 + beta),
        nu(nu),
        constant_slope(constant_slope),
        h(omega + persistence * backcast_n) {
    for (int i = 0; i < kVariance; ++i) dh[i] = i == 0 ? 1 : i == kBeta ? backcast_n : backcast_n / kAlphas;
  }

  COMMODITY_INLINE void step(double x, bool derivatives) {
    const double inverse = 1 / h;
    const bool observed = x == x, negative = x < 0;
    const double square = observed ? x * x : 0, z = square * inverse, count = observed ? 1 : 0;
    double d_log_h = 0.5 * z, curvature = 0.5 * z, d_nu = 0, d_nu_log_h = 0, curvature_nu = 0;
    if constexpr (kStudent) {
      const double inverse_df = 1 / (nu - 2), half = 0.5 * (nu + 1), q = z * inverse_df, w = 1 / (1 + q);
      const double logarithm = std::log(1 + q), qw = q * w;
      likelihood -= half * logarithm;
      d_log_h = half * qw, curvature = d_log_h * w;
      d_nu = count * constant_slope - 0.5 * logarithm + d_log_h * inverse_df;
      d_nu_log_h = 0.5 * qw - curvature * inverse_df;
      curvature_nu = half * q * inverse_df * inverse_df * w * (w + 1) - qw * inverse_df;
    } else {
      likelihood -= 0.5 * z;
    }
    if (observed) likelihood -= 0.5 * std::log(h);
    d_log_h -= 0.5 * count;  // `curvature` is minus its derivative by ln h
    if (derivatives) {
      add_derivatives(d_log_h, curvature, inverse);
      if constexpr (kStudent) add_tail_derivatives(d_log_h, inverse, d_nu, d_nu_log_h, curvature_nu);
      update_derivatives(square, observed, negative);
    }
    const double next = (negative ? alpha_negative : alpha) * square + beta * h;
    h = omega + (observed ? next : persistence * h);
  }

  COMMODITY_INLINE void add_derivatives(double d_log_h, double curvature, double inverse) {
    const double outer_weight = d_log_h + curvature, d_h = d_log_h * inverse;
#pragma unroll
    for (int j = 0; j < kVariance; ++j) {
      score[j] += d_log_h * dh[j] * inverse;
#pragma unroll
      for (int i = 0; i <= j; ++i) {
        const double product = dh[i] * inverse * dh[j] * inverse;
        information[pair(i, j)] += outer_weight * product - d_h * d2h[pair(i, j)];
        outer[pair(i, j)] += d_log_h * d_log_h * product;
      }
    }
  }

  COMMODITY_INLINE void add_tail_derivatives(double d_log_h, double inverse, double d_nu, double d_nu_log_h,
                                             double curvature_nu) {
    score[kTotal - 1] += d_nu;
    information[kPairs - 1] += curvature_nu;
    outer[kPairs - 1] += d_nu * d_nu;
#pragma unroll
    for (int i = 0; i < kVariance; ++i) {
      information[pair(i, kTotal - 1)] -= d_nu_log_h * dh[i] * inverse;
      outer[pair(i, kTotal - 1)] += d_nu * d_log_h * dh[i] * inverse;
    }
  }

  COMMODITY_INLINE void update_derivatives(double square, bool observed, bool negative) {
    const double slope = observed ? beta : persistence, missing = (observed ? 0.0 : 1.0) / kAlphas,
                 regressor = square + missing * h;
#pragma unroll
    for (int j = 1; j < kVariance; ++j)
#pragma unroll
      for (int i = 0; i <= j; ++i) {
        const double by_j = j == kBeta ? 1 : missing, by_i = i == kBeta ? 1 : i == 0 ? 0 : missing;
        d2h[pair(i, j)] = slope * d2h[pair(i, j)] + by_j * dh[i] + by_i * dh[j];
      }
#pragma unroll
    for (int i = 0; i < kVariance; ++i) {
      const bool other = kAlphas == 2 && ((i == 1 && negative) || (i == 2 && !negative && observed));
      dh[i] = (i == 0 ? 1 : i == kBeta ? h : other ? 0 : regressor) + slope * dh[i];
    }
  }
};

template <int kAlphas, bool kStudent, typename scalar_t>
struct Score {
  const scalar_t *returns, *parameters, *backcast, *tail;
  scalar_t* y;
  int64_t steps, assets, statistics;
  bool derivatives;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    const auto parameter = [&](int64_t i) { return double(read(parameters + (panel * 4 + i) * assets + n)); };
    const auto tail_value = [&](int64_t i) { return kStudent ? double(read(tail + (panel * 2 + i) * assets + n)) : 0; };
    Series<kAlphas, kStudent> series(read(backcast + panel * assets + n), parameter(0), parameter(1), parameter(2),
                                     parameter(3), tail_value(0), tail_value(1));
#pragma unroll 1
    for (int64_t t = 0; t < steps; ++t) series.step(read(returns + (panel * steps + t) * assets + n), derivatives);
    scalar_t* to = y + panel * statistics * assets + n;
    const auto append = [&](double value) { *to = static_cast<scalar_t>(value), to += assets; };
    append(series.likelihood);
    for (const double value : series.score) append(value);
    for (const double value : series.information) append(value);
    for (const double value : series.outer) append(value);
  }
};

template <int kAlphas, bool kStudent>
void scores(const Tensor& returns, const Tensor& parameters, const Tensor& backcast, const std::optional<Tensor>& tail,
            Tensor& y, bool derivatives) {
  const Panels panels(returns);
  dispatch("garch_score", returns, [&]<typename scalar_t>() {
    launch_grid(y, Grid(panels.batch, panels.assets, 1),
                Score<kAlphas, kStudent, scalar_t>{
                    returns.const_data_ptr<scalar_t>(), parameters.const_data_ptr<scalar_t>(),
                    backcast.const_data_ptr<scalar_t>(), tail ? tail->const_data_ptr<scalar_t>() : nullptr,
                    y.mutable_data_ptr<scalar_t>(), panels.steps, panels.assets, y.size(-2), derivatives});
  });
}

Tensor garch_score(const Tensor& returns_, const Tensor& parameters_, const Tensor& backcast_,
                   const std::optional<Tensor>& tail_, bool asymmetric, bool derivatives) {
  const Tensor returns = contiguous(returns_), parameters = contiguous(parameters_), backcast = contiguous(backcast_);
  const std::optional<Tensor> tail = tail_ ? std::optional(contiguous(*tail_)) : std::nullopt;
  check_rows("garch_score", "parameters", parameters, returns, 4);
  check_rows("garch_score", "backcast", backcast, returns);
  if (tail) check_rows("garch_score", "tail", *tail, returns, 2);
  const int64_t count = 3 + asymmetric + tail.has_value();
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape[shape.size() - 2] = 1 + count + count * (count + 1);
  Tensor y = new_empty(returns, shape);
  const auto run =
      asymmetric ? (tail ? scores<2, true> : scores<2, false>) : (tail ? scores<1, true> : scores<1, false>);
  run(returns, parameters, backcast, tail, y, derivatives);
  return y;
}

}  // namespace

COMMODITY_CUDA(garch_score)
