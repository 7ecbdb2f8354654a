// Log-likelihood of DCC and its derivatives by a and b: sums over time (..., 9) of residuals (..., T, N).
#include "dcc.h"
#include "kernel.h"
#include "sweep.h"

using namespace commodity;

namespace {

constexpr int kScoreSums = 9;  // log-likelihood, gradient (2), expected information (3), squared scores (3)

// One pass over the rows of a panel: the formulas are in dcc_score.py.
template <typename scalar_t>
struct DccScore {
  const scalar_t *z, *weights, *target;
  scalar_t* y;
  int64_t steps, n;
  bool derivatives;

  COMMODITY_INLINE int64_t memory() const { return Regression::size(n) + 10 * n * n + 4 * n; }
  int64_t work() const { return steps * n * n; }

  COMMODITY_INLINE void operator()(int64_t panel, double* memory) const {
    const int64_t size = n * n;
    State s(memory, n, weights[2 * panel], weights[2 * panel + 1]);
    const scalar_t* goal = target + panel * size;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        s.q[i * n + j] = s.target[i * n + j] = (double(goal[i * n + j]) + goal[j * n + i]) / 2;
    for (int64_t i = 0; i < 2 * size; ++i) s.d_q[i] = 0;
    for (int64_t t = 0; t < steps; ++t) {
      const scalar_t* x = z + (panel * steps + t) * n;
      s.add_likelihood(x, derivatives);
      s.advance(x, derivatives);
    }
    for (int k = 0; k < kScoreSums; ++k) y[panel * kScoreSums + k] = static_cast<scalar_t>(s.sums[k]);
  }

 private:
  struct State {
    int64_t n, size;
    double a, b, sums[kScoreSums] = {};
    Regression regression;
    double *target, *q, *d_q, *correlation, *inverse, *d_correlation, *product, *v, *d_mean, *scale, *change;

    COMMODITY_INLINE State(double* memory, int64_t n, double a, double b)
        : n(n), size(n * n), a(a), b(b), regression(memory, n) {
      target = memory + Regression::size(n), q = target + size, d_q = q + size, correlation = d_q + 2 * size;
      inverse = correlation + size, d_correlation = inverse + size, product = d_correlation + size;
      v = product + 3 * size, d_mean = v + n, scale = d_mean + n, change = scale + n;
    }

    // The marginal density of the residuals that are there, and its derivatives.
    COMMODITY_INLINE void add_likelihood(const scalar_t* x, bool derivatives) {
      for (int64_t i = 0; i < n; ++i) scale[i] = 1 / std::sqrt(q[i * n + i]);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          inverse[i * n + j] = correlation[i * n + j] = i == j ? 1 : q[i * n + j] * scale[i] * scale[j];
      double twice = sweep_observed(inverse, x, n);
      for (int64_t i = 0; i < n; ++i) {
        v[i] = 0;
        for (int64_t j = 0; j < n; ++j) {
          const bool seen = x[i] == x[i] && x[j] == x[j];
          inverse[i * n + j] = seen ? -inverse[i * n + j] : 0;
          v[i] += seen ? inverse[i * n + j] * x[j] : 0;
        }
        if (x[i] == x[i]) twice += 1.8378770664093454836 + x[i] * v[i];  // ln(2 pi)
      }
      sums[0] -= twice / 2;
      if (!derivatives) return;
      double score[2];
      for (int p = 0; p < 2; ++p) score[p] = differentiate(d_q + p * size, product + p * size);
      const int first[3] = {0, 0, 1}, second[3] = {0, 1, 1};
      for (int k = 0; k < 3; ++k) {
        const double *left = product + first[k] * size, *right = product + second[k] * size;
        double trace = 0;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) trace += left[i * n + j] * right[j * n + i];
        sums[3 + k] += trace / 2;
        sums[6 + k] += score[first[k]] * score[second[k]];
      }
      sums[1] += score[0], sums[2] += score[1];
    }

    // The score by a parameter with the derivative d of Q; writes R^-1 dR.
    COMMODITY_INLINE double differentiate(const double* d, double* product) {
      double twice = 0;
      for (int64_t i = 0; i < n; ++i) change[i] = d[i * n + i] * scale[i] * scale[i] / 2;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
          const double d_r = d[i * n + j] * scale[i] * scale[j] - correlation[i * n + j] * (change[i] + change[j]);
          d_correlation[i * n + j] = d_r;
          twice += v[i] * v[j] * d_r;
        }
      multiply(inverse, d_correlation, product);
      for (int64_t i = 0; i < n; ++i) twice -= product[i * n + i];
      return twice / 2;
    }

    COMMODITY_INLINE void multiply(const double* left, const double* right, double* product) const {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) product[i * n + j] = 0;
        for (int64_t k = 0; k < n; ++k) {
          const double factor = left[i * n + k];
          for (int64_t j = 0; j < n; ++j) product[i * n + j] += factor * right[k * n + j];
        }
      }
    }

    COMMODITY_INLINE void advance(const scalar_t* x, bool derivatives) {
      const bool missing = any_missing(x, n);
      if (missing) regression.fit(q, x);
      const auto mean = [&](int64_t i) { return missing ? regression.means[i] : double(x[i]); };
      const auto square = [&](int64_t i, int64_t j) {
        return mean(i) * mean(j) + (missing ? regression.covariance(x, i, j) : 0);
      };
      for (int p = 0; derivatives && p < 2; ++p) {
        double* d = d_q + p * size;
        if (missing) differentiate_square(x, d);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) {
            const double step = (p == 0 ? square(i, j) : q[i * n + j]) - target[i * n + j];
            const double through = missing ? product[i * n + j] + d_mean[i] * mean(j) + mean(i) * d_mean[j] : 0;
            d[i * n + j] = step + a * through + b * d[i * n + j];
          }
      }
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          q[i * n + j] = (1 - a - b) * target[i * n + j] + a * square(i, j) + b * q[i * n + j];
    }

    // Derivatives of the conditional covariance, E d E', and of the conditional means, E d S_oo^-1 x_o.
    COMMODITY_INLINE void differentiate_square(const scalar_t* x, const double* d) const {
      double *const e = correlation, *const half = inverse;  // both are computed anew in each row
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          e[i * n + j] = x[i] == x[i] ? 0 : x[j] == x[j] ? -regression.swept[i * n + j] : i == j;
      multiply(e, d, half);
      for (int64_t i = 0; i < n; ++i) {
        d_mean[i] = 0;
        for (int64_t j = 0; j < n; ++j) {
          d_mean[i] += half[i * n + j] * regression.solution[j];
          double sum = 0;
          for (int64_t k = 0; k < n; ++k) sum += half[i * n + k] * e[j * n + k];
          product[i * n + j] = sum;
        }
      }
    }
  };
};

Tensor dcc_score(const Tensor& z_, const Tensor& weights_, const Tensor& target_, bool derivatives) {
  check_dcc("dcc_score", z_, weights_, target_);
  const Tensor z = contiguous(z_), weights = contiguous(weights_), target = contiguous(target_);
  std::vector<int64_t> shape(weights.sizes().begin(), weights.sizes().end());
  shape.back() = kScoreSums;
  Tensor y = new_empty(z, shape);
  dispatch("dcc_score", z, [&]<typename scalar_t>() {
    for_each_panel(y, weights.numel() / 2,
                   DccScore<scalar_t>{z.const_data_ptr<scalar_t>(), weights.const_data_ptr<scalar_t>(),
                                      target.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), z.size(-2),
                                      z.size(-1), derivatives});
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(dcc_score, "(Tensor z, Tensor weights, Tensor target, bool derivatives) -> Tensor")
