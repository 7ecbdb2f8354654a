// Log-likelihood of GARCH and GJR-GARCH with its gradient, second derivatives and squared scores, for all series in one
// pass over time: returns (..., T, N) -> (..., statistics, N), in the order documented in garch_score.py. In float64.
//
// The state of a series is h with its first and second derivatives (dh, d2h) with respect to the parameters. A row adds
// d l / d ln h (`d_log_h`) times d ln h to the score, and likewise to the second derivatives; for Student's t there are
// the terms of nu too. Then h, dh and d2h move on by the recursion and its derivatives.
#include "lanes.h"

using namespace commodity;

namespace {

constexpr int kLogBatch = 8;  // variances multiplied before a logarithm is taken
constexpr int64_t kPrefetchRows = 8;

// kAlphas: 1 for GARCH, 2 for GJR-GARCH with one alpha for each sign of the return. kStudent: Student's t.
template <int kAlphas, bool kStudent, typename Number>
struct Series {
  static constexpr int kBeta = kAlphas + 1, kVariance = kAlphas + 2, kTotal = kVariance + kStudent;
  static constexpr int kPairs = kTotal * (kTotal + 1) / 2;
  Number omega, alpha, alpha_negative, beta, persistence, nu, constant_slope;  // parameters
  Number h, product, dh[kVariance], d2h[kPairs] = {};                          // the variance and its derivatives
  Number likelihood = {}, score[kTotal] = {}, information[kPairs] = {}, outer[kPairs] = {};

  static constexpr COMMODITY_INLINE int pair(int i, int j) { return j * (j + 1) / 2 + i; }  // i <= j

  COMMODITY_INLINE Series(const Number (&parameters)[6], const Number& backcast)
      : omega(parameters[0]),
        alpha(parameters[1]),
        alpha_negative(parameters[2]),
        beta(parameters[3]),
        persistence((alpha + alpha_negative) / 2 + beta),
        nu(parameters[4]),
        constant_slope(parameters[5]),
        h(omega + persistence * backcast),
        product(Number{} + 1) {
    for (int i = 0; i < kVariance; ++i) dh[i] = i == 0 ? Number{} + 1 : i == kBeta ? backcast : backcast / kAlphas;
  }

  COMMODITY_INLINE void step(const Number& x, bool derivatives) {
    const auto observed = x == x, negative = x < 0;
    const Number inverse = 1 / h, square = observed ? x * x : Number{}, z = square * inverse;
    const Number count = observed ? Number{} + 1 : Number{};
    Number d_log_h = 0.5 * z, curvature = 0.5 * z, d_nu = {}, d_nu_log_h = {}, curvature_nu = {};
    if constexpr (kStudent) {
      const Number inverse_df = 1 / (nu - 2), half = 0.5 * (nu + 1), q = z * inverse_df, w = 1 / (1 + q);
      const Number logarithm = fast_log(1 + q), qw = q * w;
      likelihood -= half * logarithm;
      d_log_h = half * qw, curvature = d_log_h * w;
      d_nu = count * constant_slope - 0.5 * logarithm + d_log_h * inverse_df;
      d_nu_log_h = 0.5 * qw - curvature * inverse_df;
      curvature_nu = half * q * inverse_df * inverse_df * w * (w + 1) - qw * inverse_df;
    } else {
      likelihood -= 0.5 * z;
    }
    product *= observed ? h : Number{} + 1;
    d_log_h -= 0.5 * count;  // `curvature` is minus its derivative by ln h
    if (derivatives) {
      add_derivatives(d_log_h, curvature, inverse, d_nu, d_nu_log_h, curvature_nu);
      const Number slope = observed ? beta : persistence, missing = (1 - count) / kAlphas;
      COMMODITY_UNROLL
      for (int j = 1; j < kVariance; ++j) {
        COMMODITY_UNROLL
        for (int i = 0; i <= j; ++i) {
          const Number by_j = j == kBeta ? Number{} + 1 : missing, by_i = i == kBeta ? Number{} + 1 : missing;
          d2h[pair(i, j)] = slope * d2h[pair(i, j)] + by_j * dh[i] + (i == 0 ? Number{} : by_i * dh[j]);
        }
      }
      const Number regressor = square + missing * h;
      const Number positive_only = kAlphas == 1 ? regressor : negative ? Number{} : regressor;
      const Number negative_only = negative | (observed == 0) ? regressor : Number{};
      COMMODITY_UNROLL
      for (int i = 0; i < kVariance; ++i)
        dh[i] = (i == 0 ? Number{} + 1 : i == kBeta ? h : i == 1 ? positive_only : negative_only) + slope * dh[i];
    }
    const Number next = (negative ? alpha_negative : alpha) * square + beta * h;
    h = omega + (observed ? next : persistence * h);
  }

  COMMODITY_INLINE void add_derivatives(const Number& d_log_h, const Number& curvature, const Number& inverse,
                                        const Number& d_nu, const Number& d_nu_log_h, const Number& curvature_nu) {
    Number u[kVariance], row_score[kVariance];
    COMMODITY_UNROLL
    for (int i = 0; i < kVariance; ++i) u[i] = dh[i] * inverse;
    const Number outer_weight = d_log_h + curvature, d_h = d_log_h * inverse;
    COMMODITY_UNROLL
    for (int j = 0; j < kVariance; ++j) {
      row_score[j] = d_log_h * u[j];
      score[j] += row_score[j];
      COMMODITY_UNROLL
      for (int i = 0; i <= j; ++i) {
        information[pair(i, j)] += outer_weight * u[i] * u[j] - d_h * d2h[pair(i, j)];
        outer[pair(i, j)] += row_score[i] * row_score[j];
      }
    }
    if constexpr (kStudent) {
      score[kVariance] += d_nu;
      information[kPairs - 1] += curvature_nu;
      outer[kPairs - 1] += d_nu * d_nu;
      COMMODITY_UNROLL
      for (int i = 0; i < kVariance; ++i) {
        information[pair(i, kVariance)] -= d_nu_log_h * u[i];
        outer[pair(i, kVariance)] += d_nu * row_score[i];
      }
    }
  }

  COMMODITY_INLINE void add_logarithms() {
    likelihood -= 0.5 * fast_log(product);
    product = Number{} + 1;
  }
};

template <int kAlphas, bool kStudent, typename scalar_t>
struct Score {
  const scalar_t *returns, *parameters, *backcast, *tail;
  scalar_t* y;
  int64_t steps, assets, statistics;
  bool derivatives;

  int64_t numbers() const { return 0; }

  template <typename Lanes, typename Memory>
  COMMODITY_INLINE void operator()(const Lanes& lanes, const Memory&, int64_t panel, int64_t n) const {
    using Number = typename Lanes::Number;
    Number p[6] = {};
    for (int64_t i = 0; i < 4; ++i) p[i] = lanes.load(parameters + (panel * 4 + i) * assets + n);
    for (int64_t i = 0; kStudent && i < 2; ++i) p[4 + i] = lanes.load(tail + (panel * 2 + i) * assets + n);
    Series<kAlphas, kStudent, Number> series(p, lanes.load(backcast + panel * assets + n));
    const scalar_t* r = returns + panel * steps * assets + n;
    for (int64_t t = 0; t < steps; ++t, r += assets) {
      if (t + kPrefetchRows < steps) lanes.prefetch(r + kPrefetchRows * assets);
      series.step(lanes.load(r), derivatives);
      if (t % kLogBatch == kLogBatch - 1 || t == steps - 1) series.add_logarithms();
    }
    scalar_t* to = y + panel * statistics * assets + n;
    const auto append = [&](const Number& value) { lanes.store(value, to), to += assets; };
    append(series.likelihood);
    for (const Number& value : series.score) append(value);
    for (const Number& value : series.information) append(value);
    for (const Number& value : series.outer) append(value);
  }
};

template <int kAlphas, bool kStudent>
void scores(const Tensor& returns, const Tensor& parameters, const Tensor& backcast, const std::optional<Tensor>& tail,
            Tensor& y, bool derivatives) {
  const Panels panels(returns);
  dispatch("garch_score", returns, [&]<typename scalar_t>() {
    for_each_column(y, panels.batch, panels.steps, panels.assets,
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

COMMODITY_KERNEL(garch_score,
                 "(Tensor returns, Tensor parameters, Tensor backcast, Tensor? tail, bool asymmetric, "
                 "bool derivatives) -> Tensor")
