// y_t = x_{t - since_t} for (..., T, N), and its transpose, which gathers: no two items add to the same number.
#include "device.h"

using namespace commodity;

namespace {

struct Ages {
  const int64_t* since;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  // the row that row t looks at, or beyond all
  COMMODITY_INLINE int64_t row(int64_t panel, int64_t t, int64_t n) const {
    const int64_t ago = read(since + at(panel, t, n));
    return ago >= 0 && ago <= t ? t - ago : steps;
  }
};

template <typename scalar_t>
struct Look {
  Ages ages;
  const scalar_t* x;
  scalar_t* y;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t there = ages.row(panel, t, n);
    y[ages.at(panel, t, n)] = there < ages.steps ? read(x + ages.at(panel, there, n)) : 0;
  }
};

// The earliest row that a chunk of rows looks at; then, chunk by chunk from the last, that it and all later ones do.
struct Earliest {
  Ages ages;
  Chunks chunks;
  int64_t* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t chunk) const {
    int64_t earliest = ages.steps;
    for (int64_t t = chunk * kChunk; t < chunks.end(chunk); ++t) {
      const int64_t row = ages.row(panel, t, n);
      earliest = row < earliest ? row : earliest;
    }
    to[chunks.at(panel, chunk, n)] = earliest;
  }
};

struct FromHereOn {
  Chunks chunks;
  int64_t* earliest;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    int64_t least = chunks.steps;
    for (int64_t chunk = chunks.chunks - 1; chunk >= 0; --chunk) {
      int64_t& own = earliest[chunks.at(panel, chunk, n)];
      least = own = own < least ? own : least;
    }
  }
};

// Each of a few rows sums what later rows see in it, in the order of time, for as long as any of them looks so far
// back.
template <typename scalar_t>
struct Gather {
  static constexpr int kRows = 8;
  Ages ages;
  Chunks chunks;
  const int64_t* earliest;
  const scalar_t* x;
  scalar_t* y;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t group) const {
    const int64_t first = group * kRows, last = first + kRows - 1;
    double sums[kRows] = {};
    for (int64_t t = first; t < ages.steps; ++t) {
      if ((t == first || t % kChunk == 0) && read(earliest + chunks.at(panel, t / kChunk, n)) > last) break;
      const int64_t row = ages.row(panel, t, n);
      if (row < first || row > last) continue;
      const double value = read(x + ages.at(panel, t, n));
#pragma unroll
      for (int k = 0; k < kRows; ++k) sums[k] += row == first + k ? value : 0;
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (first + k < ages.steps) y[ages.at(panel, first + k, n)] = static_cast<scalar_t>(sums[k]);
  }
};

Tensor gather_lag(const Tensor& x_, const Tensor& since_, bool spread) {
  STD_TORCH_CHECK(x_.dim() >= 2 && x_.sizes().equals(since_.sizes()), "gather_lag: x and since must be (..., T, N)");
  STD_TORCH_CHECK(since_.scalar_type() == torch::headeronly::ScalarType::Long, "gather_lag: since must be int64");
  const Tensor x = contiguous(x_), since = contiguous(since_);
  Tensor y = new_empty(x, x.sizes());
  const Panels panels(x);
  const Ages ages{since.const_data_ptr<int64_t>(), panels.steps, panels.assets};
  const Chunks chunks(panels.steps, panels.assets);
  const Tensor earliest = scratch(x, panels.batch * chunks.chunks * panels.assets);
  int64_t* rows = data_ptr<int64_t>(earliest);
  if (spread) {
    launch_grid(x, Grid(panels.batch, panels.assets, chunks.chunks), Earliest{ages, chunks, rows});
    launch_grid(x, Grid(panels.batch, panels.assets, 1), FromHereOn{chunks, rows});
  }
  dispatch("gather_lag", x, [&]<typename scalar_t>() {
    const scalar_t* from = x.const_data_ptr<scalar_t>();
    scalar_t* to = y.mutable_data_ptr<scalar_t>();
    const auto grid = [&](int64_t rows) { return Grid(panels.batch, panels.assets, (panels.steps + rows - 1) / rows); };
    if (spread)
      launch_grid(x, grid(Gather<scalar_t>::kRows), Gather<scalar_t>{ages, chunks, rows, from, to});
    else
      launch_grid(x, grid(1), Look<scalar_t>{ages, from, to});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(gather_lag)
