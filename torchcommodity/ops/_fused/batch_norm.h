// Batch normalization of a product (outer, channels, inner): (B, C, T) of a convolution, or (rows, C, 1) of a linear
// layer or of a convolution in channels_last format; in place, unless the product is saved for the backward pass.
//
// The outer axis is split into parts of about kPartSize values, which stay in the cache between passes. Each part
// computes the moments of every channel in two passes (mean, then squared deviations); the parts are merged in order,
// in double. Parts do not depend on the number of threads, so neither do the results. Sums within a part run in kLanes
// independent lanes, or, with inner = 1, in one sum per channel, so that they vectorize.
#pragma once
#include <array>
#include <utility>

#include "memory_format.h"

namespace commodity {
namespace {  // each kernel file compiles its own

constexpr int64_t kLanes = 64;          // independent partial sums: whole vector registers
constexpr int64_t kPartSize = 1 << 13;  // values of a part, approximately

// Count, mean and sum of squared deviations from the mean.
struct Moments {
  double count = 0, mean = 0, squares = 0;
  // Chan, Golub, LeVeque (1979): no cancellation at any level.
  void merge(const Moments& part) {
    const double total = count + part.count, delta = part.mean - mean;
    mean += delta * part.count / total;
    squares += part.squares + delta * delta * count * part.count / total;
    count = total;
  }
  double variance() const { return squares / count; }
  bool valid() const { return count > 0 && std::isfinite(mean) && std::isfinite(squares); }
};

template <typename scalar_t>
inline scalar_t sum_lanes(scalar_t (&lanes)[kLanes]) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

struct ProductShape {
  int64_t outer, channels, inner, rows, parts;  // rows: of the outer axis per part

  explicit ProductShape(const Tensor& x) : outer(x.size(0)), channels(x.size(1)), inner(1) {
    for (int64_t axis = 2; axis < x.dim(); ++axis) inner *= x.size(axis);
    if (is_channels_last(x)) outer *= std::exchange(inner, 1);
    rows = std::max<int64_t>(1, kPartSize / std::max<int64_t>(1, channels * inner));
    parts = (outer + rows - 1) / rows;
  }
  int64_t size() const { return outer * channels * inner; }

  template <typename Body>
  void for_each_part(const Body& body) const {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows * channels * inner));
    parallel_for(0, parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) body(part, part * rows, std::min(outer, (part + 1) * rows));
    });
  }

  // Calls body(i, c) for every value of rows [first, last): `i` is its index, `c` its channel.
  template <typename Body>
  void for_each_value(int64_t first, int64_t last, const Body& body) const {
    for (int64_t row = first; row < last; ++row) {
      if (inner == 1) {
        COMMODITY_IVDEP  // indices differ
        for (int64_t c = 0; c < channels; ++c) body(row * channels + c, c);
        continue;
      }
      for (int64_t c = 0, i = row * channels * inner; c < channels; ++c, i += inner) {
        COMMODITY_IVDEP
        for (int64_t j = 0; j < inner; ++j) body(i + j, c);
      }
    }
  }

  // Adds the sums of terms(i, c), N of them, over rows [first, last) to totals[n][c].
  template <typename scalar_t, size_t N, typename Terms>
  void sum(int64_t first, int64_t last, const std::array<double*, N>& totals, const Terms& terms) const {
    if (inner == 1) return sum_rows<scalar_t, N>(first, last, totals, terms);
    for (int64_t row = first; row < last; ++row)
      for (int64_t c = 0, i = row * channels * inner; c < channels; ++c, i += inner) {
        scalar_t lanes[N][kLanes] = {};
        for (int64_t j = 0; j < inner; j += kLanes) {
          const int64_t width = std::min(kLanes, inner - j);
          COMMODITY_IVDEP
          for (int64_t lane = 0; lane < width; ++lane) {
            const std::array<scalar_t, N> values = terms(i + j + lane, c);
            for (size_t n = 0; n < N; ++n) lanes[n][lane] += values[n];
          }
        }
        for (size_t n = 0; n < N; ++n) totals[n][c] += sum_lanes(lanes[n]);
      }
  }

  template <typename scalar_t, size_t N, typename Terms>
  void sum_rows(int64_t first, int64_t last, const std::array<double*, N>& totals, const Terms& terms) const {
    std::vector<scalar_t> sums(N * channels);
    scalar_t* row_sums = sums.data();
    for (int64_t row = first; row < last; ++row) {
      COMMODITY_IVDEP  // the sums do not alias the values
      for (int64_t c = 0; c < channels; ++c) {
        const std::array<scalar_t, N> values = terms(row * channels + c, c);
        for (size_t n = 0; n < N; ++n) row_sums[n * channels + c] += values[n];
      }
    }
    for (size_t n = 0; n < N; ++n)
      for (int64_t c = 0; c < channels; ++c) totals[n][c] += row_sums[n * channels + c];
  }
};

template <typename scalar_t>
COMMODITY_SIMD std::vector<Moments> part_moments(const ProductShape& p, const scalar_t* x, int64_t first,
                                                 int64_t last) {
  const double count = double((last - first) * p.inner);
  std::vector<double> sums(p.channels), remainders(p.channels), squares(p.channels);
  std::vector<scalar_t> mean(p.channels);
  p.sum<scalar_t, 1>(first, last, {sums.data()}, [=](int64_t i, int64_t) { return std::array{x[i]}; });
  for (int64_t c = 0; c < p.channels; ++c) mean[c] = scalar_t(sums[c] / count);
  const scalar_t* center = mean.data();
  p.sum<scalar_t, 2>(first, last, {remainders.data(), squares.data()}, [=](int64_t i, int64_t c) {
    const scalar_t delta = x[i] - center[c];
    return std::array{delta, delta * delta};
  });
  std::vector<Moments> statistics(p.channels);
  for (int64_t c = 0; c < p.channels; ++c) {
    const double remainder = remainders[c] / count;  // corrects the mean for its rounding to scalar_t
    statistics[c] = {count, mean[c] + remainder, squares[c] - count * remainder * remainder};
  }
  return statistics;
}

// The moments of every channel of x.
template <typename scalar_t>
std::vector<Moments> moments(const ProductShape& p, const scalar_t* x) {
  std::vector<std::vector<Moments>> parts(p.parts);
  p.for_each_part([&](int64_t part, int64_t first, int64_t last) { parts[part] = part_moments(p, x, first, last); });
  std::vector<Moments> total(p.channels);
  for (const auto& part : parts)
    for (int64_t c = 0; c < p.channels; ++c) total[c].merge(part[c]);
  return total;
}

// Batch normalization of a channel: (x - mean) scale + shift.
template <typename scalar_t>
struct ChannelAffine {
  std::vector<scalar_t> mean, scale, shift;

  ChannelAffine(const std::vector<Moments>& statistics, const scalar_t* gamma, const scalar_t* beta, double eps) {
    for (size_t c = 0; c < statistics.size(); ++c) {
      mean.push_back(scalar_t(statistics[c].mean));
      scale.push_back(scalar_t((gamma ? gamma[c] : 1) / std::sqrt(statistics[c].variance() + eps)));
      shift.push_back(beta ? beta[c] : scalar_t(0));
    }
  }
};

template <bool relu, typename scalar_t>
COMMODITY_SIMD void normalize_part(const ProductShape& p, const ChannelAffine<scalar_t>& affine, const scalar_t* x,
                                   scalar_t* y, int64_t first, int64_t last) {
  const scalar_t *mean = affine.mean.data(), *scale = affine.scale.data(), *shift = affine.shift.data();
  p.for_each_value(first, last, [=](int64_t i, int64_t c) {
    const scalar_t value = (x[i] - mean[c]) * scale[c] + shift[c];
    y[i] = relu && value < 0 ? scalar_t(0) : value;  // NaN propagates
  });
}

// Normalizes x into y, which may be x, optionally followed by ReLU.
template <bool relu, typename scalar_t>
void normalize(const ProductShape& p, const ChannelAffine<scalar_t>& affine, const scalar_t* x, scalar_t* y) {
  p.for_each_part([&](int64_t, int64_t first, int64_t last) { normalize_part<relu>(p, affine, x, y, first, last); });
}

template <typename scalar_t>
const scalar_t* optional_ptr(const std::optional<Tensor>& x) {
  return x ? x->const_data_ptr<scalar_t>() : nullptr;
}

inline std::optional<Tensor> optional_contiguous(const std::optional<Tensor>& x) {
  return x ? std::optional(contiguous(*x)) : std::nullopt;
}

// One value per channel each; `bias` has not been added to the product.
struct Parameters {
  std::optional<Tensor> bias, gamma, beta;
  double eps;
};

using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // normalized, mean, variance, product

template <bool relu, typename scalar_t>
void normalize_values(const ProductShape& p, const scalar_t* x, const Parameters& parameters, scalar_t* y,
                      scalar_t* mean, scalar_t* variance) {
  const std::vector<Moments> statistics = moments(p, x);
  const scalar_t* bias = optional_ptr<scalar_t>(parameters.bias);
  for (int64_t c = 0; c < p.channels; ++c) {
    mean[c] = scalar_t(statistics[c].mean + (bias ? bias[c] : 0));  // the bias changes the mean only
    variance[c] = scalar_t(statistics[c].variance());
  }
  normalize<relu>(p,
                  ChannelAffine(statistics, optional_ptr<scalar_t>(parameters.gamma),
                                optional_ptr<scalar_t>(parameters.beta), parameters.eps),
                  x, y);
}

// Checks the parameters, which are one value per channel.
inline void check_channels(const char* name, const std::optional<Tensor>& x, const Tensor& product) {
  STD_TORCH_CHECK(!x || (x->numel() == product.size(1) && x->scalar_type() == product.scalar_type()),
                  "batch normalization: ", name, " must be (C,) for a product (B, C, ...), in its dtype");
}

// Normalizes the product and returns it with its statistics: in place, unless it is saved and returned too.
template <bool relu>
Outputs normalize_product(const Tensor& product, const std::optional<Tensor>& bias, const std::optional<Tensor>& gamma,
                          const std::optional<Tensor>& beta, double eps, bool save_product) {
  check_channels("bias", bias, product), check_channels("gamma", gamma, product), check_channels("beta", beta, product);
  const ProductShape p(product);
  const Parameters parameters{optional_contiguous(bias), optional_contiguous(gamma), optional_contiguous(beta), eps};
  Tensor mean = new_empty(product, {p.channels}), variance = new_empty(product, {p.channels});
  Tensor y = save_product ? new_product(product) : product;
  dispatch("batch normalization", product, [&]<typename scalar_t>() {
    normalize_values<relu>(p, product.const_data_ptr<scalar_t>(), parameters, y.mutable_data_ptr<scalar_t>(),
                           mean.mutable_data_ptr<scalar_t>(), variance.mutable_data_ptr<scalar_t>());
  });
  return {y, mean, variance, save_product ? product : new_empty(product, {0})};
}

}  // namespace
}  // namespace commodity
