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

  COMMODITY_INLINE int64_t memory() const { return Regression::size(n) + 10 * n * n + 11 * n; }
  int64_t work() const { return steps * n * n; }

  COMMODITY_INLINE void operator()(const Team& team, int64_t panel, double* memory) const {
    State s(memory, n, weights[2 * panel], weights[2 * panel + 1]);
    s.start(team, target + panel * n * n);
    for (int64_t t = 0; t < steps; ++t) {
      const scalar_t* x = z + (panel * steps + t) * n;
      s.add_likelihood(team, x, derivatives);
      s.advance(team, x, derivatives);
    }
    s.add_information();
    team.each(1, [&](int64_t) {
      for (int k = 0; k < kScoreSums; ++k) y[panel * kScoreSums + k] = static_cast<scalar_t>(s.sums[k]);
    });
  }

 private:
  struct State {
    int64_t n, size;
    double a, b, sums[kScoreSums] = {};
    Regression regression;
    double *target, *q, *correlation, *inverse;            // (n, n)
    double *d_q, *d_correlation, *product;                 // (2, n, n), by a and by b; `product` is R^-1 dR
    double *v, *scale, *change, *d_mean, *score, *traces;  // (n,), the same, (2, n) three times, (3, n)

    COMMODITY_INLINE State(double* memory, int64_t n, double a, double b)
        : n(n), size(n * n), a(a), b(b), regression(memory, n) {
      target = memory + Regression::size(n), q = target + size, correlation = q + size, inverse = correlation + size;
      d_q = inverse + size, d_correlation = d_q + 2 * size, product = d_correlation + 2 * size;
      v = product + 2 * size, scale = v + n, change = scale + n, d_mean = change + 2 * n, score = d_mean + 2 * n;
      traces = score + 2 * n;
    }

    COMMODITY_INLINE void start(const Team& team, const scalar_t* goal) const {
      team.each_row(n, [&](int64_t i) {
        team.each_column(n, [&](int64_t j) {
          q[i * n + j] = target[i * n + j] = (double(goal[i * n + j]) + goal[j * n + i]) / 2;
          d_q[i * n + j] = d_q[size + i * n + j] = 0;
        });
      });
      team.each(3 * n, [&](int64_t i) { traces[i] = 0; });
    }

    // The marginal density of the residuals that are there, and its derivatives.
    COMMODITY_INLINE void add_likelihood(const Team& team, const scalar_t* x, bool derivatives) {
      team.each(n, [&](int64_t i) { scale[i] = 1 / std::sqrt(q[i * n + i]); });
      team.each_row(n, [&](int64_t i) {
        team.each_column(n, [&](int64_t j) {
          product[i * n + j] = correlation[i * n + j] = i == j ? 1 : q[i * n + j] * scale[i] * scale[j];
        });
      });
      double twice = sweep_observed(team, product, regression.pivots, x, n);
      team.each_row(n, [&](int64_t i) {
        team.each_column(
            n, [&](int64_t j) { inverse[i * n + j] = x[i] == x[i] && x[j] == x[j] ? -product[i * n + j] : 0; });
      });
      team.each(n, [&](int64_t i) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) sum += x[j] == x[j] ? inverse[i * n + j] * x[j] : 0;
        v[i] = sum;
        for (int p = 0; p < 2; ++p) change[p * n + i] = d_q[p * size + i * n + i] * scale[i] * scale[i] / 2;
      });
      for (int64_t i = 0; i < n; ++i)
        if (x[i] == x[i]) twice += 1.8378770664093454836 + x[i] * v[i];  // ln(2 pi)
      sums[0] -= twice / 2;
      if (derivatives) differentiate(team);
    }

    // Adds the score and its products.
    COMMODITY_INLINE void differentiate(const Team& team) {
      for (int p = 0; p < 2; ++p) {
        const double *d = d_q + p * size, *half = change + p * n;
        double* d_r = d_correlation + p * size;
        team.each_row(n, [&](int64_t i) {
          team.each_column(n, [&](int64_t j) {
            d_r[i * n + j] = d[i * n + j] * scale[i] * scale[j] - correlation[i * n + j] * (half[i] + half[j]);
          });
        });
        multiply(team, inverse, d_r, product + p * size);
      }
      team.each(n, [&](int64_t i) {
        for (int p = 0; p < 2; ++p) {
          double sum = 0;
          for (int64_t j = 0; j < n; ++j) sum += d_correlation[p * size + i * n + j] * v[j];
          score[p * n + i] = v[i] * sum - product[p * size + i * n + i];
        }
        double trace[3] = {};
        for (int64_t j = 0; j < n; ++j) {
          const double by_a = product[j * n + i], by_b = product[size + j * n + i];
          trace[0] += product[i * n + j] * by_a;
          trace[1] += product[i * n + j] * by_b, trace[2] += product[size + i * n + j] * by_b;
        }
        for (int k = 0; k < 3; ++k) traces[k * n + i] += trace[k];
      });
      double twice[2] = {};
      for (int64_t i = 0; i < n; ++i) twice[0] += score[i], twice[1] += score[n + i];
      sums[1] += twice[0] / 2, sums[2] += twice[1] / 2;
      sums[6] += twice[0] * twice[0] / 4, sums[7] += twice[0] * twice[1] / 4, sums[8] += twice[1] * twice[1] / 4;
    }

    COMMODITY_INLINE void add_information() {
      for (int k = 0; k < 3; ++k)
        for (int64_t i = 0; i < n; ++i) sums[3 + k] += traces[k * n + i] / 2;
    }

    COMMODITY_INLINE void multiply(const Team& team, const double* left, const double* right, double* product) const {
      team.each_row(n, [&](int64_t i) {
        team.each_column(n, [&](int64_t j) { product[i * n + j] = 0; });
        for (int64_t k = 0; k < n; ++k) {
          const double factor = left[i * n + k];
          team.each_column(n, [&](int64_t j) { product[i * n + j] += factor * right[k * n + j]; });
        }
      });
    }

    COMMODITY_INLINE void advance(const Team& team, const scalar_t* x, bool derivatives) const {
      const bool missing = regression.fit(team, q, x);
      for (int p = 0; derivatives && missing && p < 2; ++p) differentiate_square(team, x, p);
      const double* means = regression.means;
      team.each_row(n, [&](int64_t i) {
        team.each_column(n, [&](int64_t j) {
          const int64_t at = i * n + j;
          const double square = means[i] * means[j] + (missing ? regression.covariance(x, i, j) : 0);
          for (int p = 0; derivatives && p < 2; ++p) {
            double step = (p == 0 ? square : q[at]) - target[at] + b * d_q[p * size + at];
            const double *through = product + p * size, *d = d_mean + p * n;
            if (missing) step += a * (through[at] + d[i] * means[j] + means[i] * d[j]);
            d_q[p * size + at] = step;
          }
          q[at] = (1 - a - b) * target[at] + a * square + b * q[at];
        });
      });
    }

    // Derivatives of the conditional covariance, E d E', and of the conditional means, E d S_oo^-1 x_o.
    COMMODITY_INLINE void differentiate_square(const Team& team, const scalar_t* x, int p) const {
      double *const e = correlation, *const half = inverse, *const through = product + p * size;  // all computed anew
      team.each_row(n, [&](int64_t i) {
        team.each_column(n, [&](int64_t j) {
          e[i * n + j] = x[i] == x[i] ? 0 : x[j] == x[j] ? -regression.swept[i * n + j] : i == j;
        });
      });
      multiply(team, e, d_q + p * size, half);
      team.each(n, [&](int64_t i) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) sum += half[i * n + j] * regression.solution[j];
        d_mean[p * n + i] = sum;
      });
      team.each_row(n, [&](int64_t i) {
        team.each_column(n, [&](int64_t j) {
          double sum = 0;
          for (int64_t k = 0; k < n; ++k) sum += half[i * n + k] * e[j * n + k];
          through[i * n + j] = sum;
        });
      });
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
    for_each_matrix(y, weights.numel() / 2, z.size(-1),
                    DccScore<scalar_t>{z.const_data_ptr<scalar_t>(), weights.const_data_ptr<scalar_t>(),
                                       target.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), z.size(-2),
                                       z.size(-1), derivatives});
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(dcc_score, "(Tensor z, Tensor weights, Tensor target, bool derivatives) -> Tensor")
