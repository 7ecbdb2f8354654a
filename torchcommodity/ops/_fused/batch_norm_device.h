// Batch normalization of a product (outer, channels, inner): (B, C, T) of a convolution, or (rows, C, 1) of a linear
// layer or of a convolution in channels_last format, for CUDA; in place, unless the product is saved.
//
// A channel is summed in parts of kPartSize values: one warp per part if the values of a channel are adjacent, one
// thread per part if channels are adjacent (inner = 1). The parts are merged in order, so that results do not depend on
// the launch.
#pragma once
#include <utility>

#include "device.h"
#include "memory_format.h"

namespace commodity {

constexpr int64_t kPartSize = 2048;  // values of a channel per part

struct ChannelShape {
  int64_t outer, channels, inner, parts;

  explicit ChannelShape(const Tensor& x) : outer(x.size(0)), channels(x.size(1)), inner(1) {
    for (int64_t axis = 2; axis < x.dim(); ++axis) inner *= x.size(axis);
    if (is_channels_last(x)) outer *= std::exchange(inner, 1);
    parts = (count() + kPartSize - 1) / kPartSize;
  }
  int64_t size() const { return outer * channels * inner; }
  COMMODITY_INLINE int64_t count() const { return outer * inner; }
  COMMODITY_INLINE int64_t index(int64_t c, int64_t k) const {  // value k of channel c
    return inner == 1 ? k * channels + c : (k / inner * channels + c) * inner + k % inner;
  }
  COMMODITY_INLINE int64_t channel(int64_t index) const { return index / inner % channels; }
};

// Sums term(index, c, sums) over a part of a channel, by a warp (add, finish) or by a thread (operator()).
template <int kTerms, typename Term>
struct PartSums {
  static constexpr int kSums = kTerms;
  ChannelShape shape;
  Term term;
  double* to;

  COMMODITY_INLINE void add(int64_t row, int64_t k, double* sums) const {
    const int64_t c = row / shape.parts, position = row % shape.parts * kPartSize + k;
    if (position < shape.count()) term(shape.index(c, position), c, sums);
  }
  COMMODITY_INLINE void finish(int64_t row, const double* sums) const {
    for (int s = 0; s < kTerms; ++s) to[row * kTerms + s] = sums[s];
  }
  COMMODITY_INLINE void operator()(int64_t, int64_t c, int64_t part) const {
    double sums[kTerms] = {};
    for (int64_t k = 0; k < kPartSize; ++k) add(c * shape.parts + part, k, sums);
    finish(c * shape.parts + part, sums);
  }
};

// Adds up the parts of a channel and calls finish(c, sums).
template <int kTerms, typename Finish>
struct MergeParts {
  ChannelShape shape;
  const double* parts;
  Finish finish;

  COMMODITY_INLINE void operator()(int64_t c) const {
    double sums[kTerms] = {};
    for (int64_t part = 0; part < shape.parts; ++part)
      for (int s = 0; s < kTerms; ++s) sums[s] += read(parts + (c * shape.parts + part) * kTerms + s);
    finish(c, sums);
  }
};

// Calls finish(c, sums) for every channel, with the sums of term(index, c, sums) over its values.
template <int kTerms, typename Term, typename Finish>
void reduce_channels(const Tensor& like, const ChannelShape& shape, const Term& term, const Finish& finish) {
  const Tensor parts = scratch(like, shape.channels * shape.parts * kTerms);
  const PartSums<kTerms, Term> sums{shape, term, data_ptr<double>(parts)};
  if (shape.inner == 1)
    launch_grid(like, Grid(1, shape.channels, shape.parts), sums);
  else
    launch_rows(like, shape.channels * shape.parts, kPartSize, sums);
  launch(like, shape.channels, MergeParts<kTerms, Finish>{shape, data_ptr<double>(parts), finish});
}

// Statistics of a channel, and its normalization (x - mean) scale + shift.
struct Channel {
  double mean, variance, scale, shift;
  COMMODITY_INLINE bool valid() const { return mean - mean == 0 && variance - variance == 0; }
};

template <typename scalar_t>
struct MomentTerms {
  ChannelShape shape;
  const scalar_t* x;

  // Deviations are from the first value of the channel, which avoids cancellation.
  COMMODITY_INLINE double anchor(int64_t c) const {
    const double first = shape.count() ? read(x + shape.index(c, 0)) : 0;
    return first - first == 0 ? first : 0;
  }
  COMMODITY_INLINE void operator()(int64_t index, int64_t c, double* sums) const {
    const double d = read(x + index) - anchor(c);
    sums[0] += d, sums[1] += d * d;
  }
};

template <typename scalar_t>
struct FinishMoments {
  MomentTerms<scalar_t> terms;
  const scalar_t *gamma, *beta;
  double eps;
  Channel* to;

  COMMODITY_INLINE void operator()(int64_t c, const double* sums) const {
    const double count = static_cast<double>(terms.shape.count()), mean_offset = sums[0] / count;
    const double mean = terms.anchor(c) + mean_offset, raw_variance = sums[1] / count - mean_offset * mean_offset;
    const double variance = raw_variance < 0 ? 0 : raw_variance;
    to[c] = {mean, variance, (gamma ? read(gamma + c) : 1) / std::sqrt(variance + eps), beta ? read(beta + c) : 0};
  }
};

template <typename scalar_t>
const scalar_t* optional_ptr(const std::optional<Tensor>& x) {
  return x ? x->const_data_ptr<scalar_t>() : nullptr;
}

inline std::optional<Tensor> optional_contiguous(const std::optional<Tensor>& x) {
  return x ? std::optional(contiguous(*x)) : std::nullopt;
}

// The Channel of every channel of `product`.
template <typename scalar_t>
Tensor compute_channels(const Tensor& product, const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta,
                        double eps) {
  const ChannelShape shape(product);
  const Tensor memory = scratch(product, 4 * shape.channels);
  const MomentTerms<scalar_t> terms{shape, product.const_data_ptr<scalar_t>()};
  reduce_channels<2>(product, shape, terms,
                     FinishMoments<scalar_t>{terms, optional_ptr<scalar_t>(gamma), optional_ptr<scalar_t>(beta), eps,
                                             data_ptr<Channel>(memory)});
  return memory;
}

template <typename scalar_t, bool relu>
struct NormalizeValue {
  ChannelShape shape;
  const Channel* channels;
  const scalar_t* x;
  scalar_t* y;

  COMMODITY_INLINE void operator()(int64_t index) const {
    const Channel& channel = channels[shape.channel(index)];
    const double value = (x[index] - channel.mean) * channel.scale + channel.shift;
    y[index] = static_cast<scalar_t>(relu && value < 0 ? 0 : value);  // NaN propagates
  }
};

template <typename scalar_t>
struct WriteMoments {
  const Channel* channels;
  const scalar_t* bias;  // changes the mean only
  scalar_t *mean, *variance;

  COMMODITY_INLINE void operator()(int64_t c) const {
    mean[c] = static_cast<scalar_t>(channels[c].mean + (bias ? read(bias + c) : 0));
    variance[c] = static_cast<scalar_t>(channels[c].variance);
  }
};

using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // normalized, mean, variance, product

// Checks the parameters, which are one value per channel.
inline void check_channels(const char* name, const std::optional<Tensor>& x, const Tensor& product) {
  STD_TORCH_CHECK(!x || (x->numel() == product.size(1) && x->scalar_type() == product.scalar_type()),
                  "batch normalization: ", name, " must be (C,) for a product (B, C, ...), in its dtype");
}

// Normalizes the product and returns it with its statistics: in place, unless it is saved and returned too.
template <bool relu>
Outputs normalize_product(const Tensor& product, const std::optional<Tensor>& bias_,
                          const std::optional<Tensor>& gamma_, const std::optional<Tensor>& beta_, double eps,
                          bool save_product) {
  check_channels("bias", bias_, product), check_channels("gamma", gamma_, product);
  check_channels("beta", beta_, product);
  const ChannelShape shape(product);
  const std::optional<Tensor> bias = optional_contiguous(bias_), gamma = optional_contiguous(gamma_),
                              beta = optional_contiguous(beta_);
  Tensor mean = new_empty(product, {shape.channels}), variance = new_empty(product, {shape.channels});
  Tensor y = save_product ? new_product(product) : product;
  dispatch("batch normalization", product, [&]<typename scalar_t>() {
    const Tensor memory = compute_channels<scalar_t>(product, gamma, beta, eps);
    const Channel* channels = data_ptr<Channel>(memory);
    launch(product, shape.size(),
           NormalizeValue<scalar_t, relu>{shape, channels, product.const_data_ptr<scalar_t>(),
                                          y.mutable_data_ptr<scalar_t>()});
    launch(product, shape.channels,
           WriteMoments<scalar_t>{channels, optional_ptr<scalar_t>(bias), mean.mutable_data_ptr<scalar_t>(),
                                  variance.mutable_data_ptr<scalar_t>()});
  });
  return {y, mean, variance, save_product ? product : new_empty(product, {0})};
}

}  // namespace commodity
