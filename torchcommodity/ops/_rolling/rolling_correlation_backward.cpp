// Gradient of rolling_correlation in its returns, from (..., T, N, N) matrices or (..., T, N (N - 1) / 2) pairs.
//
// With v_j the sum of squares of j about its mean m_j, over the rows common to i and j, and g the sum of the gradients
// of r_ij and r_ji:
// dx_j(s) = sum_i A_ij x_i(s) - B_ij x_j(s) + C_ij, summed over the windows that contain row s, where
// A = g / sqrt(v_i v_j), B = g r / v_j, C = B m_j - A m_i.
//
// In a group (correlation_window.h), a row of the first block is contained in the first windows, a row of the second
// block in the last windows: the weights are accumulated forward for the one and backward for the other. A row of the
// panel is in the first block of one group and in the second block of another; it adds both results.
#include "correlation_window.h"

using namespace commodity;

namespace {

// The inputs and outputs of one panel. dx_first and dx_second hold the results of rows as part of a first and of a
// second block.
template <typename scalar_t>
struct Pointers {
  const scalar_t *grad, *correlation;
  double *dx_first, *dx_second;
  const int64_t assets;
  const bool packed;

  int64_t size() const { return packed ? assets * (assets - 1) / 2 : assets * assets; }

  double* dx_row(int64_t r, int64_t window, int64_t t) const {
    return (r < window ? dx_first : dx_second) + t * assets;
  }

  // The gradient of pair i != j at t, summed over both halves, and its correlation; zero if not finite.
  void read(int64_t t, int64_t i, int64_t j, double& g, double& r) const {
    const int64_t low = std::min(i, j), high = std::max(i, j);
    g = r = 0;
    if (packed)
      add(t * size() + low * (2 * assets - low - 1) / 2 + high - low - 1, 1, g, r);
    else
      add(t * size() + i * assets + j, 0.5, g, r), add(t * size() + j * assets + i, 0.5, g, r);
  }

  // The same of all pairs i < j, with a stride of kLanes.
  void read_all(int64_t t, double* g, double* r) const {
    int64_t offset = t * size();
    if (packed)
      for (const int64_t end = offset + size(); offset < end; ++offset, g += kLanes, r += kLanes)
        *g = *r = 0, add(offset, 1, *g, *r);
    else
      for (int64_t i = 0; i < assets; ++i)
        for (int64_t j = i + 1; j < assets; ++j, g += kLanes, r += kLanes) {
          double pair_g = 0, pair_r = 0;
          add(offset + i * assets + j, 0.5, pair_g, pair_r), add(offset + j * assets + i, 0.5, pair_g, pair_r);
          *g = pair_g, *r = pair_r;
        }
  }

 private:
  // `share` of a correlation: 0.5 averages the two halves of a matrix.
  void add(int64_t offset, double share, double& g, double& r) const {
    const double grad_value = grad[offset], correlation_value = correlation[offset];
    const double residue = (grad_value - grad_value) + (correlation_value - correlation_value);  // 0 if both are finite
    g += residue == 0 ? grad_value : 0, r += residue == 0 ? share * correlation_value : 0;
  }
};

// Four groups without missing values: v and m depend on one column only, so B and C are summed over i at once.
template <typename scalar_t>
struct CompleteGroups {
  GroupBatch batch;
  AlignedVector<GroupLanes> A, B, C, sum, dx, grad, r;

  CompleteGroups(int64_t assets, int64_t window)
      : batch(assets, window),
        A(window * batch.pairs),
        B(window * assets),
        C(window * assets),
        sum(batch.pairs + 2 * assets),
        dx(assets),
        grad(batch.pairs),
        r(batch.pairs) {}

  void run(const Pointers<scalar_t>* pointers, const bool* used) {
    batch.compute_columns();
    std::fill(B.begin(), B.end(), GroupLanes{}), std::fill(C.begin(), C.end(), GroupLanes{});
    for (int64_t w = 0; w < batch.window; ++w) compute_weights(w, pointers, used);
    accumulate(0, batch.window, 1, pointers, used);
    accumulate(batch.rows - 1, batch.window - 1, -1, pointers, used);
  }

 private:
  // A, B and C of window w.
  void compute_weights(int64_t w, const Pointers<scalar_t>* pointers, const bool* used) {
    const int64_t N = batch.assets;
    const GroupLanes *sums = &batch.sum[w * N], *scale = &batch.scale[w * N], *g = grad.data(), *correlation = r.data();
    GroupLanes *a = &A[w * batch.pairs], *b = &B[w * N], *c = &C[w * N];
    for (int l = 0; l < kLanes; ++l)
      if (used[l] && w < batch.windows[l])
        pointers[l].read_all(batch.begin[l] + w + batch.window - 1, reinterpret_cast<double*>(grad.data()) + l,
                             reinterpret_cast<double*>(r.data()) + l);
      else
        for (GroupLanes& lanes : grad) lanes[l] = 0;
    for (int64_t i = 0; i < N; ++i) {
      GroupLanes b_i = b[i], c_i = c[i];
      for (int64_t j = i + 1; j < N; ++j, ++a, ++g, ++correlation) {
        const GroupLanes weight = *g != 0.0 ? *g * (scale[i] * scale[j]) : GroupLanes{};  // NaN if a column is constant
        const GroupLanes product = *g * *correlation;
        b_i += product, b[j] += product;
        c_i -= weight * sums[j], c[j] -= weight * sums[i];
        *a = weight;
      }
      b[i] = b_i != 0.0 ? b_i * scale[i] * scale[i] : GroupLanes{};
      c[i] = (c_i + b[i] * sums[i]) / static_cast<double>(batch.window);
    }
  }

  // Adds the weights of one window after another, and writes dx of the row that is new with each window.
  void accumulate(int64_t first, int64_t end, int64_t step, const Pointers<scalar_t>* pointers, const bool* used) {
    const int64_t N = batch.assets, first_row = step > 0 ? 0 : batch.window - 1;
    GroupLanes *b = &sum[batch.pairs], *c = b + N;
    std::fill(sum.begin(), sum.end(), GroupLanes{});
    for (int64_t row = first; row != end; row += step) {
      const int64_t w = row - first_row;
      const GroupLanes *x = &batch.x[row * N], *window_a = &A[w * batch.pairs];
      for (int64_t i = 0; i < N; ++i) {
        b[i] += B[w * N + i], c[i] += C[w * N + i];
        dx[i] = c[i] - x[i] * b[i];
      }
      GroupLanes* a = sum.data();
      for (int64_t i = 0; i < N; ++i) {
        GroupLanes dx_i = {};
        for (int64_t j = i + 1; j < N; ++j, ++a) {
          *a += *window_a++;
          dx_i += *a * x[j], dx[j] += *a * x[i];
        }
        dx[i] += dx_i;
      }
      for (int l = 0; l < kLanes; ++l)
        if (used[l] && row < batch.windows[l] + batch.window - 1) {
          double* output = pointers[l].dx_row(row, batch.window, batch.begin[l] + row);
          for (int64_t i = 0; i < N; ++i) output[i] = dx[i][l];
        }
    }
  }
};

// A group with missing values: column by column against all others, over the rows that both have.
template <typename scalar_t>
struct IncompleteGroup {
  WindowGroup group;
  std::vector<double> A, B, C, sum, dx;

  IncompleteGroup(int64_t assets, int64_t window)
      : group(assets, window),
        A(window * group.width),
        B(window * group.width),
        C(window * group.width),
        sum(3 * group.width),
        dx(group.rows * group.width) {}

  void run(const Pointers<scalar_t>& pointers) {
    std::fill(dx.begin(), dx.end(), 0.0);
    for (int64_t i = 0; i < group.assets; ++i) {
      if (!compute_weights(i, pointers)) continue;
      accumulate(i, 0, group.window, 1);
      accumulate(i, group.rows - 1, group.window - 1, -1);
    }
    for (int64_t r = std::max<int64_t>(0, -group.begin); r < group.windows + group.window - 1; ++r)
      std::copy_n(&dx[r * group.width], group.assets, pointers.dx_row(r, group.window, group.begin + r));
  }

 private:
  // A, B and C of column i in all windows; false if all its gradients are zero.
  bool compute_weights(int64_t i, const Pointers<scalar_t>& pointers) {
    const int64_t N = group.width, first_window = group.begin < 0 ? 1 : 0;  // window 0 may end before the panel begins
    std::fill(A.begin(), A.end(), 0.0), std::fill(B.begin(), B.end(), 0.0);
    bool any = false;
    for (int64_t w = first_window; w < group.windows; ++w)
      for (int64_t j = 0; j < group.assets; ++j) {
        if (j != i) pointers.read(group.end(w), i, j, A[w * N + j], B[w * N + j]);
        any |= A[w * N + j] != 0;
      }
    if (!any) return false;
    PairSums sums(group, i);
    for (int64_t w = 0; w < group.windows; ++w) {
      double *a = &A[w * N], *b = &B[w * N], *c = &C[w * N];
      sums.advance(w);
      for (int64_t j = 0; j < N; ++j) {
        const double count = sums.total(PairSums::kCount, j);
        const double x = sums.total(PairSums::kX, j), y = sums.total(PairSums::kY, j);
        const double xx = sums.total(PairSums::kXX, j) - x * x / count;
        const double yy = sums.total(PairSums::kYY, j) - y * y / count;
        const bool varies = (xx > 0) & (yy > 0) & (a[j] != 0);
        b[j] = varies ? a[j] * b[j] / yy : 0;
        a[j] = varies ? a[j] / std::sqrt(xx * yy) : 0;
        c[j] = varies ? (b[j] * y - a[j] * x) / count : 0;
      }
    }
    return true;
  }

  void accumulate(int64_t i, int64_t first, int64_t end, int64_t step) {
    const int64_t N = group.width, first_row = step > 0 ? 0 : group.window - 1;
    double *a = sum.data(), *b = a + N, *c = b + N;
    std::fill(sum.begin(), sum.end(), 0.0);
    for (int64_t row = first; row != end; row += step) {
      const int64_t w = row - first_row;
      const double *x = &group.x[row * N], *valid = &group.valid[row * N], x_i = x[i], valid_i = valid[i];
      double* output = &dx[row * N];
      for (int64_t j = 0; j < N; ++j) {
        if (w < group.windows) a[j] += A[w * N + j], b[j] += B[w * N + j], c[j] += C[w * N + j];
        output[j] += valid_i * valid[j] * (a[j] * x_i - b[j] * x[j] + c[j]);
      }
    }
  }
};

COMMODITY_SIMD void gradient(CompleteGroups<float>& groups, const Pointers<float>* pointers, const bool* used) {
  groups.run(pointers, used);
}
COMMODITY_SIMD void gradient(CompleteGroups<double>& groups, const Pointers<double>* pointers, const bool* used) {
  groups.run(pointers, used);
}
COMMODITY_SIMD void gradient(IncompleteGroup<float>& group, const Pointers<float>& pointers) { group.run(pointers); }
COMMODITY_SIMD void gradient(IncompleteGroup<double>& group, const Pointers<double>& pointers) { group.run(pointers); }

template <typename scalar_t>
void run(const Tensor& returns, const Tensor& grad, const Tensor& correlation, int64_t window, Tensor& dx) {
  const Panels panels(returns);
  const int64_t N = panels.assets, groups = std::max<int64_t>(1, panels.steps / window), all = panels.batch * groups;
  std::vector<double> parts(2 * dx.numel());  // dx_first and dx_second
  const scalar_t* x = returns.const_data_ptr<scalar_t>();
  const auto pointers_of = [&](int64_t panel) {
    Pointers<scalar_t> p{
        grad.const_data_ptr<scalar_t>(), correlation.const_data_ptr<scalar_t>(), parts.data(), nullptr, N,
        grad.dim() == returns.dim()};
    p.grad += panel * panels.steps * p.size(), p.correlation += panel * panels.steps * p.size();
    p.dx_first += panel * panels.size(), p.dx_second = p.dx_first + dx.numel();
    return p;
  };
  STD_TORCH_CHECK(grad.numel() == panels.batch * panels.steps * pointers_of(0).size(),
                  "rolling_correlation_backward: grad must be (..., T, N, N) or (..., T, N (N - 1) / 2)");
  const int64_t work = kLanes * window * N * (N + 8), grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work));
  parallel_for(0, (all + kLanes - 1) / kLanes, grain, [&](int64_t first, int64_t last) {
    CompleteGroups<scalar_t> complete(N, window);
    IncompleteGroup<scalar_t> incomplete(N, window);
    for (int64_t k = first * kLanes; k < std::min(last * kLanes, all); k += kLanes) {
      const int64_t lanes = std::min<int64_t>(kLanes, all - k);
      std::vector<Pointers<scalar_t>> pointers;
      bool used[kLanes];
      for (int64_t l = 0; l < kLanes; ++l) {
        const int64_t group = k + std::min(l, lanes - 1), panel = group / groups, begin = group % groups * window;
        complete.batch.load(l, x + panel * panels.size(), begin, panels.steps);
        pointers.push_back(pointers_of(panel));
        used[l] = l < lanes && complete.batch.complete[l];
      }
      gradient(complete, pointers.data(), used);
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t begin = complete.batch.begin[l];
        const scalar_t* panel = x + (k + l) / groups * panels.size();
        if (begin == 0) incomplete.group.load(panel, -window, panels.steps), gradient(incomplete, pointers[l]);
        if (!used[l]) incomplete.group.load(panel, begin, panels.steps), gradient(incomplete, pointers[l]);
      }
    }
  });
  scalar_t* output = dx.mutable_data_ptr<scalar_t>();
  for (int64_t k = 0; k < dx.numel(); ++k) output[k] = static_cast<scalar_t>(parts[k] + parts[dx.numel() + k]);
}

Tensor rolling_correlation_backward(const Tensor& returns_, const Tensor& grad_, const Tensor& correlation_,
                                    int64_t window) {
  STD_TORCH_CHECK(window >= 1 && returns_.dim() >= 2, "rolling_correlation_backward: returns (..., T, N), window >= 1");
  check_same("rolling_correlation_backward", grad_, correlation_);
  STD_TORCH_CHECK(grad_.scalar_type() == returns_.scalar_type(),
                  "rolling_correlation_backward: all tensors must have one dtype");
  window = limit_window(window, returns_.size(-2));
  const Tensor returns = contiguous(returns_), grad = contiguous(grad_), correlation = contiguous(correlation_);
  Tensor dx = new_empty(returns, returns.sizes());
  dispatch("rolling_correlation_backward", returns,
           [&]<typename scalar_t>() { run<scalar_t>(returns, grad, correlation, window, dx); });
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(rolling_correlation_backward,
                   "(Tensor returns, Tensor grad, Tensor correlation, SymInt window) -> Tensor")
