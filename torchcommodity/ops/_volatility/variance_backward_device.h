// What a recursive variance owes to its parameters, for CUDA: (..., T + 5, N). A body gives the recurrence, backwards
// in time, of what the next row owes, and what a row adds to the sums by omega, alpha, beta and gamma.
#pragma once
#include "device.h"
#include "variance.h"

namespace commodity {

constexpr int kParts = kSums - 1;  // all but the last are sums over time

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
Tensor variance_backward(const char* operation, const Tensor& grad_, const Tensor& returns_, const Tensor& alpha,
                         const Tensor& beta, const Tensor& gamma, const Tensor& h_) {
  check_same(operation, grad_, returns_);
  check_same(operation, h_, returns_);
  const Tensor grad = contiguous(grad_), returns = contiguous(returns_), h = contiguous(h_);
  const auto parameters = of_columns(operation, returns, {alpha, beta, gamma});
  const Panels panels(returns);
  Tensor y = with_sums(returns);
  const int64_t batch = Panels(y).batch;  // there are sums where no row is
  const Chunks chunks(panels.steps, panels.assets);
  const Tensor owed = scratch(y, returns.numel());
  const Tensor parts = scratch(y, kParts * batch * chunks.chunks * panels.assets);
  dispatch(operation, returns, [&]<typename scalar_t>() {
    const auto in = [](const Tensor& x) { return x.const_data_ptr<scalar_t>(); };
    const auto [of_alpha, of_beta, of_gamma] = data_of_columns<scalar_t>(parameters);
    const Body<scalar_t> body{{in(grad), in(returns), in(h), of_alpha, of_beta, of_gamma,
                               y.mutable_data_ptr<scalar_t>(), data_ptr<double>(owed), panels.steps, panels.assets}};
    const Backwards<Body<scalar_t>> back{body};
    run_recurrence(y, panels.batch, panels.steps, panels.assets, back, back, back);
    launch_grid(y, Grid(batch, panels.assets, chunks.chunks),
                ChunkSums<Body<scalar_t>>{body, chunks, data_ptr<double>(parts)});
    launch_grid(y, Grid(batch, panels.assets, 1), JoinSums<Body<scalar_t>>{body, chunks, data_ptr<double>(parts)});
  });
  return y;
}

}  // namespace commodity
