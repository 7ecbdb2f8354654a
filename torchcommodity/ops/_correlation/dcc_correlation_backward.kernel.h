// Gradients of dcc_correlation with respect to residuals, weights, target and initial Q: (..., T N + 2 + 2 N^2).
#include "dcc.h"
#include "kernel.h"
#include "sweep.h"

using namespace commodity;

namespace {

// One pass from the last row of a panel to the first: the formulas are in dcc_correlation_backward.py.
template <typename scalar_t>
struct DccAdjoint {
  const scalar_t *grad, *z, *weights, *target, *q;
  scalar_t* gradients;  // (T N + 2 + 2 N^2): of z, weights, target and initial
  int64_t steps, n;

  COMMODITY_INLINE int64_t memory() const { return Regression::size(n) + 4 * n * n + 2 * n; }
  int64_t work() const { return steps * n * n; }

  COMMODITY_INLINE void operator()(int64_t panel, double* memory) const {
    const int64_t size = n * n;
    const Regression regression(memory, n);
    double *const adjoint = memory + Regression::size(n), *const total = adjoint + size, *const half = total + size,
                  *const through = half + size, *const g = through + size, *const back = g + n;
    for (int64_t i = 0; i < size; ++i) adjoint[i] = total[i] = 0;
    const double a = weights[2 * panel], b = weights[2 * panel + 1];
    scalar_t* const out = gradients + panel * (steps * n + 2 + 2 * size);
    double d_a = 0, d_b = 0;
    for (int64_t t = steps - 1; t >= 0; --t) {
      const scalar_t *x = z + (panel * steps + t) * n, *row = q + (panel * steps + t) * size;
      const scalar_t* incoming = grad + (panel * steps + t) * size;
      const bool missing = any_missing(x, n);
      if (missing) regression.fit(row, x);
      const auto mean = [&](int64_t i) { return missing ? regression.means[i] : double(x[i]); };
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) {
          const double entry = adjoint[i * n + j];
          const double goal = (double(target[panel * size + i * n + j]) + target[panel * size + j * n + i]) / 2;
          const double square = mean(i) * mean(j) + (missing ? regression.covariance(x, i, j) : 0);
          sum += entry * mean(j);
          d_a += entry * (square - goal);
          d_b += entry * ((double(row[i * n + j]) + row[j * n + i]) / 2 - goal);
          total[i * n + j] += entry;
        }
        g[i] = 2 * a * sum;
      }
      if (missing) pull_back(regression, x, adjoint, g, half, through, back);
      for (int64_t i = 0; i < n; ++i)
        out[t * n + i] = static_cast<scalar_t>(x[i] != x[i] ? 0 : missing ? g[i] - back[i] : g[i]);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          adjoint[i * n + j] = (double(incoming[i * n + j]) + incoming[j * n + i]) / 2 + b * adjoint[i * n + j];
      for (int64_t i = 0; missing && i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          adjoint[i * n + j] +=
              a * through[i * n + j] + (back[i] * regression.solution[j] + back[j] * regression.solution[i]) / 2;
    }
    scalar_t* end = out + steps * n;
    *end++ = static_cast<scalar_t>(d_a), *end++ = static_cast<scalar_t>(d_b);
    for (int64_t i = 0; i < size; ++i) *end++ = static_cast<scalar_t>((1 - a - b) * total[i]);
    for (int64_t i = 0; i < size; ++i) *end++ = static_cast<scalar_t>(adjoint[i]);
  }

 private:
  // E' A E and E' g, where the rows m of E = I - K are those of the missing residuals: E_mo = -K_mo, E_mm = I.
  COMMODITY_INLINE void pull_back(const Regression& regression, const scalar_t* x, const double* adjoint,
                                  const double* g, double* half, double* through, double* back) const {
    const auto e = [&](int64_t m, int64_t i) -> double {
      if (x[m] == x[m]) return 0;
      return x[i] == x[i] ? -regression.swept[m * n + i] : i == m;
    };
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t m = 0; m < n; ++m) sum += adjoint[i * n + m] * e(m, j);
        half[i * n + j] = sum;
      }
    for (int64_t i = 0; i < n; ++i) {
      back[i] = 0;
      for (int64_t m = 0; m < n; ++m) back[i] += e(m, i) * g[m];
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t m = 0; m < n; ++m) sum += e(m, i) * half[m * n + j];
        through[i * n + j] = sum;
      }
    }
  }
};

Tensor dcc_correlation_backward(const Tensor& grad_, const Tensor& z_, const Tensor& weights_, const Tensor& target_,
                                const Tensor& q_) {
  check_dcc("dcc_correlation_backward", z_, weights_, target_);
  check_same("dcc_correlation_backward", grad_, q_);
  const Tensor grad = contiguous(grad_), z = contiguous(z_), weights = contiguous(weights_),
               target = contiguous(target_), q = contiguous(q_);
  Tensor gradients = new_empty(z, gradient_shape(z));
  dispatch("dcc_correlation_backward", z, [&]<typename scalar_t>() {
    for_each_panel(gradients, weights.numel() / 2,  // there are gradients even where T = 0
                   DccAdjoint<scalar_t>{grad.const_data_ptr<scalar_t>(), z.const_data_ptr<scalar_t>(),
                                        weights.const_data_ptr<scalar_t>(), target.const_data_ptr<scalar_t>(),
                                        q.const_data_ptr<scalar_t>(), gradients.mutable_data_ptr<scalar_t>(),
                                        z.size(-2), z.size(-1)});
  });
  return gradients;
}

}  // namespace

COMMODITY_KERNEL(dcc_correlation_backward, "(Tensor grad, Tensor z, Tensor weights, Tensor target, Tensor q) -> Tensor")
