// The gradient of rolling_correlation in its returns, from (..., T, N, N) matrices or (..., T, N (N - 1) / 2) pairs.
//
// With v_j the sum of squares of j about its mean m_j, over the rows common to i and j, and g the sum of the gradients
// of r_ij and r_ji:
// dx_j(s) = sum_i A_ij x_i(s) - B_ij x_j(s) + C_ij, summed over the windows that contain row s, where
// A = g / sqrt(v_i v_j), B = g r / v_j, C = B m_j - A m_i.
//
// As on the CPU, rows are in groups of `window`. Row s of a group is in the windows that end in its group from s on,
// whose weights are added backward in time, and in those that end in the next group up to s + window - 1, whose
// weights are added forward: a block walks through the rows of a group in one of the two directions, with the sums of
// kTile x kTile pairs in registers. No weights are stored, and nothing is subtracted.
#include "correlation_device.h"

using namespace commodity;

namespace {

// The gradients of the correlations, and the correlations, as matrices or in packed form.
template <typename scalar_t>
struct Pairs {
  const scalar_t *grad, *correlation;
  int assets, size;
  bool packed;

  // Element (i, j) of a row; zero if it is on the diagonal, is not stored, or one of the two is not finite.
  COMMODITY_INLINE void load(int64_t row, int i, int j, scalar_t& g, scalar_t& r) const {
    g = r = 0;
    if (i >= assets || j >= assets || (packed ? i >= j : i == j)) return;
    const int offset = packed ? i * (2 * assets - i - 1) / 2 + j - i - 1 : i * assets + j;
    g = read(grad + row * size + offset), r = read(correlation + row * size + offset);
    if ((g - g) + (r - r) != 0) g = r = 0;
  }
};

template <typename scalar_t>
struct TileShared {
  scalar_t grad[kTile][kTile + 1], correlation[kTile][kTile + 1];  // elements (j, i); + 1: banks of a column differ
  double x[kTile], mean[kTile], scale[kTile], anchor[kTile];       // of the i's; x and mean relative to the anchor
  double sums[kWarps][kTile];
};

// What a thread has loaded for the next step: elements (i, j), elements (j, i), and the columns i and j.
template <typename scalar_t>
struct Loaded {
  scalar_t grad[kOwn], correlation[kOwn], mirrored_grad[kOwn], mirrored_correlation[kOwn], x_i, x_j;
  Moments i, j;
};

template <typename scalar_t>
struct SumWindows {
  static constexpr int kThreads = kWarps * kWarp, kBlocks = 2, kPhases = 2;
  using Shared = TileShared<scalar_t>;
  struct Thread {
    int64_t panel, begin, rows;      // of the group
    int tile_i, tile_j, lane, warp;  // the first columns of the tile
    bool forward;
    double anchor_i, anchor_j;  // of columns tile_i + lane and tile_j + lane
    double a[kOwn] = {}, b[kOwn] = {}, c[kOwn] = {};
    Loaded<scalar_t> next;
  };

  FiniteValues<scalar_t> x;
  const Moments* moments;
  Pairs<scalar_t> pairs;
  const double* anchors;
  double* parts;  // of dx: (direction, tile of i, batch, steps, assets)
  int64_t window, batch, groups;
  int tiles;

  int64_t blocks() const { return batch * groups * 2 * tiles * tiles; }

  int64_t steps() const { return (window < x.steps ? window : x.steps) + 1; }  // a step writes the row of the last one

  COMMODITY_INLINE void start(Thread& thread, Shared&, int block, int number) const {
    thread.lane = number % kWarp, thread.warp = number / kWarp;
    thread.tile_j = block % tiles * kTile, thread.tile_i = block / tiles % tiles * kTile;
    const int64_t walk = block / tiles / tiles, group = walk / 2;
    thread.forward = walk % 2, thread.begin = group % groups * window, thread.panel = group / groups;
    thread.rows = thread.begin + window < x.steps ? window : x.steps - thread.begin;
    thread.anchor_i = anchor(thread, thread.tile_i), thread.anchor_j = anchor(thread, thread.tile_j);
    load_next(thread, 0);
  }
  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int, int step, int) const {
    if constexpr (phase == 0) {
      if (step > 0 && step <= thread.rows) write(thread, shared, step - 1);
      if (step < thread.rows) share(thread, shared);
    } else if (step < thread.rows) {
      add(thread, shared, step);
    }
  }
  COMMODITY_INLINE void finish(Thread&, Shared&, int, int) const {}

 private:
  COMMODITY_INLINE void share(const Thread& thread, Shared& shared) const {
    const Loaded<scalar_t>& next = thread.next;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      shared.grad[thread.warp * kOwn + k][thread.lane] = next.mirrored_grad[k];
      shared.correlation[thread.warp * kOwn + k][thread.lane] = next.mirrored_correlation[k];
    }
    if (thread.warp > 0) return;
    shared.x[thread.lane] = next.x_i - thread.anchor_i, shared.anchor[thread.lane] = thread.anchor_i;
    shared.mean[thread.lane] = next.i.mean - thread.anchor_i, shared.scale[thread.lane] = next.i.scale;
  }

  COMMODITY_INLINE void add(Thread& thread, Shared& shared, int64_t step) const {
    const Loaded<scalar_t> now = thread.next;
    if (step + 1 < thread.rows) load_next(thread, step + 1);
    const double x_j = now.x_j - thread.anchor_j;
    double sum = 0;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const int i = thread.warp * kOwn + k;
      if (thread.tile_i + i >= x.assets) break;
      const double g = double(now.grad[k]) + shared.grad[thread.lane][i];
      const double r = double(now.correlation[k]) + shared.correlation[thread.lane][i];
      if (g != 0) add_weights(thread, shared, now.j, step, k, g, pairs.packed ? r : r / 2);
      const double x_i = shared.x[i];
      sum += x_i + x_j == x_i + x_j ? thread.a[k] * x_i - thread.b[k] * x_j + thread.c[k] : 0;
    }
    shared.sums[thread.warp][thread.lane] = sum;
  }
  COMMODITY_INLINE double anchor(const Thread& thread, int tile) const {
    const int n = tile + thread.lane;
    return n < x.assets ? read(anchors + thread.panel * x.assets + n) : 0;
  }
  COMMODITY_INLINE static int64_t row(const Thread& thread, int64_t step) {
    return thread.begin + (thread.forward ? step : thread.rows - 1 - step);
  }
  // The window whose weights a step adds: the row in which it ends.
  COMMODITY_INLINE int64_t end(const Thread& thread, int64_t step) const {
    return row(thread, step) + (thread.forward ? window - 1 : 0);
  }

  COMMODITY_INLINE void load_next(Thread& thread, int64_t step) const {
    Loaded<scalar_t>& next = thread.next;
    next = {};
    const int64_t s = row(thread, step);
    const int i = thread.tile_i + thread.lane, j = thread.tile_j + thread.lane;
    if (i < x.assets) next.x_i = x(thread.panel, s, i);
    if (j < x.assets) next.x_j = x(thread.panel, s, j);
    const int64_t t = end(thread, step);
    const int own = thread.warp * kOwn;
    if (t >= x.steps || (thread.forward && step == 0)) return;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const int64_t matrix = thread.panel * x.steps + t;
      pairs.load(matrix, thread.tile_i + own + k, j, next.grad[k], next.correlation[k]);
      pairs.load(matrix, thread.tile_j + own + k, i, next.mirrored_grad[k], next.mirrored_correlation[k]);
    }
    if (i < x.assets) next.i = moments[x.at(thread.panel, t, i)];
    if (j < x.assets) next.j = moments[x.at(thread.panel, t, j)];
  }

  COMMODITY_INLINE void add_weights(Thread& thread, const Shared& shared, const Moments& of_j, int64_t step, int k,
                                    double g, double r) const {
    const int i = thread.warp * kOwn + k;
    double scale_i = shared.scale[i], scale_j = of_j.scale;  // 1 / sqrt(v)
    double mean_i = shared.mean[i], mean_j = of_j.mean - thread.anchor_j;
    if (mean_i + mean_j != mean_i + mean_j) {
      const PairMoments s(x, thread.panel, end(thread, step), window, thread.tile_i + i, thread.tile_j + thread.lane);
      scale_i = 1 / std::sqrt(s.xx), scale_j = 1 / std::sqrt(s.yy);
      mean_i = s.first_x + s.x / s.count - shared.anchor[i], mean_j = s.first_y + s.y / s.count - thread.anchor_j;
    }
    if (!(scale_i > 0 && scale_j > 0)) return;
    const double a = g * (scale_i * scale_j), b = g * r * (scale_j * scale_j);
    thread.a[k] += a, thread.b[k] += b, thread.c[k] += b * mean_j - a * mean_i;
  }

  // The sums of all warps, in the same order always.
  COMMODITY_INLINE void write(const Thread& thread, const Shared& shared, int64_t step) const {
    const int64_t j = thread.tile_j + thread.lane;
    if (thread.warp > 0 || j >= x.assets) return;
    double sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) sum += shared.sums[warp][thread.lane];
    const int64_t part = thread.forward * tiles + thread.tile_i / kTile;
    parts[part * batch * x.steps * x.assets + x.at(thread.panel, row(thread, step), j)] = sum;
  }
};

template <typename scalar_t>
struct SumParts {
  const double* parts;
  int64_t count, size;
  scalar_t* dx;

  COMMODITY_INLINE void operator()(int64_t i) const {
    double sum = 0;
    for (int64_t part = 0; part < count; ++part) sum += read(parts + part * size + i);
    dx[i] = static_cast<scalar_t>(sum);
  }
};

template <typename scalar_t, int kRows>
void run(const Tensor& returns, const Tensor& grad, const Tensor& correlation, int64_t window, Tensor& dx) {
  const Panels panels(returns);
  const bool packed = grad.dim() == returns.dim();
  const int64_t N = panels.assets, size = packed ? N * (N - 1) / 2 : N * N;
  STD_TORCH_CHECK(grad.numel() == panels.batch * panels.steps * size,
                  "rolling_correlation_backward: grad must be (..., T, N, N) or (..., T, N (N - 1) / 2)");
  STD_TORCH_CHECK(N * N <= std::numeric_limits<int>::max(), "rolling_correlation_backward: too many assets: ", N);
  const auto x = finite_values<scalar_t>(returns, panels);
  const Pairs<scalar_t> pairs{grad.const_data_ptr<scalar_t>(), correlation.const_data_ptr<scalar_t>(),
                              static_cast<int>(N), static_cast<int>(size), packed};
  const int tiles = static_cast<int>((N + kTile - 1) / kTile);
  const int64_t groups = (panels.steps + window - 1) / window;
  const Tensor anchors = scratch(dx, panels.batch * N), parts = scratch(dx, 2 * tiles * dx.numel());
  launch_grid(dx, Grid(panels.batch, N, 1), FirstFinite<scalar_t>{x, data_ptr<double>(anchors)});
  with_moments<scalar_t, kRows>(dx, panels, x, window, [&](const Moments* moments, const bool*) {
    const SumWindows<scalar_t> sums{
        x, moments, pairs, data_ptr<double>(anchors), data_ptr<double>(parts), window, panels.batch, groups, tiles};
    launch_loops(dx, sums.blocks(), sums.kThreads, sums.steps(), sums);
  });
  launch(dx, dx.numel(),
         SumParts<scalar_t>{data_ptr<double>(parts), 2 * tiles, dx.numel(), dx.mutable_data_ptr<scalar_t>()});
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
  dispatch("rolling_correlation_backward", returns, [&]<typename scalar_t>() {
    dispatch_rows<8>(window, [&]<int kRows>() { run<scalar_t, kRows>(returns, grad, correlation, window, dx); });
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(rolling_correlation_backward)
