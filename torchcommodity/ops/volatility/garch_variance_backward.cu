// What the parameters and the returns (..., T, N) owe to the gradient of garch_variance: (..., T + 5, N). Backwards in
// time, L_t is what h_{t+1} owes, with all that follows from it: a linear recurrence.
#include "device.h"

using namespace commodity;

namespace {

constexpr int kSums = 5, kParts = 4;  // by omega, alpha, beta, gamma, initial; all but the last are sums over time

template <typename scalar_t>
struct Adjoint {
  const scalar_t *grad, *r, *h, *alpha, *beta, *gamma;
  scalar_t* to;
  double* owed;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  COMMODITY_INLINE scalar_t& target(int64_t panel, int64_t t, int64_t n) const {
    return to[(panel * (steps + kSums) + t) * assets + n];
  }
  COMMODITY_INLINE double weight(int64_t panel, int64_t n, double x) const {
    const double rising = read(alpha + panel * assets + n), falling = rising + read(gamma + panel * assets + n);
    return x != x ? (falling + rising) / 2 : x < 0 ? falling : rising;
  }
  // Rows are numbered from the last one.
  COMMODITY_INLINE Affine<> operator()(int64_t panel, int64_t back, int64_t n) const {
    const int64_t row = at(panel, steps - 1 - back, n);
    const double x = read(r + row), variance = read(h + row);
    const double more = x == x ? 0 : weight(panel, n, x);
    return {read(beta + panel * assets + n) + more, {variance == variance ? read(grad + row) : 0}};
  }
  COMMODITY_INLINE State<> operator()(int64_t, int64_t) const { return {}; }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t back, int64_t n, const State<>& later,
                                   const State<>& now) const {
    const int64_t t = steps - 1 - back;
    const double x = read(r + at(panel, t, n));
    owed[at(panel, t, n)] = later.y[0];
    target(panel, t, n) = static_cast<scalar_t>(x == x ? 2 * later.y[0] * weight(panel, n, x) * x : 0);
    if (t == 0) target(panel, steps + kParts, n) = static_cast<scalar_t>(now.y[0]);
  }
};

template <typename scalar_t>
struct ChunkSums {
  Adjoint<scalar_t> of;
  Chunks chunks;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t chunk) const {
    double sums[kParts] = {};
    for (int64_t t = chunk * kChunk; t < chunks.end(chunk); ++t) {
      const int64_t at = of.at(panel, t, n);
      const double x = read(of.r + at), variance = read(of.h + at), owed = of.owed[at];
      const double now = variance == variance ? variance : 0, square = owed * (x == x ? x * x : now);
      sums[0] += owed, sums[1] += square, sums[2] += owed * now;
      sums[3] += x != x ? square / 2 : x < 0 ? square : 0;
    }
    for (int k = 0; k < kParts; ++k) to[chunks.at(panel, chunk, n) * kParts + k] = sums[k];
  }
};

template <typename scalar_t>
struct JoinSums {
  Adjoint<scalar_t> of;
  Chunks chunks;
  const double* parts;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double sums[kParts] = {};
    for (int64_t chunk = 0; chunk < chunks.chunks; ++chunk)
      for (int k = 0; k < kParts; ++k) sums[k] += read(parts + chunks.at(panel, chunk, n) * kParts + k);
    for (int k = 0; k < kParts; ++k) of.target(panel, of.steps + k, n) = static_cast<scalar_t>(sums[k]);
    if (of.steps == 0) of.target(panel, kParts, n) = 0;
  }
};

Tensor garch_variance_backward(const Tensor& grad_, const Tensor& returns_, const Tensor& alpha_, const Tensor& beta_,
                               const Tensor& gamma_, const Tensor& h_) {
  check_same("garch_variance_backward", grad_, returns_);
  check_same("garch_variance_backward", h_, returns_);
  const Tensor grad = contiguous(grad_), returns = contiguous(returns_), h = contiguous(h_);
  const Tensor alpha = contiguous(alpha_), beta = contiguous(beta_), gamma = contiguous(gamma_);
  const Panels panels(returns);
  for (const Tensor& parameter : {alpha, beta, gamma})
    STD_TORCH_CHECK(
        parameter.numel() * panels.steps == returns.numel() && parameter.scalar_type() == returns.scalar_type(),
        "garch_variance_backward: parameters must be (..., N) and have the dtype of returns (..., T, N)");
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape[shape.size() - 2] += kSums;
  Tensor y = new_empty(returns, shape);
  const int64_t batch = y.numel() ? y.numel() / (y.size(-2) * y.size(-1)) : 0;  // there are sums where no row is
  const Chunks chunks(panels.steps, panels.assets);
  const Tensor owed = scratch(y, returns.numel());
  const Tensor parts = scratch(y, kParts * batch * chunks.chunks * panels.assets);
  dispatch("garch_variance_backward", returns, [&]<typename scalar_t>() {
    const Adjoint<scalar_t> body{grad.const_data_ptr<scalar_t>(),
                                 returns.const_data_ptr<scalar_t>(),
                                 h.const_data_ptr<scalar_t>(),
                                 alpha.const_data_ptr<scalar_t>(),
                                 beta.const_data_ptr<scalar_t>(),
                                 gamma.const_data_ptr<scalar_t>(),
                                 y.mutable_data_ptr<scalar_t>(),
                                 data_of<double>(owed),
                                 panels.steps,
                                 panels.assets};
    recur(y, panels.batch, panels.steps, panels.assets, body, body, body);
    launch_grid(y, Grid(batch, panels.assets, chunks.chunks),
                ChunkSums<scalar_t>{body, chunks, data_of<double>(parts)});
    launch_grid(y, Grid(batch, panels.assets, 1), JoinSums<scalar_t>{body, chunks, data_of<double>(parts)});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(garch_variance_backward)
