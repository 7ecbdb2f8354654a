// Log-likelihood of GARCH and GJR-GARCH with its first and second derivatives, all series in one pass over time.
// In float64 throughout. returns (..., T, N) -> (..., statistics, N), in the order that `garch_score.py` states.
#include "native.h"
#include "vector_math.h"

using namespace commodity;

namespace {

constexpr int kTogether = 8;  // variances whose product has one logarithm taken: within 1e-38 and 1e38 nothing is lost
using Row = double[kBlock];

// kArms: the weight of squared returns, or one of rising and one of falling returns. kTail: Student's t.
template <int kArms, bool kTail>
struct Series {
  static constexpr int kBeta = kArms + 1, kVariance = kArms + 2, kAll = kVariance + kTail;
  static constexpr int kPairs = kAll * (kAll + 1) / 2;
  Row omega, rising, falling, beta, expected, nu, normalizing;  // parameters
  Row h, product, first[kVariance], second[kPairs] = {};        // the variance and its derivatives
  Row likelihood = {}, score[kAll] = {}, information[kPairs] = {}, outer[kPairs] = {};

  static constexpr int pair(int i, int j) { return j * (j + 1) / 2 + i; }  // i <= j

  template <typename scalar_t>
  Series(const scalar_t* parameters, const scalar_t* backcast, const scalar_t* tail, int64_t stride, int64_t width) {
    Row* const local[6] = {&omega, &rising, &falling, &beta, &nu, &normalizing};
    for (int i = 0; i < (kTail ? 6 : 4); ++i)
      std::copy_n(i < 4 ? parameters + i * stride : tail + (i - 4) * stride, width, *local[i]);
    for (int64_t n = 0; n < width; ++n) {
      const double before = backcast[n];
      expected[n] = (rising[n] + falling[n]) / 2 + beta[n];
      h[n] = omega[n] + expected[n] * before;
      for (int i = 0; i < kVariance; ++i) first[i][n] = i == 0 ? 1 : (i == kBeta ? before : before / kArms);
      product[n] = 1;
    }
  }

  template <bool kDerivatives, typename scalar_t>
  void step(const scalar_t* r, int64_t width) {
#pragma GCC ivdep
    for (int64_t n = 0; n < width; ++n) {
      const double x = r[n], variance = h[n], inverse = 1 / variance;
      const bool seen = x == x, down = x < 0;
      const double square = seen ? x * x : 0, z = square * inverse, here = seen ? 1 : 0;
      double pull = 0.5 * z, bend = 0.5 * z, tail_score = 0, tail_pull = 0, tail_bend = 0;
      if constexpr (kTail) {
        const double rest = 1 / (nu[n] - 2), half = 0.5 * (nu[n] + 1), q = z * rest, share = 1 / (1 + q);
        const double logarithm = fast_log(1 + q), part = q * share;
        likelihood[n] -= half * logarithm;
        pull = half * part, bend = pull * share;
        tail_score = here * normalizing[n] - 0.5 * logarithm + pull * rest;
        tail_pull = 0.5 * part - bend * rest;
        tail_bend = half * q * rest * rest * share * (share + 1) - part * rest;
      } else {
        likelihood[n] -= 0.5 * z;
      }
      product[n] *= seen ? variance : 1;
      pull -= 0.5 * here;  // of the log-likelihood, times h: a derivative by ln h; `bend` is that of -pull
      if constexpr (kDerivatives) {
        double u[kAll], own[kVariance];
#pragma GCC unroll 8
        for (int i = 0; i < kVariance; ++i) u[i] = first[i][n] * inverse;
        const double weight = pull + bend, curve = pull * inverse;
#pragma GCC unroll 8
        for (int j = 0; j < kVariance; ++j) {
          own[j] = pull * u[j];
          score[j][n] += own[j];
#pragma GCC unroll 8
          for (int i = 0; i <= j; ++i) {
            information[pair(i, j)][n] += weight * u[i] * u[j] - curve * second[pair(i, j)][n];
            outer[pair(i, j)][n] += own[i] * own[j];
          }
        }
        if constexpr (kTail) {
          score[kVariance][n] += tail_score;
          information[kPairs - 1][n] += tail_bend;
          outer[kPairs - 1][n] += tail_score * tail_score;
#pragma GCC unroll 8
          for (int i = 0; i < kVariance; ++i) {
            information[pair(i, kVariance)][n] -= tail_pull * u[i];
            outer[pair(i, kVariance)][n] += tail_score * own[i];
          }
        }
        const double slope = seen ? beta[n] : expected[n], missing = (1 - here) / kArms;
#pragma GCC unroll 8
        for (int j = 1; j < kVariance; ++j)
#pragma GCC unroll 8
          for (int i = 0; i <= j; ++i) {
            const double by_j = j == kBeta ? 1 : missing, by_i = i == kBeta ? 1 : (i == 0 ? 0 : missing);
            second[pair(i, j)][n] = slope * second[pair(i, j)][n] + by_j * first[i][n] + by_i * first[j][n];
          }
        const double arm = square + missing * variance;
#pragma GCC unroll 8
        for (int i = 0; i < kVariance; ++i) {
          const double side = kArms == 1 ? arm : ((i == 1) & down ? 0 : ((i == 2) & !down & seen ? 0 : arm));
          first[i][n] = (i == 0 ? 1 : (i == kBeta ? variance : side)) + slope * first[i][n];
        }
      }
      const double next = (down ? falling[n] : rising[n]) * square + beta[n] * variance;
      h[n] = omega[n] + (seen ? next : expected[n] * variance);
    }
  }

  void take_logarithms(int64_t width) {
    for (int64_t n = 0; n < width; ++n) {
      likelihood[n] -= 0.5 * fast_log(product[n]);
      product[n] = 1;
    }
  }

  template <typename scalar_t>
  void write(scalar_t* y, int64_t stride, int64_t width) const {
    const auto put = [&](const Row& row) {
      std::copy_n(row, width, y);
      y += stride;
    };
    put(likelihood);
    for (const Row& row : score) put(row);
    for (const Row& row : information) put(row);
    for (const Row& row : outer) put(row);
  }
};

template <int kArms, bool kTail, typename scalar_t>
COMMODITY_SIMD void run(Series<kArms, kTail>& series, const scalar_t* r, int64_t steps, int64_t stride, int64_t width) {
  for (int64_t t = 0; t < steps; ++t, r += stride) {
    series.template step<true>(r, width);
    if (t % kTogether == kTogether - 1 || t == steps - 1) series.take_logarithms(width);
  }
}

template <int kArms, bool kTail, typename scalar_t>
COMMODITY_SIMD void run_likelihood(Series<kArms, kTail>& series, const scalar_t* r, int64_t steps, int64_t stride,
                                   int64_t width) {
  for (int64_t t = 0; t < steps; ++t, r += stride) {
    series.template step<false>(r, width);
    if (t % kTogether == kTogether - 1 || t == steps - 1) series.take_logarithms(width);
  }
}

template <int kArms, bool kTail, typename scalar_t>
void blocks(const Tensor& returns, const Tensor& parameters, const Tensor& backcast, const scalar_t* tail, Tensor& y,
            bool derivatives) {
  const Panels panels(returns);
  const int64_t assets = panels.assets, statistics = y.size(-2);
  scalar_t* const to = y.mutable_data_ptr<scalar_t>();
  for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
    const int64_t column = panel * assets + first, width = last - first;
    Series<kArms, kTail> series(parameters.const_data_ptr<scalar_t>() + panel * 4 * assets + first,
                                backcast.const_data_ptr<scalar_t>() + column,
                                tail ? tail + panel * 2 * assets + first : nullptr, assets, width);
    const scalar_t* r = returns.const_data_ptr<scalar_t>() + panel * panels.size() + first;
    if (derivatives)
      run(series, r, panels.steps, assets, width);
    else
      run_likelihood(series, r, panels.steps, assets, width);
    series.write(to + panel * statistics * assets + first, assets, width);
  });
}

Tensor garch_score(const Tensor& returns_, const Tensor& parameters_, const Tensor& backcast_,
                   const std::optional<Tensor>& tail_, bool asymmetric, bool derivatives) {
  const Tensor returns = contiguous(returns_), parameters = contiguous(parameters_), backcast = contiguous(backcast_);
  const std::optional<Tensor> tail = tail_ ? std::optional(contiguous(*tail_)) : std::nullopt;
  for (const Tensor& x : {parameters, backcast, tail ? *tail : backcast})
    STD_TORCH_CHECK(x.scalar_type() == returns.scalar_type() && x.size(-1) == returns.size(-1),
                    "garch_score: all tensors must have the dtype and the columns of returns (..., T, N)");
  const int64_t count = 3 + asymmetric + tail.has_value();
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape[shape.size() - 2] = 1 + count + count * (count + 1);
  Tensor y = new_empty(returns, shape);
  THO_DISPATCH_V2(returns.scalar_type(), "garch_score", AT_WRAP([&] {
                    const scalar_t* shapes = tail ? tail->const_data_ptr<scalar_t>() : nullptr;
                    const auto run = asymmetric ? (tail ? blocks<2, true, scalar_t> : blocks<2, false, scalar_t>)
                                                : (tail ? blocks<1, true, scalar_t> : blocks<1, false, scalar_t>);
                    run(returns, parameters, backcast, shapes, y, derivatives);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(garch_score,
                   "(Tensor returns, Tensor parameters, Tensor backcast, Tensor? tail, bool asymmetric, "
                   "bool derivatives) -> Tensor")
