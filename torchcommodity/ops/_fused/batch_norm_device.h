// Batch normalization of a product that lies in the memory of a GPU. The product is (outer, channels, inner): (B, C, T)
// of a convolution, (rows, C, 1) of a linear layer. Sums are over parts of a fixed size, joined in their order.
#pragma once
#include "device.h"

namespace commodity {

constexpr int64_t kPart = 2048;  // values of a channel that are summed together

struct ChannelShape {
  int64_t outer, channels, inner, parts;

  explicit ChannelShape(const Tensor& x) : outer(x.size(0)), channels(x.size(1)), inner(1) {
    for (int64_t axis = 2; axis < x.dim(); ++axis) inner *= x.size(axis);
    parts = (count() + kPart - 1) / kPart;
  }
  int64_t size() const { return outer * channels * inner; }
  COMMODITY_INLINE int64_t count() const { return outer * inner; }
  COMMODITY_INLINE int64_t at(int64_t c, int64_t k) const {  // value k of channel c
    return inner == 1 ? k * channels + c : (k / inner * channels + c) * inner + k % inner;
  }
  COMMODITY_INLINE int64_t channel(int64_t at) const { return at / inner % channels; }
};

// term(at, c, sums) for a part of a channel: a warp to a part, or with neighboring channels an item to a part.
template <int kTerms, typename Term>
struct PartSums {
  static constexpr int kSums = kTerms;
  ChannelShape shape;
  Term term;
  double* to;

  COMMODITY_INLINE void add(int64_t row, int64_t k, double* sums) const {
    const int64_t c = row / shape.parts, place = row % shape.parts * kPart + k;
    if (place < shape.count()) term(shape.at(c, place), c, sums);
  }
  COMMODITY_INLINE void finish(int64_t row, const double* sums) const {
    for (int s = 0; s < kTerms; ++s) to[row * kTerms + s] = sums[s];
  }
  COMMODITY_INLINE void operator()(int64_t, int64_t c, int64_t part) const {
    double sums[kTerms] = {};
    for (int64_t k = 0; k < kPart; ++k) add(c * shape.parts + part, k, sums);
    finish(c * shape.parts + part, sums);
  }
};

// done(c, sums) for every channel, where term(at, c, sums) adds what every value brings.
template <int kTerms, typename Done>
struct JoinParts {
  ChannelShape shape;
  const double* parts;
  Done done;

  COMMODITY_INLINE void operator()(int64_t c) const {
    double sums[kTerms] = {};
    for (int64_t part = 0; part < shape.parts; ++part)
      for (int s = 0; s < kTerms; ++s) sums[s] += read(parts + (c * shape.parts + part) * kTerms + s);
    done(c, sums);
  }
};

template <int kTerms, typename Term, typename Done>
void over_channels(const Tensor& on, const ChannelShape& shape, const Term& term, const Done& done) {
  const Tensor parts = scratch(on, shape.channels * shape.parts * kTerms);
  const PartSums<kTerms, Term> sums{shape, term, data_ptr<double>(parts)};
  if (shape.inner == 1)
    launch_grid(on, Grid(1, shape.channels, shape.parts), sums);
  else
    launch_rows(on, shape.channels * shape.parts, kPart, sums);
  launch(on, shape.channels, JoinParts<kTerms, Done>{shape, data_ptr<double>(parts), done});
}

// What is known of a channel: mean, variance, and what normalization does to it: (x - mean) scale + shift.
struct Channel {
  double mean, variance, scale, shift;
  COMMODITY_INLINE bool valid() const { return mean - mean == 0 && variance - variance == 0; }
};

template <typename scalar_t>
struct MomentTerms {
  ChannelShape shape;
  const scalar_t* x;

  // against the first value of the channel, if there is one: a level costs no digits
  COMMODITY_INLINE double anchor(int64_t c) const {
    const double first = shape.count() ? read(x + shape.at(c, 0)) : 0;
    return first - first == 0 ? first : 0;
  }
  COMMODITY_INLINE void operator()(int64_t at, int64_t c, double* sums) const {
    const double d = read(x + at) - anchor(c);
    sums[0] += d, sums[1] += d * d;
  }
};

template <typename scalar_t>
struct MomentsDone {
  MomentTerms<scalar_t> terms;
  const scalar_t *gamma, *beta;
  double eps;
  Channel* to;

  COMMODITY_INLINE void operator()(int64_t c, const double* sums) const {
    const double count = static_cast<double>(terms.shape.count()), offset = sums[0] / count;
    const double mean = terms.anchor(c) + offset, spread = sums[1] / count - offset * offset;
    const double variance = spread < 0 ? 0 : spread;
    to[c] = {mean, variance, (gamma ? read(gamma + c) : 1) / std::sqrt(variance + eps), beta ? read(beta + c) : 0};
  }
};

template <typename scalar_t>
const scalar_t* values(const std::optional<Tensor>& x) {
  return x ? x->const_data_ptr<scalar_t>() : nullptr;
}

inline std::optional<Tensor> packed(const std::optional<Tensor>& x) {
  return x ? std::optional(contiguous(*x)) : std::nullopt;
}

// Of every channel of `product`, as an array of Channel.
template <typename scalar_t>
Tensor channels_of(const Tensor& product, const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta,
                   double eps) {
  const ChannelShape shape(product);
  const Tensor found = scratch(product, 4 * shape.channels);
  const MomentTerms<scalar_t> terms{shape, product.const_data_ptr<scalar_t>()};
  over_channels<2>(
      product, shape, terms,
      MomentsDone<scalar_t>{terms, values<scalar_t>(gamma), values<scalar_t>(beta), eps, data_ptr<Channel>(found)});
  return found;
}

template <typename scalar_t, bool relu>
struct Normalize {
  ChannelShape shape;
  const Channel* channels;
  scalar_t* x;

  COMMODITY_INLINE void operator()(int64_t at) const {
    const Channel& channel = channels[shape.channel(at)];
    const double y = (x[at] - channel.mean) * channel.scale + channel.shift;
    x[at] = static_cast<scalar_t>(relu && y < 0 ? 0 : y);  // NaN stays
  }
};

template <typename scalar_t>
struct WriteMoments {
  const Channel* channels;
  const scalar_t* bias;  // it moves the mean, and with it no value
  scalar_t *mean, *variance;

  COMMODITY_INLINE void operator()(int64_t c) const {
    mean[c] = static_cast<scalar_t>(channels[c].mean + (bias ? read(bias + c) : 0));
    variance[c] = static_cast<scalar_t>(channels[c].variance);
  }
};

// The product becomes the output, in its place; with it mean and variance.
template <bool relu>
std::tuple<Tensor, Tensor, Tensor> normalized(Tensor product, const std::optional<Tensor>& bias_,
                                              const std::optional<Tensor>& gamma_, const std::optional<Tensor>& beta_,
                                              double eps) {
  const ChannelShape shape(product);
  const std::optional<Tensor> bias = packed(bias_), gamma = packed(gamma_), beta = packed(beta_);
  Tensor mean = new_empty(product, {shape.channels}), variance = new_empty(product, {shape.channels});
  dispatch("batch normalization", product, [&]<typename scalar_t>() {
    const Tensor found = channels_of<scalar_t>(product, gamma, beta, eps);
    const Channel* channels = data_ptr<Channel>(found);
    launch(product, shape.size(), Normalize<scalar_t, relu>{shape, channels, product.mutable_data_ptr<scalar_t>()});
    launch(product, shape.channels,
           WriteMoments<scalar_t>{channels, values<scalar_t>(bias), mean.mutable_data_ptr<scalar_t>(),
                                  variance.mutable_data_ptr<scalar_t>()});
  });
  return {product, mean, variance};
}

}  // namespace commodity
