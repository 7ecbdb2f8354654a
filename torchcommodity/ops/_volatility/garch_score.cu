// Log-likelihood of GARCH and GJR-GARCH with its first and second derivatives, all series in one pass over time.
// In float64 throughout. returns (..., T, N) -> (..., statistics, N), in the order that `garch_score.py` states.
//
// An item takes a column: a sum over time is what is asked for, and its terms hang together by the variance.
#include "device.h"

using namespace commodity;

namespace {

// kArms: the weight of squared returns, or one of rising and one of falling returns. kTail: Student's t.
template <int kArms, bool kTail>
struct Series {
  static constexpr int kBeta = kArms + 1, kVariance = kArms + 2, kAll = kVariance + kTail;
  static constexpr int kPairs = kAll * (kAll + 1) / 2;
  double omega, rising, falling, beta, expected, nu, normalizing;  // parameters
  double h, first[kVariance], second[kPairs] = {};                 // the variance and its derivatives
  double likelihood = 0, score[kAll] = {}, information[kPairs] = {}, outer[kPairs] = {};

  static constexpr COMMODITY_INLINE int pair(int i, int j) { return j * (j + 1) / 2 + i; }  // i <= j

  COMMODITY_INLINE Series(double before, double omega, double rising, double falling, double beta, double nu,
                          double normalizing)
      : omega(omega),
        rising(rising),
        falling(falling),
        beta(beta),
        expected((rising + falling) / 2 + beta),
        nu(nu),
        normalizing(normalizing),
        h(omega + expected * before) {
    for (int i = 0; i < kVariance; ++i) first[i] = i == 0 ? 1 : i == kBeta ? before : before / kArms;
  }

  COMMODITY_INLINE void step(double x, bool derivatives) {
    const double inverse = 1 / h;
    const bool seen = x == x, down = x < 0;
    const double square = seen ? x * x : 0, z = square * inverse, here = seen ? 1 : 0;
    double pull = 0.5 * z, bend = 0.5 * z, tail_score = 0, tail_pull = 0, tail_bend = 0;
    if constexpr (kTail) {
      const double rest = 1 / (nu - 2), half = 0.5 * (nu + 1), q = z * rest, share = 1 / (1 + q);
      const double logarithm = std::log(1 + q), part = q * share;
      likelihood -= half * logarithm;
      pull = half * part, bend = pull * share;
      tail_score = here * normalizing - 0.5 * logarithm + pull * rest;
      tail_pull = 0.5 * part - bend * rest;
      tail_bend = half * q * rest * rest * share * (share + 1) - part * rest;
    } else {
      likelihood -= 0.5 * z;
    }
    if (seen) likelihood -= 0.5 * std::log(h);
    pull -= 0.5 * here;  // of the log-likelihood, times h: a derivative by ln h; `bend` is that of -pull
    if (derivatives) {
      gather(pull, bend, inverse);
      if constexpr (kTail) gather_tail(pull, inverse, tail_score, tail_pull, tail_bend);
      advance(square, seen, down);
    }
    const double next = (down ? falling : rising) * square + beta * h;
    h = omega + (seen ? next : expected * h);
  }

  COMMODITY_INLINE void gather(double pull, double bend, double inverse) {
    const double weight = pull + bend, curve = pull * inverse;
#pragma unroll
    for (int j = 0; j < kVariance; ++j) {
      score[j] += pull * first[j] * inverse;
#pragma unroll
      for (int i = 0; i <= j; ++i) {
        const double both = first[i] * inverse * first[j] * inverse;
        information[pair(i, j)] += weight * both - curve * second[pair(i, j)];
        outer[pair(i, j)] += pull * pull * both;
      }
    }
  }

  COMMODITY_INLINE void gather_tail(double pull, double inverse, double tail_score, double tail_pull,
                                    double tail_bend) {
    score[kAll - 1] += tail_score;
    information[kPairs - 1] += tail_bend;
    outer[kPairs - 1] += tail_score * tail_score;
#pragma unroll
    for (int i = 0; i < kVariance; ++i) {
      information[pair(i, kAll - 1)] -= tail_pull * first[i] * inverse;
      outer[pair(i, kAll - 1)] += tail_score * pull * first[i] * inverse;
    }
  }

  COMMODITY_INLINE void advance(double square, bool seen, bool down) {
    const double slope = seen ? beta : expected, missing = (seen ? 0.0 : 1.0) / kArms, arm = square + missing * h;
#pragma unroll
    for (int j = 1; j < kVariance; ++j)
#pragma unroll
      for (int i = 0; i <= j; ++i) {
        const double by_j = j == kBeta ? 1 : missing, by_i = i == kBeta ? 1 : i == 0 ? 0 : missing;
        second[pair(i, j)] = slope * second[pair(i, j)] + by_j * first[i] + by_i * first[j];
      }
#pragma unroll
    for (int i = 0; i < kVariance; ++i) {
      const bool other = kArms == 2 && ((i == 1 && down) || (i == 2 && !down && seen));
      first[i] = (i == 0 ? 1 : i == kBeta ? h : other ? 0 : arm) + slope * first[i];
    }
  }
};

template <int kArms, bool kTail, typename scalar_t>
struct Score {
  const scalar_t *returns, *parameters, *backcast, *tail;
  scalar_t* y;
  int64_t steps, assets, statistics;
  bool derivatives;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    const auto of = [&](int64_t i) { return double(read(parameters + (panel * 4 + i) * assets + n)); };
    const auto shape = [&](int64_t i) { return kTail ? double(read(tail + (panel * 2 + i) * assets + n)) : 0; };
    Series<kArms, kTail> series(read(backcast + panel * assets + n), of(0), of(1), of(2), of(3), shape(0), shape(1));
#pragma unroll 1
    for (int64_t t = 0; t < steps; ++t) series.step(read(returns + (panel * steps + t) * assets + n), derivatives);
    scalar_t* to = y + panel * statistics * assets + n;
    const auto put = [&](double value) { *to = static_cast<scalar_t>(value), to += assets; };
    put(series.likelihood);
    for (const double value : series.score) put(value);
    for (const double value : series.information) put(value);
    for (const double value : series.outer) put(value);
  }
};

template <int kArms, bool kTail>
void scores(const Tensor& returns, const Tensor& parameters, const Tensor& backcast, const std::optional<Tensor>& tail,
            Tensor& y, bool derivatives) {
  const Panels panels(returns);
  dispatch("garch_score", returns, [&]<typename scalar_t>() {
    launch_grid(y, Grid(panels.batch, panels.assets, 1),
                Score<kArms, kTail, scalar_t>{
                    returns.const_data_ptr<scalar_t>(), parameters.const_data_ptr<scalar_t>(),
                    backcast.const_data_ptr<scalar_t>(), tail ? tail->const_data_ptr<scalar_t>() : nullptr,
                    y.mutable_data_ptr<scalar_t>(), panels.steps, panels.assets, y.size(-2), derivatives});
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
  const auto run =
      asymmetric ? (tail ? scores<2, true> : scores<2, false>) : (tail ? scores<1, true> : scores<1, false>);
  run(returns, parameters, backcast, tail, y, derivatives);
  return y;
}

}  // namespace

COMMODITY_CUDA(garch_score)
