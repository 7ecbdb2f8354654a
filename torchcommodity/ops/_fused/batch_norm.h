// Batch normalization of a product that lies in memory: its moments, and the normalized values in
// its place. The product is (outer, channels, inner): (B, C, T) of a convolution, (rows, C, 1) of a linear layer.
//
// Work is cut along the outer axis into parts whose size does not depend on the number of threads, and what the parts
// found is joined in their order, in double: neither do the bits.
#pragma once
#include <array>

#include "native.h"

namespace commodity {
namespace {  // each kernel file compiles its own

constexpr int64_t kLanes = 64;      // sums run in so many lanes: whole vector registers, and no chain of additions
constexpr int64_t kPart = 1 << 13;  // values of a part, about: they stay in the cache from one look to the next

// The count of some values, their mean, and the sum of their squared distances from it.
struct Moments {
  double count = 0, mean = 0, squares = 0;
  // Chan, Golub, LeVeque (1979): no cancellation, whatever the level.
  void join(const Moments& part) {
    const double total = count + part.count, apart = part.mean - mean;
    mean += apart * part.count / total;
    squares += part.squares + apart * apart * count * part.count / total;
    count = total;
  }
  double variance() const { return squares / count; }
  bool valid() const { return count > 0 && std::isfinite(mean) && std::isfinite(squares); }
};

template <typename scalar_t>
inline scalar_t folded(scalar_t (&lanes)[kLanes]) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

struct Product {
  int64_t outer, channels, inner, rows, parts;  // rows: of the outer axis, in a part

  explicit Product(const Tensor& x) : outer(x.size(0)), channels(x.size(1)), inner(1) {
    for (int64_t axis = 2; axis < x.dim(); ++axis) inner *= x.size(axis);
    rows = std::max<int64_t>(1, kPart / std::max<int64_t>(1, channels * inner));
    parts = (outer + rows - 1) / rows;
  }
  int64_t size() const { return outer * channels * inner; }

  template <typename Body>
  void for_each_part(const Body& body) const {
    const int64_t grain = std::max<int64_t>(1, kGrain / (rows * channels * inner));
    torch::stable::parallel_for(0, parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) body(part, part * rows, std::min(outer, (part + 1) * rows));
    });
  }

  // each(at, c) for every value of rows [first, last): `at` is its place, `c` its channel
  template <typename Each>
  void map(int64_t first, int64_t last, const Each& each) const {
    for (int64_t row = first; row < last; ++row) {
      if (inner == 1) {
#pragma GCC ivdep  // places differ
        for (int64_t c = 0; c < channels; ++c) each(row * channels + c, c);
        continue;
      }
      for (int64_t c = 0, at = row * channels * inner; c < channels; ++c, at += inner) {
#pragma GCC ivdep
        for (int64_t i = 0; i < inner; ++i) each(at + i, c);
      }
    }
  }

  // totals[n][c] += the sum of the n-th of terms(at, c) over rows [first, last)
  template <typename scalar_t, size_t N, typename Terms>
  void sum(int64_t first, int64_t last, const std::array<double*, N>& totals, const Terms& terms) const {
    if (inner == 1) return sum_rows<scalar_t, N>(first, last, totals, terms);
    for (int64_t row = first; row < last; ++row)
      for (int64_t c = 0, at = row * channels * inner; c < channels; ++c, at += inner) {
        scalar_t lanes[N][kLanes] = {};
        for (int64_t i = 0; i < inner; i += kLanes) {
          const int64_t width = std::min(kLanes, inner - i);
#pragma GCC ivdep
          for (int64_t lane = 0; lane < width; ++lane) {
            const std::array<scalar_t, N> found = terms(at + i + lane, c);
            for (size_t n = 0; n < N; ++n) lanes[n][lane] += found[n];
          }
        }
        for (size_t n = 0; n < N; ++n) totals[n][c] += folded(lanes[n]);
      }
  }

  template <typename scalar_t, size_t N, typename Terms>
  void sum_rows(int64_t first, int64_t last, const std::array<double*, N>& totals, const Terms& terms) const {
    std::vector<scalar_t> sums(N * channels);
    scalar_t* running = sums.data();
    for (int64_t row = first; row < last; ++row) {
#pragma GCC ivdep  // the sums are nobody else's
      for (int64_t c = 0; c < channels; ++c) {
        const std::array<scalar_t, N> found = terms(row * channels + c, c);
        for (size_t n = 0; n < N; ++n) running[n * channels + c] += found[n];
      }
    }
    for (size_t n = 0; n < N; ++n)
      for (int64_t c = 0; c < channels; ++c) totals[n][c] += running[n * channels + c];
  }
};

template <typename scalar_t>
COMMODITY_SIMD std::vector<Moments> part_moments(const Product& p, const scalar_t* x, int64_t first, int64_t last) {
  const double count = double((last - first) * p.inner);
  std::vector<double> sums(p.channels), rests(p.channels), squares(p.channels);
  std::vector<scalar_t> mean(p.channels);
  p.sum<scalar_t, 1>(first, last, {sums.data()}, [=](int64_t at, int64_t) { return std::array{x[at]}; });
  for (int64_t c = 0; c < p.channels; ++c) mean[c] = scalar_t(sums[c] / count);
  const scalar_t* about = mean.data();
  p.sum<scalar_t, 2>(first, last, {rests.data(), squares.data()}, [=](int64_t at, int64_t c) {
    const scalar_t apart = x[at] - about[c];
    return std::array{apart, apart * apart};
  });
  std::vector<Moments> found(p.channels);
  for (int64_t c = 0; c < p.channels; ++c) {
    const double rest = rests[c] / count;  // what rounding the mean to scalar_t, and the lanes, have lost
    found[c] = {count, mean[c] + rest, squares[c] - count * rest * rest};
  }
  return found;
}

// Of every channel, over all of x.
template <typename scalar_t>
std::vector<Moments> moments(const Product& p, const scalar_t* x) {
  std::vector<std::vector<Moments>> parts(p.parts);
  p.for_each_part([&](int64_t part, int64_t first, int64_t last) { parts[part] = part_moments(p, x, first, last); });
  std::vector<Moments> total(p.channels);
  for (const auto& part : parts)
    for (int64_t c = 0; c < p.channels; ++c) total[c].join(part[c]);
  return total;
}

// What batch normalization does to a channel: (x - mean) scale + shift.
template <typename scalar_t>
struct Affine {
  std::vector<scalar_t> mean, scale, shift;

  Affine(const std::vector<Moments>& found, const scalar_t* gamma, const scalar_t* beta, double eps) {
    for (size_t c = 0; c < found.size(); ++c) {
      mean.push_back(scalar_t(found[c].mean));
      scale.push_back(scalar_t((gamma ? gamma[c] : 1) / std::sqrt(found[c].variance() + eps)));
      shift.push_back(beta ? beta[c] : scalar_t(0));
    }
  }
};

template <bool relu, typename scalar_t>
COMMODITY_SIMD void normalize_part(const Product& p, const Affine<scalar_t>& affine, scalar_t* x, int64_t first,
                                   int64_t last) {
  const scalar_t *mean = affine.mean.data(), *scale = affine.scale.data(), *shift = affine.shift.data();
  p.map(first, last, [=](int64_t at, int64_t c) {
    const scalar_t y = (x[at] - mean[c]) * scale[c] + shift[c];
    x[at] = relu && y < 0 ? scalar_t(0) : y;  // NaN stays
  });
}

// x becomes its normalized self, after ReLU if asked for.
template <bool relu, typename scalar_t>
void normalize(const Product& p, const Affine<scalar_t>& affine, scalar_t* x) {
  p.for_each_part([&](int64_t, int64_t first, int64_t last) { normalize_part<relu>(p, affine, x, first, last); });
}

template <typename scalar_t>
const scalar_t* values(const std::optional<Tensor>& x) {
  return x ? x->const_data_ptr<scalar_t>() : nullptr;
}

inline std::optional<Tensor> packed(const std::optional<Tensor>& x) {
  return x ? std::optional(contiguous(*x)) : std::nullopt;
}

// Of one channel each; `bias` is what the product still lacks.
struct Parameters {
  std::optional<Tensor> bias, gamma, beta;
  double eps;
};

using Outputs = std::tuple<Tensor, Tensor, Tensor>;  // normalized, mean, variance

template <bool relu, typename scalar_t>
void normalize_product(const Product& p, scalar_t* x, const Parameters& given, scalar_t* mean, scalar_t* variance) {
  const std::vector<Moments> found = moments(p, x);
  const scalar_t* bias = values<scalar_t>(given.bias);
  for (int64_t c = 0; c < p.channels; ++c) {
    mean[c] = scalar_t(found[c].mean + (bias ? bias[c] : 0));  // the bias moves the mean, and with it no value
    variance[c] = scalar_t(found[c].variance());
  }
  normalize<relu>(p, Affine(found, values<scalar_t>(given.gamma), values<scalar_t>(given.beta), given.eps), x);
}

// The product becomes the output, in its place.
template <bool relu>
Outputs normalized(Tensor product, const std::optional<Tensor>& bias, const std::optional<Tensor>& gamma,
                   const std::optional<Tensor>& beta, double eps) {
  const Product p(product);
  const Parameters given{packed(bias), packed(gamma), packed(beta), eps};
  Tensor mean = new_empty(product, {p.channels}), variance = new_empty(product, {p.channels});
  THO_DISPATCH_V2(product.scalar_type(), "batch normalization", AT_WRAP([&] {
                    normalize_product<relu>(p, product.mutable_data_ptr<scalar_t>(), given,
                                            mean.mutable_data_ptr<scalar_t>(), variance.mutable_data_ptr<scalar_t>());
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {product, mean, variance};
}

}  // namespace
}  // namespace commodity
