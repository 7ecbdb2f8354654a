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

// What comes in for one panel, and what goes out: each row is in a first block and in a second one.
template <typename scalar_t>
struct Source {
  const scalar_t *grad, *correlation;
  double *as_first, *as_second;
  const int64_t assets;
  const bool packed;

  int64_t size() const { return packed ? assets * (assets - 1) / 2 : assets * assets; }

  double* sink(int64_t r, int64_t window, int64_t t) const { return (r < window ? as_first : as_second) + t * assets; }

  // Gradient of i and any other j at t, of both halves, and their correlation; what is not finite takes no part.
  void read(int64_t t, int64_t i, int64_t j, double& g, double& r) const {
    const int64_t low = std::min(i, j), high = std::max(i, j);
    g = r = 0;
    if (packed)
      take(t * size() + low * (2 * assets - low - 1) / 2 + high - low - 1, 1, g, r);
    else
      take(t * size() + i * assets + j, 0.5, g, r), take(t * size() + j * assets + i, 0.5, g, r);
  }

  // The same of every pair i < j, each `kLanes` after the one before it.
  void read_all(int64_t t, double* g, double* r) const {
    int64_t at = t * size();
    if (packed)
      for (const int64_t end = at + size(); at < end; ++at, g += kLanes, r += kLanes) *g = *r = 0, take(at, 1, *g, *r);
    else
      for (int64_t i = 0; i < assets; ++i)
        for (int64_t j = i + 1; j < assets; ++j, g += kLanes, r += kLanes) {
          double from = 0, about = 0;
          take(at + i * assets + j, 0.5, from, about), take(at + j * assets + i, 0.5, from, about);
          *g = from, *r = about;
        }
  }

 private:
  void take(int64_t at, double share, double& g, double& r) const {
    const double from = grad[at], about = correlation[at], known = (from - from) + (about - about);
    g += known == 0 ? from : 0, r += known == 0 ? share * about : 0;
  }
};

// Groups that miss nothing: v and m are a column's own, so B and C are summed over i at once.
template <typename scalar_t>
struct Complete {
  Team team;
  ManyLanes A, B, C, sum, dx, grad, r;

  Complete(int64_t assets, int64_t window)
      : team(assets, window),
        A(window * team.pairs),
        B(window * assets),
        C(window * assets),
        sum(team.pairs + 2 * assets),
        dx(assets),
        grad(team.pairs),
        r(team.pairs) {}

  void run(const Source<scalar_t>* sources, const bool* wanted) {
    team.columns();
    std::fill(B.begin(), B.end(), Lanes{}), std::fill(C.begin(), C.end(), Lanes{});
    for (int64_t w = 0; w < team.window; ++w) weigh(w, sources, wanted);
    spread(0, team.window, 1, sources, wanted);
    spread(team.rows - 1, team.window - 1, -1, sources, wanted);
  }

 private:
  void weigh(int64_t w, const Source<scalar_t>* sources, const bool* wanted) {
    const int64_t N = team.assets;
    const Lanes *s = &team.sum[w * N], *own = &team.scale[w * N], *g = grad.data(), *about = r.data();
    Lanes *a = &A[w * team.pairs], *b = &B[w * N], *c = &C[w * N];
    for (int l = 0; l < kLanes; ++l)
      if (wanted[l] && w < team.windows[l])
        sources[l].read_all(team.begin[l] + w + team.window - 1, reinterpret_cast<double*>(grad.data()) + l,
                            reinterpret_cast<double*>(r.data()) + l);
      else
        for (Lanes& each : grad) each[l] = 0;
    for (int64_t i = 0; i < N; ++i) {
      Lanes mine = b[i], level = c[i];
      for (int64_t j = i + 1; j < N; ++j, ++a, ++g, ++about) {
        const Lanes weight = *g != 0.0 ? *g * (own[i] * own[j]) : Lanes{};  // NaN where a column stands still
        const Lanes pull = *g * *about;
        mine += pull, b[j] += pull;
        level -= weight * s[j], c[j] -= weight * s[i];
        *a = weight;
      }
      b[i] = mine != 0.0 ? mine * own[i] * own[i] : Lanes{};
      c[i] = (level + b[i] * s[i]) / static_cast<double>(team.window);
    }
  }

  // Adds the windows one after another, and with each the row that no window before it holds.
  void spread(int64_t from, int64_t to, int64_t step, const Source<scalar_t>* sources, const bool* wanted) {
    const int64_t N = team.assets, ahead = step > 0 ? 0 : team.window - 1;
    Lanes *b = &sum[team.pairs], *c = b + N;
    std::fill(sum.begin(), sum.end(), Lanes{});
    for (int64_t row = from; row != to; row += step) {
      const int64_t w = row - ahead;
      const Lanes *x = &team.x[row * N], *more = &A[w * team.pairs];
      for (int64_t i = 0; i < N; ++i) {
        b[i] += B[w * N + i], c[i] += C[w * N + i];
        dx[i] = c[i] - x[i] * b[i];
      }
      Lanes* a = sum.data();
      for (int64_t i = 0; i < N; ++i) {
        Lanes own = {};
        for (int64_t j = i + 1; j < N; ++j, ++a) {
          *a += *more++;
          own += *a * x[j], dx[j] += *a * x[i];
        }
        dx[i] += own;
      }
      for (int l = 0; l < kLanes; ++l)
        if (wanted[l] && row < team.windows[l] + team.window - 1) {
          double* into = sources[l].sink(row, team.window, team.begin[l] + row);
          for (int64_t i = 0; i < N; ++i) into[i] = dx[i][l];
        }
    }
  }
};

// A group with holes, column by column against all, over the rows that both have.
template <typename scalar_t>
struct Holed {
  Group g;
  std::vector<double> A, B, C, sum, dx;

  Holed(int64_t assets, int64_t window)
      : g(assets, window),
        A(window * g.width),
        B(window * g.width),
        C(window * g.width),
        sum(3 * g.width),
        dx(g.rows * g.width) {}

  void run(const Source<scalar_t>& source) {
    std::fill(dx.begin(), dx.end(), 0.0);
    for (int64_t i = 0; i < g.assets; ++i) {
      if (!weigh(i, source)) continue;
      spread(i, 0, g.window, 1);
      spread(i, g.rows - 1, g.window - 1, -1);
    }
    for (int64_t r = std::max<int64_t>(0, -g.begin); r < g.windows + g.window - 1; ++r)
      std::copy_n(&dx[r * g.width], g.assets, source.sink(r, g.window, g.begin + r));
  }

 private:
  bool weigh(int64_t i, const Source<scalar_t>& source) {
    const int64_t N = g.width, skip = g.begin < 0 ? 1 : 0;  // window 0 then ends before the panel begins
    std::fill(A.begin(), A.end(), 0.0), std::fill(B.begin(), B.end(), 0.0);
    bool any = false;
    for (int64_t w = skip; w < g.windows; ++w)
      for (int64_t j = 0; j < g.assets; ++j) {
        if (j != i) source.read(g.end(w), i, j, A[w * N + j], B[w * N + j]);
        any |= A[w * N + j] != 0;
      }
    if (!any) return false;
    Shared sums(g, i);
    for (int64_t w = 0; w < g.windows; ++w) {
      double *a = &A[w * N], *b = &B[w * N], *c = &C[w * N];
      sums.advance(w);
      for (int64_t j = 0; j < N; ++j) {
        const double count = sums.total(Shared::kCount, j), x = sums.total(Shared::kX, j),
                     y = sums.total(Shared::kY, j);
        const double xx = sums.total(Shared::kXX, j) - x * x / count, yy = sums.total(Shared::kYY, j) - y * y / count;
        const bool moves = (xx > 0) & (yy > 0) & (a[j] != 0);
        b[j] = moves ? a[j] * b[j] / yy : 0;
        a[j] = moves ? a[j] / std::sqrt(xx * yy) : 0;
        c[j] = moves ? (b[j] * y - a[j] * x) / count : 0;
      }
    }
    return true;
  }

  void spread(int64_t i, int64_t from, int64_t to, int64_t step) {
    const int64_t N = g.width, ahead = step > 0 ? 0 : g.window - 1;
    double *a = sum.data(), *b = a + N, *c = b + N;
    std::fill(sum.begin(), sum.end(), 0.0);
    for (int64_t row = from; row != to; row += step) {
      const int64_t w = row - ahead;
      const double *x = &g.x[row * N], *present = &g.present[row * N], value = x[i], own = present[i];
      double* into = &dx[row * N];
      for (int64_t j = 0; j < N; ++j) {
        if (w < g.windows) a[j] += A[w * N + j], b[j] += B[w * N + j], c[j] += C[w * N + j];
        into[j] += own * present[j] * (a[j] * value - b[j] * x[j] + c[j]);
      }
    }
  }
};

COMMODITY_SIMD void gradient(Complete<float>& team, const Source<float>* sources, const bool* wanted) {
  team.run(sources, wanted);
}
COMMODITY_SIMD void gradient(Complete<double>& team, const Source<double>* sources, const bool* wanted) {
  team.run(sources, wanted);
}
COMMODITY_SIMD void gradient(Holed<float>& group, const Source<float>& source) { group.run(source); }
COMMODITY_SIMD void gradient(Holed<double>& group, const Source<double>& source) { group.run(source); }

template <typename scalar_t>
void run(const Tensor& returns, const Tensor& grad, const Tensor& correlation, int64_t window, Tensor& dx) {
  const Panels panels(returns);
  const int64_t N = panels.assets, groups = std::max<int64_t>(1, panels.steps / window), all = panels.batch * groups;
  std::vector<double> parts(2 * dx.numel());
  const scalar_t* from = returns.const_data_ptr<scalar_t>();
  const auto source = [&](int64_t panel) {
    Source<scalar_t> s{
        grad.const_data_ptr<scalar_t>(), correlation.const_data_ptr<scalar_t>(), parts.data(), nullptr, N,
        grad.dim() == returns.dim()};
    s.grad += panel * panels.steps * s.size(), s.correlation += panel * panels.steps * s.size();
    s.as_first += panel * panels.size(), s.as_second = s.as_first + dx.numel();
    return s;
  };
  STD_TORCH_CHECK(grad.numel() == panels.batch * panels.steps * source(0).size(),
                  "rolling_correlation_backward: grad must be (..., T, N, N) or (..., T, N (N - 1) / 2)");
  const int64_t work = kLanes * window * N * (N + 8);
  torch::stable::parallel_for(0, (all + kLanes - 1) / kLanes, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work)),
                              [&](int64_t first, int64_t last) {
                                Complete<scalar_t> complete(N, window);
                                Holed<scalar_t> holed(N, window);
                                for (int64_t k = first * kLanes; k < std::min(last * kLanes, all); k += kLanes) {
                                  const int64_t members = std::min<int64_t>(kLanes, all - k);
                                  std::vector<Source<scalar_t>> sources;
                                  bool wanted[kLanes];
                                  for (int64_t l = 0; l < kLanes; ++l) {
                                    const int64_t which = k + std::min(l, members - 1), panel = which / groups,
                                                  begin = which % groups * window;
                                    complete.team.load(l, from + panel * panels.size(), begin, panels.steps);
                                    sources.push_back(source(panel));
                                    wanted[l] = l < members && complete.team.complete[l];
                                  }
                                  gradient(complete, sources.data(), wanted);
                                  for (int64_t l = 0; l < members; ++l) {
                                    const int64_t begin = complete.team.begin[l];
                                    const scalar_t* panel = from + (k + l) / groups * panels.size();
                                    if (begin == 0)
                                      holed.g.load(panel, -window, panels.steps), gradient(holed, sources[l]);
                                    if (!wanted[l])
                                      holed.g.load(panel, begin, panels.steps), gradient(holed, sources[l]);
                                  }
                                }
                              });
  scalar_t* to = dx.mutable_data_ptr<scalar_t>();
  for (int64_t k = 0; k < dx.numel(); ++k) to[k] = static_cast<scalar_t>(parts[k] + parts[dx.numel() + k]);
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
