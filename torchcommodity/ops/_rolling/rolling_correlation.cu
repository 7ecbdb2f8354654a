// Rolling Pearson correlation of every pair over (..., T, N): matrices (..., T, N, N), or the pairs i < j if packed.
//
// A block takes a tile of pairs and a few windows (device_windows.h), and brings their rows into shared memory;
// neighboring lanes of a warp write neighboring elements of a matrix. Values are relative to a row that all windows of
// the block contain. Pairs with a missing value in their window are summed again, over the rows in which both values
// are finite.
#include "correlation_device.h"

using namespace commodity;

namespace {

// Writes the value of a pair into a matrix, or once, in the order of torch.triu_indices.
template <typename scalar_t>
struct Output {
  scalar_t* y;
  int64_t assets;
  bool packed;

  COMMODITY_INLINE bool contains(int64_t i, int64_t j) const { return !packed || i < j; }
  COMMODITY_INLINE void write(int64_t row, int64_t i, int64_t j, double r) const {
    const int64_t pair = packed ? i * (2 * assets - i - 1) / 2 + j - i - 1 : i * assets + j;
    const double clipped = r != r ? NAN : r > 1 || i == j ? 1 : r < -1 ? -1 : r;
    y[row * (packed ? assets * (assets - 1) / 2 : assets * assets) + pair] = static_cast<scalar_t>(clipped);
  }
};

// The rows that all windows of a block share are added first, kRows in each step and backward in time, then those
// before them in one step, then those after them.
template <typename scalar_t, int kWindows>
struct CompletePairs {
  static_assert(kWindows <= kWarps);
  static constexpr int kRows = kWindows, kThreads = kWarps * kWarp, kBlocks = 2, kPhases = 2;
  struct alignas(16) Shared {
    double x_i[kRows][kTile], x_j[kRows][kTile], anchor_i[kTile], anchor_j[kTile];
  };
  struct Thread {
    int64_t panel, first, tile_i, tile_j;  // first: the row in which the first window ends
    int lane, warp;
    bool used;
    scalar_t anchor_i, anchor_j, next_i, next_j;  // of the columns that the thread loads, row `warp` of a step
    double sums[kOwn] = {}, suffix[kRows][kOwn];
  };

  FiniteValues<scalar_t> x;
  const Moments* moments;
  Output<scalar_t> output;
  int64_t window, batch, tiles;

  int64_t blocks() const { return batch * ((x.steps + kRows - 1) / kRows) * tiles * tiles; }

  int64_t steps() const { return shared_steps() + 2; }

  COMMODITY_INLINE void start(Thread& thread, Shared& shared, int block, int number) const {
    thread.lane = number % kWarp, thread.warp = number / kWarp;
    thread.tile_j = block % tiles * kTile, thread.tile_i = block / tiles % tiles * kTile;
    const int64_t group = block / tiles / tiles, groups = (x.steps + kRows - 1) / kRows;
    thread.first = group % groups * kRows, thread.panel = group / groups;
    thread.used = output.contains(thread.tile_i, thread.tile_j + kTile - 1);
    thread.anchor_i = value(thread, thread.first, thread.tile_i);
    thread.anchor_j = value(thread, thread.first, thread.tile_j);
    if (thread.warp == 0)
      shared.anchor_i[thread.lane] = thread.anchor_i, shared.anchor_j[thread.lane] = thread.anchor_j;
    if (thread.used) load_next(thread, 0);
  }

  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int, int step, int) const {
    if (!thread.used) return;
    if constexpr (phase == 1)
      add(thread, shared, step);
    else if (thread.warp < kRows) {
      shared.x_i[thread.warp][thread.lane] = double(thread.next_i) - thread.anchor_i;
      shared.x_j[thread.warp][thread.lane] = double(thread.next_j) - thread.anchor_j;
    }
  }

  // The rows after the first window are those of the last step, and still in shared memory.
  COMMODITY_INLINE void finish(Thread& thread, const Shared& shared, int, int) const {
    if (!thread.used) return;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) thread.sums[k] = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r > 0) add_row(thread, shared, r - 1);
      write(thread, shared, r);
    }
  }

 private:
  COMMODITY_INLINE void add(Thread& thread, const Shared& shared, int64_t step) const {
    if (step <= shared_steps()) load_next(thread, step + 1);
    if (step < shared_steps()) {
      const int64_t left = shared_rows() - step * kRows;
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (r < left) add_row(thread, shared, r);
    } else if (step == shared_steps()) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int k = 0; k < kOwn; ++k) thread.suffix[kRows - 1 - r][k] = thread.sums[k];
        if (r < kRows - 1) add_row(thread, shared, r);
      }
    }
  }
  COMMODITY_INLINE int64_t shared_rows() const { return window - kRows + 1; }
  COMMODITY_INLINE int64_t shared_steps() const { return (shared_rows() + kRows - 1) / kRows; }
  COMMODITY_INLINE scalar_t value(const Thread& thread, int64_t t, int64_t tile) const {
    return tile + thread.lane < x.assets ? x(thread.panel, t, tile + thread.lane) : 0;
  }

  COMMODITY_INLINE void load_next(Thread& thread, int64_t step) const {
    const int64_t t = step < shared_steps()    ? thread.first - step * kRows - thread.warp
                      : step == shared_steps() ? thread.first - shared_rows() - thread.warp
                                               : thread.first + 1 + thread.warp;
    thread.next_i = value(thread, t, thread.tile_i), thread.next_j = value(thread, t, thread.tile_j);
  }

  COMMODITY_INLINE void add_row(Thread& thread, const Shared& shared, int r) const {
    const double x_j = shared.x_j[r][thread.lane];
#pragma unroll
    for (int k = 0; k < kOwn; ++k) thread.sums[k] += shared.x_i[r][thread.warp * kOwn + k] * x_j;
  }

  // The correlations of window r.
  COMMODITY_INLINE void write(const Thread& thread, const Shared& shared, int r) const {
    const int64_t t = thread.first + r, j = thread.tile_j + thread.lane;
    if (!x.has_row(t) || j >= x.assets) return;
    const Moments b = moments[x.at(thread.panel, t, j)];
    const double offset_j = b.mean - shared.anchor_j[thread.lane];
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const int64_t i = thread.tile_i + thread.warp * kOwn + k;
      if (i >= x.assets || !output.contains(i, j)) continue;
      const Moments a = moments[x.at(thread.panel, t, i)];
      const double offsets = (a.mean - shared.anchor_i[thread.warp * kOwn + k]) * offset_j * window;
      const double sum = thread.suffix[r][k] + thread.sums[k];
      output.write(thread.panel * x.steps + t, i, j, (sum - offsets) * (a.scale * b.scale));
    }
  }
};

template <typename scalar_t, int kWindows>
struct IncompletePairs {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const Moments* moments;
  const bool* incomplete;
  Output<scalar_t> output;
  int64_t window;
  double min_periods;

  // The pairs of one column with kTile others.
  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t first) const {
    const int64_t j = column % x.assets, begin = column / x.assets * kTile;
    const bool* missing = incomplete + (panel * ((x.steps + kRows - 1) / kRows) + first / kRows) * x.assets;
    for (int64_t i = begin; i < begin + kTile && i < x.assets; ++i)
      if (output.contains(i, j) && (missing[i] || missing[j])) correlate(panel, i, j, first);
  }

 private:
  COMMODITY_INLINE void correlate(int64_t panel, int64_t i, int64_t j, int64_t first) const {
    for (int64_t t = first; t < first + kRows && x.has_row(t); ++t) {
      const double means = moments[x.at(panel, t, i)].mean + moments[x.at(panel, t, j)].mean;
      if (means == means) continue;
      const PairMoments s(x, panel, t, window, i, j);
      const double r = s.defined(min_periods) ? s.xy * (1 / std::sqrt(s.xx) * (1 / std::sqrt(s.yy))) : NAN;
      output.write(panel * x.steps + t, i, j, r);
    }
  }
};

Tensor correlations(const Tensor& returns_, int64_t window, int64_t min_periods, bool packed) {
  STD_TORCH_CHECK(window >= 1 && returns_.dim() >= 2, "rolling_correlation: returns (..., T, N), window >= 1");
  window = limit_window(window, returns_.size(-2));
  const Tensor returns = contiguous(returns_);
  const Panels panels(returns);
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  const int64_t N = shape.back();
  if (packed)
    shape.back() = N * (N - 1) / 2;
  else
    shape.push_back(N);
  Tensor y = new_empty(returns, shape);
  dispatch("rolling_correlation", returns, [&]<typename scalar_t>() {
    const auto x = finite_values<scalar_t>(returns, panels);
    const Output<scalar_t> output{y.mutable_data_ptr<scalar_t>(), N, packed};
    const int64_t tiles = (N + kTile - 1) / kTile;
    const Panels pairs(panels.batch, panels.steps, N * tiles);
    dispatch_rows<8>(window, [&]<int kRows>() {
      with_moments<scalar_t, kRows>(y, panels, x, window, [&](const Moments* moments, const bool* incomplete) {
        const CompletePairs<scalar_t, kRows> complete{x, moments, output, window, panels.batch, tiles};
        launch_loops(y, complete.blocks(), complete.kThreads, complete.steps(), complete);
        launch_windows(y, pairs,
                       IncompletePairs<scalar_t, kRows>{x, moments, incomplete, output, window, double(min_periods)});
      });
    });
  });
  return y;
}

Tensor rolling_correlation(const Tensor& returns, int64_t window, std::optional<int64_t> min_periods) {
  return correlations(returns, window, min_periods.value_or(window), false);
}

Tensor rolling_correlation_pairs(const Tensor& returns, int64_t window, std::optional<int64_t> min_periods) {
  return correlations(returns, window, min_periods.value_or(window), true);
}

}  // namespace

COMMODITY_CUDA(rolling_correlation)
COMMODITY_CUDA(rolling_correlation_pairs)
