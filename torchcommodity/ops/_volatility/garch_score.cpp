// Log-likelihood of GARCH and GJR-GARCH with its gradient, second derivatives and squared scores, for all series in one
// pass over time: returns (..., T, N) -> (..., statistics, N), in the order documented in garch_score.py. In float64.
//
// The state of a series is h with its first and second derivatives (dh, d2h) with respect to the parameters. A row adds
// d l / d ln h (`d_log_h`) times d ln h to the score, and likewise to the second derivatives; for Student's t there are
// the terms of nu too. Then h, dh and d2h move on by the recursion and its derivatives.
#include "native.h"
#include "vector_math.h"

using namespace commodity;

namespace {

constexpr int kLogBatch = 8;  // variances multiplied before a logarithm is taken
using Row = double[kBlock];

// kAlphas: 1 for GARCH, 2 for GJR-GARCH with one alpha for each sign of the return. kStudent: Student's t.
template <int kAlphas, bool kStudent>
struct Series {
  static constexpr int kBeta = kAlphas + 1, kVariance = kAlphas + 2, kTotal = kVariance + kStudent;
  static constexpr int kPairs = kTotal * (kTotal + 1) / 2;
  Row omega, alpha, alpha_negative, beta, persistence, nu, constant_slope;  // parameters
  Row h, product, dh[kVariance], d2h[kPairs] = {};                          // the variance and its derivatives
  Row likelihood = {}, score[kTotal] = {}, information[kPairs] = {}, outer[kPairs] = {};

  static constexpr int pair(int i, int j) { return j * (j + 1) / 2 + i; }  // i <= j

  template <typename scalar_t>
  Series(const scalar_t* parameters, const scalar_t* backcast, const scalar_t* tail, int64_t stride, int64_t width) {
    Row* const local[6] = {&omega, &alpha, &alpha_negative, &beta, &nu, &constant_slope};
    for (int i = 0; i < (kStudent ? 6 : 4); ++i)
      std::copy_n(i < 4 ? parameters + i * stride : tail + (i - 4) * stride, width, *local[i]);
    for (int64_t n = 0; n < width; ++n) {
      const double start = backcast[n];
      persistence[n] = (alpha[n] + alpha_negative[n]) / 2 + beta[n];
      h[n] = omega[n] + persistence[n] * start;
      for (int i = 0; i < kVariance; ++i) dh[i][n] = i == 0 ? 1 : (i == kBeta ? start : start / kAlphas);
      product[n] = 1;
    }
  }

  template <bool kDerivatives, typename scalar_t>
  void step(const scalar_t* r, int64_t width) {
    COMMODITY_IVDEP
    for (int64_t n = 0; n < width; ++n) {
      const double x = r[n], variance = h[n], inverse = 1 / variance;
      const bool observed = x == x, negative = x < 0;
      const double square = observed ? x * x : 0, z = square * inverse, count = observed ? 1 : 0;
      double d_log_h = 0.5 * z, curvature = 0.5 * z, d_nu = 0, d_nu_log_h = 0, curvature_nu = 0;
      if constexpr (kStudent) {
        const double inverse_df = 1 / (nu[n] - 2), half = 0.5 * (nu[n] + 1), q = z * inverse_df, w = 1 / (1 + q);
        const double logarithm = fast_log(1 + q), qw = q * w;
        likelihood[n] -= half * logarithm;
        d_log_h = half * qw, curvature = d_log_h * w;
        d_nu = count * constant_slope[n] - 0.5 * logarithm + d_log_h * inverse_df;
        d_nu_log_h = 0.5 * qw - curvature * inverse_df;
        curvature_nu = half * q * inverse_df * inverse_df * w * (w + 1) - qw * inverse_df;
      } else {
        likelihood[n] -= 0.5 * z;
      }
      product[n] *= observed ? variance : 1;
      d_log_h -= 0.5 * count;  // `curvature` is minus its derivative by ln h
      if constexpr (kDerivatives) {
        double u[kTotal], row_score[kVariance];
#pragma GCC unroll 8
        for (int i = 0; i < kVariance; ++i) u[i] = dh[i][n] * inverse;
        const double outer_weight = d_log_h + curvature, d_h = d_log_h * inverse;
#pragma GCC unroll 8
        for (int j = 0; j < kVariance; ++j) {
          row_score[j] = d_log_h * u[j];
          score[j][n] += row_score[j];
#pragma GCC unroll 8
          for (int i = 0; i <= j; ++i) {
            information[pair(i, j)][n] += outer_weight * u[i] * u[j] - d_h * d2h[pair(i, j)][n];
            outer[pair(i, j)][n] += row_score[i] * row_score[j];
          }
        }
        if constexpr (kStudent) {
          score[kVariance][n] += d_nu;
          information[kPairs - 1][n] += curvature_nu;
          outer[kPairs - 1][n] += d_nu * d_nu;
#pragma GCC unroll 8
          for (int i = 0; i < kVariance; ++i) {
            information[pair(i, kVariance)][n] -= d_nu_log_h * u[i];
            outer[pair(i, kVariance)][n] += d_nu * row_score[i];
          }
        }
        const double slope = observed ? beta[n] : persistence[n], missing = (1 - count) / kAlphas;
#pragma GCC unroll 8
        for (int j = 1; j < kVariance; ++j)
#pragma GCC unroll 8
          for (int i = 0; i <= j; ++i) {
            const double by_j = j == kBeta ? 1 : missing, by_i = i == kBeta ? 1 : (i == 0 ? 0 : missing);
            d2h[pair(i, j)][n] = slope * d2h[pair(i, j)][n] + by_j * dh[i][n] + by_i * dh[j][n];
          }
        const double regressor = square + missing * variance;
#pragma GCC unroll 8
        for (int i = 0; i < kVariance; ++i) {
          const double signed_regressor =
              kAlphas == 1 ? regressor
                           : (((i == 1) & negative) ? 0 : (((i == 2) & !negative & observed) ? 0 : regressor));
          dh[i][n] = (i == 0 ? 1 : (i == kBeta ? variance : signed_regressor)) + slope * dh[i][n];
        }
      }
      const double next = (negative ? alpha_negative[n] : alpha[n]) * square + beta[n] * variance;
      h[n] = omega[n] + (observed ? next : persistence[n] * variance);
    }
  }

  void add_logarithms(int64_t width) {
    for (int64_t n = 0; n < width; ++n) {
      likelihood[n] -= 0.5 * fast_log(product[n]);
      product[n] = 1;
    }
  }

  template <typename scalar_t>
  void write(scalar_t* y, int64_t stride, int64_t width) const {
    const auto append = [&](const Row& row) {
      std::copy_n(row, width, y);
      y += stride;
    };
    append(likelihood);
    for (const Row& row : score) append(row);
    for (const Row& row : information) append(row);
    for (const Row& row : outer) append(row);
  }
};

// The returns of a block in double: the derivatives are compiled for one dtype.
struct Returns {
  std::vector<double> copy;
  const double* r;
  int64_t stride;

  Returns(const double* r, int64_t, int64_t stride, int64_t) : r(r), stride(stride) {}
  Returns(const float* from, int64_t steps, int64_t from_stride, int64_t width)
      : copy(steps * width), r(copy.data()), stride(width) {
    for (int64_t t = 0; t < steps; ++t) std::copy_n(from + t * from_stride, width, &copy[t * width]);
  }
};

template <int kAlphas, bool kStudent>
COMMODITY_SIMD void run(Series<kAlphas, kStudent>& series, const Returns& returns, int64_t steps, int64_t width) {
  const double* r = returns.r;
  for (int64_t t = 0; t < steps; ++t, r += returns.stride) {
    series.template step<true>(r, width);
    if (t % kLogBatch == kLogBatch - 1 || t == steps - 1) series.add_logarithms(width);
  }
}

template <int kAlphas, bool kStudent, typename scalar_t>
COMMODITY_SIMD void run_likelihood(Series<kAlphas, kStudent>& series, const scalar_t* r, int64_t steps, int64_t stride,
                                   int64_t width) {
  for (int64_t t = 0; t < steps; ++t, r += stride) {
    series.template step<false>(r, width);
    if (t % kLogBatch == kLogBatch - 1 || t == steps - 1) series.add_logarithms(width);
  }
}

template <int kAlphas, bool kStudent, typename scalar_t>
void score_blocks(const Tensor& returns, const Tensor& parameters, const Tensor& backcast, const scalar_t* tail,
                  Tensor& y, bool derivatives) {
  const Panels panels(returns);
  const int64_t assets = panels.assets, statistics = y.size(-2);
  scalar_t* const to = y.mutable_data_ptr<scalar_t>();
  for_each_block(panels, [&](int64_t panel, int64_t dh, int64_t last) {
    const int64_t column = panel * assets + dh, width = last - dh;
    Series<kAlphas, kStudent> series(parameters.const_data_ptr<scalar_t>() + panel * 4 * assets + dh,
                                     backcast.const_data_ptr<scalar_t>() + column,
                                     tail ? tail + panel * 2 * assets + dh : nullptr, assets, width);
    const scalar_t* r = returns.const_data_ptr<scalar_t>() + panel * panels.size() + dh;
    if (derivatives)
      run(series, Returns(r, panels.steps, assets, width), panels.steps, width);
    else
      run_likelihood(series, r, panels.steps, assets, width);
    series.write(to + panel * statistics * assets + dh, assets, width);
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
  THO_DISPATCH_V2(returns.scalar_type(), "garch_score", AT_WRAP([&] {
                    const scalar_t* tail_data = tail ? tail->const_data_ptr<scalar_t>() : nullptr;
                    const auto run = asymmetric
                                         ? (tail ? score_blocks<2, true, scalar_t> : score_blocks<2, false, scalar_t>)
                                         : (tail ? score_blocks<1, true, scalar_t> : score_blocks<1, false, scalar_t>);
                    run(returns, parameters, backcast, tail_data, y, derivatives);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(garch_score,
                   "(Tensor returns, Tensor parameters, Tensor backcast, Tensor? tail, bool asymmetric, "
                   "bool derivatives) -> Tensor")
