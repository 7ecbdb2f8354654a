// What a recursive variance owes to its parameters, for CUDA: (..., T + 5, N). A body gives the recurrence, backwards
// in time, of what the next row owes, and what a row adds to the sums by omega, alpha, beta and gamma.
#pragma once
#include "device.h"

namespace commodity {

constexpr int kSums = 5, kParts = 4;  // by omega, alpha, beta, gamma, initial; all but the last are sums over time

// The pointers that every such body has.
template <typename scalar_t>
struct VarianceRows {
  const scalar_t *grad, *r, *h, *alpha, *beta, *gamma;
  scalar_t* to;
  double* owed;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  COMMODITY_INLINE scalar_t& target(int64_t panel, int64_t t, int64_t n) const {
    return to[(panel * (steps + kSums) + t) * assets + n];
  }
};

template <typename Body>
struct ChunkSums {
  Body of;
  Chunks chunks;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t chunk) const {
    double sums[kParts] = {};
    for (int64_t t = chunk * kChunk; t < chunks.end(chunk); ++t) of.add(panel, t, n, sums);
    for (int k = 0; k < kParts; ++k) to[chunks.at(panel, chunk, n) * kParts + k] = sums[k];
  }
};

template <typename Body>
struct JoinSums {
  Body of;
  Chunks chunks;
  const double* parts;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double sums[kParts] = {};
    for (int64_t chunk = 0; chunk < chunks.chunks; ++chunk)
      for (int k = 0; k < kParts; ++k) sums[k] += read(parts + chunks.at(panel, chunk, n) * kParts + k);
    for (int k = 0; k < kParts; ++k) of.rows.target(panel, of.rows.steps + k, n) = sums[k];
    if (of.rows.steps == 0) of.rows.target(panel, kParts, n) = 0;
  }
};

// Rows are numbered from the last one.
template <typename Body>
struct Backwards {
  Body of;

  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t back, int64_t n) const {
    return of(panel, of.rows.steps - 1 - back, n);
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<>& later,
                                   const State<>& now) const {
    const int64_t t = of.rows.steps - 1 - back;
    of.rows.owed[of.rows.at(panel, t, n)] = later.y[0];
    of.rows.target(panel, t, n) = of.by_return(panel, t, n, later.y[0]);
    if (t == 0) of.rows.target(panel, of.rows.steps + kParts, n) = now.y[0];
  }
};

template <template <typename> class Body>
Tensor variance_backward(const char* operation, const Tensor& grad_, const Tensor& returns_, const Tensor& alpha_,
                         const Tensor& beta_, const Tensor& gamma_, const Tensor& h_) {
  check_same(operation, grad_, returns_);
  check_same(operation, h_, returns_);
  const Tensor grad = contiguous(grad_), returns = contiguous(returns_), h = contiguous(h_);
  const Tensor alpha = contiguous(alpha_), beta = contiguous(beta_), gamma = contiguous(gamma_);
  const Panels panels(returns);
  for (const Tensor& parameter : {alpha, beta, gamma})
    STD_TORCH_CHECK(
        parameter.numel() * panels.steps == returns.numel() && parameter.scalar_type() == returns.scalar_type(),
        operation, ": parameters must be (..., N) and have the dtype of returns (..., T, N)");
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape[shape.size() - 2] += kSums;
  Tensor y = new_empty(returns, shape);
  const int64_t batch = y.numel() ? y.numel() / (y.size(-2) * y.size(-1)) : 0;  // there are sums where no row is
  const Chunks chunks(panels.steps, panels.assets);
  const Tensor owed = scratch(y, returns.numel());
  const Tensor parts = scratch(y, kParts * batch * chunks.chunks * panels.assets);
  dispatch(operation, returns, [&]<typename scalar_t>() {
    const auto in = [](const Tensor& x) { return x.const_data_ptr<scalar_t>(); };
    const Body<scalar_t> body{{in(grad), in(returns), in(h), in(alpha), in(beta), in(gamma),
                               y.mutable_data_ptr<scalar_t>(), data_of<double>(owed), panels.steps, panels.assets}};
    const Backwards<Body<scalar_t>> back{body};
    recur(y, panels.batch, panels.steps, panels.assets, back, back, back);
    launch_grid(y, Grid(batch, panels.assets, chunks.chunks),
                ChunkSums<Body<scalar_t>>{body, chunks, data_of<double>(parts)});
    launch_grid(y, Grid(batch, panels.assets, 1), JoinSums<Body<scalar_t>>{body, chunks, data_of<double>(parts)});
  });
  return y;
}

}  // namespace commodity
