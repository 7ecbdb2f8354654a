// Gradients of the GARCH and EGARCH variances for CUDA: (..., T + 5, N), see variance.h.
//
// An operator supplies a functor with three members: operator() is the affine map of one row of the adjoint recursion
// in reverse time, return_gradient() the gradient of one return, and add_parameters() the terms that one row adds to
// the gradients of omega, alpha, beta and gamma. The adjoint runs through the chunked recurrence of device.h; the
// parameter gradients are summed by chunks of time and then over the chunks, in a fixed order.
#pragma once
#include "device_scan.h"
#include "variance.h"

namespace commodity {

constexpr int kTimeSums = kParameters - 1;  // all but the gradient of initial are sums over time

template <typename scalar_t>
struct VarianceRows {
  const scalar_t *grad, *r, *h, *alpha, *beta, *gamma;
  scalar_t* gradients;
  double* adjoint;
  int64_t steps, assets, return_rows;  // return_rows: steps, or 0 if the gradient of the returns is not needed

  COMMODITY_INLINE int64_t index(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  COMMODITY_INLINE scalar_t& gradient(int64_t panel, int64_t row, int64_t n) const {
    return gradients[(panel * (return_rows + kParameters) + row) * assets + n];
  }
};

template <typename Model>
struct ChunkSums {
  Model model;
  Chunks chunks;
  double* partial;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t chunk) const {
    double sums[kTimeSums] = {};
    for (int64_t t = chunk * kChunk; t < chunks.end(chunk); ++t) model.add_parameters(panel, t, n, sums);
    for (int k = 0; k < kTimeSums; ++k) partial[chunks.at(panel, chunk, n) * kTimeSums + k] = sums[k];
  }
};

template <typename Model>
struct TotalSums {
  Model model;
  Chunks chunks;
  const double* partial;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double sums[kTimeSums] = {};
    for (int64_t chunk = 0; chunk < chunks.chunks; ++chunk)
      for (int k = 0; k < kTimeSums; ++k) sums[k] += read(partial + chunks.at(panel, chunk, n) * kTimeSums + k);
    for (int k = 0; k < kTimeSums; ++k) model.rows.gradient(panel, model.rows.return_rows + k, n) = sums[k];
    if (model.rows.steps == 0) model.rows.gradient(panel, kTimeSums, n) = 0;
  }
};

// The adjoint recursion in the terms of `run_recurrence`: row numbers count back from the last row.
template <typename Model>
struct ReverseTime {
  Model model;

  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t back, int64_t n) const {
    return model(panel, model.rows.steps - 1 - back, n);
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<>& adjoint,
                                   const State<>& next) const {
    const int64_t t = model.rows.steps - 1 - back;
    model.rows.adjoint[model.rows.index(panel, t, n)] = adjoint.y[0];
    if (model.rows.return_rows) model.rows.gradient(panel, t, n) = model.return_gradient(panel, t, n, adjoint.y[0]);
    if (t == 0) model.rows.gradient(panel, model.rows.return_rows + kTimeSums, n) = next.y[0];
  }
};

template <template <typename> class Model>
Tensor variance_backward(const char* operation, const Tensor& grad_, const Tensor& returns_, const Tensor& alpha,
                         const Tensor& beta, const Tensor& gamma, const Tensor& h_, bool needs_returns) {
  check_same(operation, grad_, returns_);
  check_same(operation, h_, returns_);
  const Tensor grad = contiguous(grad_), returns = contiguous(returns_), h = contiguous(h_);
  const auto parameters = check_parameters(operation, returns, {alpha, beta, gamma});
  const Panels panels(returns);
  Tensor gradients = new_gradients(returns, needs_returns);
  const int64_t batch = Panels(gradients).batch;  // the parameters have gradients even where T = 0
  const Chunks chunks(panels.steps, panels.assets);
  const Tensor adjoint = scratch(gradients, returns.numel());
  const Tensor partial = scratch(gradients, kTimeSums * batch * chunks.chunks * panels.assets);
  dispatch(operation, returns, [&]<typename scalar_t>() {
    const auto data = [](const Tensor& x) { return x.const_data_ptr<scalar_t>(); };
    const auto [alpha_data, beta_data, gamma_data] = parameter_pointers<scalar_t>(parameters);
    const Model<scalar_t> model{{data(grad), data(returns), data(h), alpha_data, beta_data, gamma_data,
                                 gradients.mutable_data_ptr<scalar_t>(), data_ptr<double>(adjoint), panels.steps,
                                 panels.assets, needs_returns ? panels.steps : 0}};
    const ReverseTime<Model<scalar_t>> reverse{model};
    run_recurrence(gradients, panels.batch, panels.steps, panels.assets, reverse, reverse, reverse);
    launch_grid(gradients, Grid(batch, panels.assets, chunks.chunks),
                ChunkSums<Model<scalar_t>>{model, chunks, data_ptr<double>(partial)});
    launch_grid(gradients, Grid(batch, panels.assets, 1),
                TotalSums<Model<scalar_t>>{model, chunks, data_ptr<double>(partial)});
  });
  return gradients;
}

}  // namespace commodity
