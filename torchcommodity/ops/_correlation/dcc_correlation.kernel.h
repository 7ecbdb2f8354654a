// Dynamic conditional correlation: Q (..., T, N, N) of residuals (..., T, N).
#include "dcc.h"
#include "kernel.h"
#include "sweep.h"

using namespace commodity;

namespace {

// Q_{t+1} = (1 - a - b) target + a z_t z_t' + b Q_t for one panel, in the arithmetic of float64 and the dtype of the
// panel between rows, so that any split of the rows gives the same bits.
template <typename scalar_t>
struct DccRecursion {
  const scalar_t *z, *weights, *target, *initial;
  scalar_t* y;
  int64_t steps, n;

  COMMODITY_INLINE int64_t memory() const { return Regression::size(n) + n * n; }
  int64_t work() const { return steps * n * n; }

  COMMODITY_INLINE void operator()(const Team& team, int64_t panel, double* memory) const {
    const int64_t size = n * n;
    const Regression regression(memory, n);
    double* const intercept = memory + Regression::size(n);
    const double a = weights[2 * panel], b = weights[2 * panel + 1], c = 1 - a - b;
    const scalar_t *x = z + panel * steps * n, *start = initial + panel * size, *goal = target + panel * size;
    scalar_t* q = y + panel * steps * size;
    if (steps == 0) return;
    team.each_row(n, [&](int64_t i) {
      team.each_column(n, [&](int64_t j) {
        intercept[i * n + j] = c * ((double(goal[i * n + j]) + goal[j * n + i]) / 2);
        q[i * n + j] = (start[i * n + j] + start[j * n + i]) / 2;
      });
    });
    for (int64_t t = 1; t < steps; ++t, x += n, q += size) {
      const bool missing = regression.fit(team, q, x);
      team.each_row(n, [&](int64_t i) {
        team.each_column(n, [&](int64_t j) {
          const double covariance = missing ? regression.covariance(x, i, j) : 0;
          const double square = regression.means[i] * regression.means[j] + covariance;
          q[(n + i) * n + j] = static_cast<scalar_t>(intercept[i * n + j] + a * square + b * q[i * n + j]);
        });
      });
    }
  }
};

Tensor dcc_correlation(const Tensor& z_, const Tensor& weights_, const Tensor& target_, const Tensor& initial_) {
  check_dcc("dcc_correlation", z_, weights_, target_);
  check_same("dcc_correlation", initial_, target_);
  const Tensor z = contiguous(z_), weights = contiguous(weights_), target = contiguous(target_),
               initial = contiguous(initial_);
  const Panels panels(z);
  Tensor y = new_empty(z, matrix_shape(z));
  dispatch("dcc_correlation", z, [&]<typename scalar_t>() {
    for_each_matrix(y, panels.batch, panels.assets,
                    DccRecursion<scalar_t>{z.const_data_ptr<scalar_t>(), weights.const_data_ptr<scalar_t>(),
                                           target.const_data_ptr<scalar_t>(), initial.const_data_ptr<scalar_t>(),
                                           y.mutable_data_ptr<scalar_t>(), panels.steps, panels.assets});
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(dcc_correlation, "(Tensor z, Tensor weights, Tensor target, Tensor initial) -> Tensor")
