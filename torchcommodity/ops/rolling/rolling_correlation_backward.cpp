// The gradient of rolling_correlation in its returns, from (..., T, N, N) matrices or (..., T, N (N - 1) / 2) pairs.
//
// With v_j the sum of squares of j about its mean m_j, over the rows that i and j share, and g summed over both halves:
// dx_j(s) = sum_i A_ij x_i(s) - B_ij x_j(s) + C_ij, summed over the windows that hold s, where
// A = g / sqrt(v_i v_j), B = g r / v_j, C = B m_j - A m_i.
//
// A row of the first block is in the first windows of the group, one of the second block in the last windows: weights
// are summed forwards for the one and backwards for the other, and a row of the panel adds what two groups say.
#include "correlation_window.h"

using namespace commodity;

namespace {

constexpr int64_t kTile = 1 << 15;  // doubles of weights that are kept together: they stay in the cache

// Row i of the matrix at t, of gradients or of correlations; what is not finite counts as zero.
template <typename scalar_t>
struct Symmetric {
  const scalar_t* from;
  const int64_t assets;
  const bool packed;

  int64_t size() const { return packed ? assets * (assets - 1) / 2 : assets * assets; }

  // `share` of each half of a full matrix: 1 adds them, 0.5 takes their mean.
  void row(int64_t t, int64_t i, double share, double* to) const {
    const scalar_t* matrix = from + t * size();
    const auto finite = [](scalar_t value) { return value - value == 0 ? static_cast<double>(value) : 0.0; };
    if (packed) {
      for (int64_t j = 0, at = i - 1; j < i; at += assets - j - 2, ++j) to[j] = finite(matrix[at]);
      const scalar_t* after = matrix + i * (2 * assets - i - 1) / 2 - i - 1;
      for (int64_t j = i + 1; j < assets; ++j) to[j] = finite(after[j]);
    } else {
      for (int64_t j = 0; j < assets; ++j)
        to[j] = share * (finite(matrix[i * assets + j]) + finite(matrix[j * assets + i]));
    }
    to[i] = 0;
  }
};

template <typename scalar_t>
struct Gradient {
  const Symmetric<scalar_t> gradients, correlations;
  Group g;
  const int64_t tile;  // columns whose weights are kept together
  std::vector<double> A, B, C, sum, grad, r, dx;

  Gradient(Symmetric<scalar_t> gradients, Symmetric<scalar_t> correlations, int64_t window)
      : gradients(gradients),
        correlations(correlations),
        g(gradients.assets, window),
        tile(std::clamp<int64_t>(kTile / (window * g.width), 1, g.assets)),
        A(window * tile * g.width),
        B(window * g.width),
        C(window * g.width),
        sum((tile + 2) * g.width),
        grad(g.width),
        r(g.width),
        dx(g.rows * g.width) {}

  // The windows that are loaded; `first` is the row of the batch where their panel begins.
  void run(int64_t first) {
    std::fill(dx.begin(), dx.end(), 0.0);
    if (!any(first)) return;
    if (g.complete) {
      g.columns();
      for (double& scale : g.scale) scale = scale == scale ? scale : 0;
    }
    const int64_t step = g.complete ? tile : 1;
    for (int64_t i = 0; i < g.assets; i += step) {
      const int64_t count = std::min(step, g.assets - i);
      if (g.complete)
        weigh(first, i, count);
      else
        weigh_shared(first, i);
      spread(i, count, 0, g.window, 1);
      spread(i, count, g.rows - 1, g.window - 1, -1);
    }
  }

 private:
  int64_t skip() const { return g.begin < 0 ? 1 : 0; }  // window 0 then ends before the panel begins

  bool any(int64_t first) const {
    const scalar_t* from = gradients.from + (first + g.end(skip())) * gradients.size();
    const auto moves = [](scalar_t value) { return value != 0; };
    return g.windows > skip() && std::any_of(from, from + (g.windows - skip()) * gradients.size(), moves);
  }

  void read(int64_t t, int64_t i) {
    gradients.row(t, i, 1, grad.data());
    correlations.row(t, i, 0.5, r.data());
  }

  // Columns i .. i + count - 1 against all, where nothing is missing: v and m are a column's own.
  void weigh(int64_t first, int64_t i, int64_t count) {
    const int64_t N = g.width;
    std::fill(B.begin(), B.end(), 0.0), std::fill(C.begin(), C.end(), 0.0);
    for (int64_t w = 0; w < g.windows; ++w) {
      const double *s = &g.sum[w * N], *scale = &g.scale[w * N];
      double *b = &B[w * N], *c = &C[w * N], *a = &A[w * count * N];
      for (int64_t k = i; k < i + count; ++k, a += N) {
        read(first + g.end(w), k);
        const double own = scale[k], mean = s[k] / g.window;
#pragma GCC ivdep
        for (int64_t j = 0; j < N; ++j) {
          a[j] = grad[j] * (own * scale[j]);
          b[j] += grad[j] * r[j];
          c[j] -= a[j] * mean;
        }
      }
      for (int64_t j = 0; j < N; ++j) b[j] *= scale[j] * scale[j], c[j] += b[j] * s[j] / g.window;
    }
  }

  // Column i against all, over the rows that both have.
  void weigh_shared(int64_t first, int64_t i) {
    const int64_t N = g.width;
    Shared sums(g, i);
    for (int64_t w = 0; w < g.windows; ++w) {
      double *a = &A[w * N], *b = &B[w * N], *c = &C[w * N];
      sums.advance(w);
      if (w >= skip())
        read(first + g.end(w), i);
      else
        std::fill(grad.begin(), grad.end(), 0.0);
      for (int64_t j = 0; j < N; ++j) {
        const double count = sums.total(Shared::kCount, j), x = sums.total(Shared::kX, j),
                     y = sums.total(Shared::kY, j);
        const double xx = sums.total(Shared::kXX, j) - x * x / count, yy = sums.total(Shared::kYY, j) - y * y / count;
        const bool moves = (xx > 0) & (yy > 0) & (grad[j] != 0);
        a[j] = moves ? grad[j] / std::sqrt(xx * yy) : 0;
        b[j] = moves ? grad[j] * r[j] / yy : 0;
        c[j] = moves ? (b[j] * y - a[j] * x) / count : 0;
      }
    }
  }

  // Adds the windows one after another, and with each the row that no window before it holds.
  void spread(int64_t i, int64_t count, int64_t from, int64_t to, int64_t step) {
    const int64_t N = g.width, size = count * N, ahead = step > 0 ? 0 : g.window - 1;
    double *b = &sum[size], *c = b + N;
    std::fill_n(sum.begin(), size + 2 * N, 0.0);
    for (int64_t row = from; row != to; row += step) {
      const int64_t w = row - ahead;
      if (w < g.windows) {
        add(size, &A[w * size], sum.data());
        add(N, &B[w * N], b), add(N, &C[w * N], c);
      }
      const double *x = &g.x[row * N], *present = &g.present[row * N];
      for (int64_t k = 0; k < count; ++k) {
        const double *a = &sum[k * N], value = x[i + k], own = present[i + k];
        double* into = &dx[row * N];
#pragma GCC ivdep
        for (int64_t j = 0; j < N; ++j) into[j] += own * present[j] * (a[j] * value + (k ? 0 : c[j] - x[j] * b[j]));
      }
    }
  }

  static void add(int64_t size, const double* from, double* to) {
#pragma GCC ivdep
    for (int64_t k = 0; k < size; ++k) to[k] += from[k];
  }
};

COMMODITY_SIMD void gradient(Gradient<float>& block, int64_t first) { block.run(first); }
COMMODITY_SIMD void gradient(Gradient<double>& block, int64_t first) { block.run(first); }

// A row adds what the windows that end in its own block say, and those that end in the next.
template <typename scalar_t>
void run(const Tensor& returns, const Tensor& grad, const Tensor& correlation, int64_t window, Tensor& dx) {
  const Panels panels(returns);
  const bool packed = grad.dim() == returns.dim();
  const Symmetric<scalar_t> gradients{grad.const_data_ptr<scalar_t>(), panels.assets, packed};
  const Symmetric<scalar_t> correlations{correlation.const_data_ptr<scalar_t>(), panels.assets, packed};
  STD_TORCH_CHECK(grad.numel() == panels.batch * panels.steps * gradients.size(),
                  "rolling_correlation_backward: grad must be (..., T, N, N) or (..., T, N (N - 1) / 2)");
  const scalar_t* from = returns.const_data_ptr<scalar_t>();
  const int64_t groups = (panels.steps + window - 1) / window + 1, all = dx.numel();
  std::vector<double> parts(2 * all);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, window * gradients.size()));
  torch::stable::parallel_for(0, panels.batch * groups, grain, [&](int64_t first, int64_t last) {
    Gradient<scalar_t> block(gradients, correlations, window);
    for (int64_t k = first; k < last; ++k) {
      const int64_t panel = k / groups * panels.steps, begin = (k % groups - 1) * window;
      if (begin + window - 1 >= panels.steps) continue;
      block.g.load(from + panel * panels.assets, begin, panels.steps);
      gradient(block, panel);
      for (int64_t r = std::max<int64_t>(0, -begin); r < std::min(block.g.rows, panels.steps - begin); ++r)
        std::copy_n(&block.dx[r * block.g.width], panels.assets,
                    &parts[(r < window ? 0 : all) + (panel + begin + r) * panels.assets]);
    }
  });
  scalar_t* to = dx.mutable_data_ptr<scalar_t>();
  for (int64_t k = 0; k < all; ++k) to[k] = static_cast<scalar_t>(parts[k] + parts[all + k]);
}

Tensor rolling_correlation_backward(const Tensor& returns_, const Tensor& grad_, const Tensor& correlation_,
                                    int64_t window) {
  STD_TORCH_CHECK(window >= 1 && returns_.dim() >= 2, "rolling_correlation_backward: returns (..., T, N), window >= 1");
  check_same("rolling_correlation_backward", grad_, correlation_);
  STD_TORCH_CHECK(grad_.scalar_type() == returns_.scalar_type(), "rolling_correlation_backward: dtypes must be one");
  const Tensor returns = contiguous(returns_), grad = contiguous(grad_), correlation = contiguous(correlation_);
  Tensor dx = new_empty(returns, returns.sizes());
  THO_DISPATCH_V2(returns.scalar_type(), "rolling_correlation_backward",
                  AT_WRAP([&] { run<scalar_t>(returns, grad, correlation, window, dx); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(rolling_correlation_backward,
                   "(Tensor returns, Tensor grad, Tensor correlation, SymInt window) -> Tensor")
