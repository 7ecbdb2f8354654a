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

  COMMODITY_INLINE int64_t memory() const { return Regression::size(n) + 7 * n * n + 2 * n; }
  int64_t work() const { return steps * n * n; }

  COMMODITY_INLINE void operator()(const Team& team, int64_t panel, double* memory) const {
    const int64_t size = n * n;
    const Regression regression(memory, n);
    double *const adjoint = memory + Regression::size(n), *const total = adjoint + size, *const goal = total + size,
                  *const d_a = goal + size, *const d_b = d_a + size, *const half = d_b + size,
                  *const through = half + size, *const g = through + size, *const back = g + n;
    const scalar_t* mean = target + panel * size;
    team.each_row(n, [&](int64_t i) {
      team.each_column(n, [&](int64_t j) {
        adjoint[i * n + j] = total[i * n + j] = d_a[i * n + j] = d_b[i * n + j] = 0;
        goal[i * n + j] = (double(mean[i * n + j]) + mean[j * n + i]) / 2;
      });
    });
    const double a = weights[2 * panel], b = weights[2 * panel + 1];
    scalar_t* const out = gradients + panel * (steps * n + 2 + 2 * size);
    for (int64_t t = steps - 1; t >= 0; --t) {
      const scalar_t *x = z + (panel * steps + t) * n, *row = q + (panel * steps + t) * size;
      const scalar_t* incoming = grad + (panel * steps + t) * size;
      const int64_t ahead = t >= kRowsAhead ? kRowsAhead * size : 0;
      const bool missing = regression.fit(team, row, x);
      team.each(n, [&](int64_t i) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) sum += adjoint[i * n + j] * regression.means[j];
        g[i] = 2 * a * sum;
        if (!missing) out[t * n + i] = static_cast<scalar_t>(g[i]);
      });
      if (missing) {
        pull_back(team, regression, x, adjoint, g, half, through, back);
        team.each(n, [&](int64_t i) { out[t * n + i] = static_cast<scalar_t>(x[i] == x[i] ? g[i] - back[i] : 0); });
      }
      team.each_row(n, [&](int64_t i) {
        team.each_column(n, [&](int64_t j) {
          const int64_t at = i * n + j, transposed = j * n + i;
          team.prefetch(row + at - ahead), team.prefetch(incoming + at - ahead);
          const double entry = adjoint[at];
          const double square = regression.means[i] * regression.means[j];
          double next = (double(incoming[at]) + incoming[transposed]) / 2 + b * entry, covariance = 0;
          if (missing) {
            covariance = regression.covariance(x, i, j);
            next += a * through[at] + (back[i] * regression.solution[j] + back[j] * regression.solution[i]) / 2;
          }
          d_a[at] += entry * (square + covariance - goal[at]);
          d_b[at] += entry * ((double(row[at]) + row[transposed]) / 2 - goal[at]);
          total[at] += entry, adjoint[at] = next;
        });
      });
    }
    scalar_t* const end = out + steps * n;
    team.each(2, [&](int64_t k) {
      const double* parts = k == 0 ? d_a : d_b;
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) sum += parts[i];
      end[k] = static_cast<scalar_t>(sum);
    });
    team.each(size, [&](int64_t i) {
      end[2 + i] = static_cast<scalar_t>((1 - a - b) * total[i]);
      end[2 + size + i] = static_cast<scalar_t>(adjoint[i]);
    });
  }

 private:
  static constexpr int64_t kRowsAhead = 8;  // to be in the cache by then

  // E' A E and E' g, where the rows m of E = I - K are those of the missing residuals: E_mo = -K_mo, E_mm = I.
  COMMODITY_INLINE void pull_back(const Team& team, const Regression& regression, const scalar_t* x,
                                  const double* adjoint, const double* g, double* half, double* through,
                                  double* back) const {
    const auto e = [&](int64_t m, int64_t i) -> double {
      if (x[m] == x[m]) return 0;
      return x[i] == x[i] ? -regression.swept[m * n + i] : i == m;
    };
    team.each_row(n, [&](int64_t i) {
      team.each_column(n, [&](int64_t j) {
        double sum = 0;
        for (int64_t m = 0; m < n; ++m) sum += adjoint[i * n + m] * e(m, j);
        half[i * n + j] = sum;
      });
    });
    team.each(n, [&](int64_t i) {
      back[i] = 0;
      for (int64_t m = 0; m < n; ++m) back[i] += e(m, i) * g[m];
    });
    team.each_row(n, [&](int64_t i) {
      team.each_column(n, [&](int64_t j) {
        double sum = 0;
        for (int64_t m = 0; m < n; ++m) sum += e(m, i) * half[m * n + j];
        through[i * n + j] = sum;
      });
    });
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
    for_each_matrix(gradients, weights.numel() / 2, z.size(-1),  // there are gradients even where T = 0
                    DccAdjoint<scalar_t>{grad.const_data_ptr<scalar_t>(), z.const_data_ptr<scalar_t>(),
                                         weights.const_data_ptr<scalar_t>(), target.const_data_ptr<scalar_t>(),
                                         q.const_data_ptr<scalar_t>(), gradients.mutable_data_ptr<scalar_t>(),
                                         z.size(-2), z.size(-1)});
  });
  return gradients;
}

}  // namespace

COMMODITY_KERNEL(dcc_correlation_backward, "(Tensor grad, Tensor z, Tensor weights, Tensor target, Tensor q) -> Tensor")
