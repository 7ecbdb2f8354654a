// GARCH and GJR-GARCH variance: h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1}. With the returns
// known this recursion is affine.
#include "kernel.h"
#include "variance.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Variance {
  using number_t = Number<scalar_t>;
  using Map = Affine<1, number_t>;
  using State = typename Map::State;
  const scalar_t *r, *omega, *alpha, *beta, *gamma, *initial_data;
  scalar_t* h;
  int64_t assets;

  // `missing` is the factor of the row of a missing return.
  struct Column {
    number_t omega, alpha, negative_alpha, beta, missing, initial;
  };
  COMMODITY_INLINE Column column(int64_t panel, int64_t n) const {
    const int64_t i = panel * assets + n;
    const number_t alpha_n = read(alpha + i), gamma_n = read(gamma + i), beta_n = read(beta + i);
    return {read(omega + i),       alpha_n, alpha_n + gamma_n, beta_n, alpha_n + gamma_n / 2 + beta_n,
            read(initial_data + i)};
  }
  COMMODITY_INLINE scalar_t load(const Column&, int64_t i, int64_t) const { return read(r + i); }
  // h_t -> h_{t+1}. A missing return is replaced by its expectation: r^2 by h, the indicator by 1/2.
  COMMODITY_INLINE Map map(const Column& p, scalar_t r_t) const {
    const bool valid = r_t == r_t;
    const number_t x = valid ? r_t : scalar_t(0);
    return {valid ? p.beta : p.missing, {p.omega + (x < 0 ? p.negative_alpha : p.alpha) * x * x}};
  }
  COMMODITY_INLINE State initial(const Column& p) const { return {p.initial}; }
  COMMODITY_INLINE void write(const Column&, int64_t i, int64_t, scalar_t, const State& state, const State&) const {
    h[i] = static_cast<scalar_t>(state.y[0]);
  }
};

Tensor garch_variance(const Tensor& returns_, const Tensor& omega, const Tensor& alpha, const Tensor& beta,
                      const Tensor& gamma, const Tensor& initial) {
  const Tensor returns = contiguous(returns_);
  const auto parameters = check_parameters("garch_variance", returns, {omega, alpha, beta, gamma, initial});
  const Panels panels(returns);
  Tensor h = new_empty(returns, returns.sizes());
  dispatch("garch_variance", returns, [&]<typename scalar_t>() {
    const auto p = parameter_pointers<scalar_t>(parameters);
    const Variance<scalar_t> body{returns.const_data_ptr<scalar_t>(), p[0],         p[1], p[2], p[3], p[4],
                                  h.mutable_data_ptr<scalar_t>(),     panels.assets};
    run_scan<scalar_t>(h, panels.batch, panels.steps, panels.assets, body);
  });
  return h;
}

}  // namespace

COMMODITY_KERNEL(garch_variance,
                 "(Tensor returns, Tensor omega, Tensor alpha, Tensor beta, Tensor gamma, Tensor initial) -> Tensor")
