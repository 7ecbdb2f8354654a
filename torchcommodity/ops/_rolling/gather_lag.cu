// y_t = x_{t - lag_t} for (..., T, N), and the transpose (`scatter`). The transpose gathers as well, so that no two
// items add to the same value and results do not depend on their order.
#include "device.h"

using namespace commodity;

namespace {

struct Sources {
  const int64_t* lag;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  // The row t - lag_t, or `steps` if there is none.
  COMMODITY_INLINE int64_t row(int64_t panel, int64_t t, int64_t n) const {
    const int64_t rows = read(lag + at(panel, t, n));
    return rows >= 0 && rows <= t ? t - rows : steps;
  }
};

template <typename scalar_t>
struct Gather {
  Sources sources;
  const scalar_t* x;
  scalar_t* y;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t source = sources.row(panel, t, n);
    y[sources.at(panel, t, n)] = source < sources.steps ? read(x + sources.at(panel, source, n)) : 0;
  }
};

// Stretches of kChunk rows of a panel (steps, columns).
struct Chunks {
  int64_t steps, columns, chunks;
  Chunks(int64_t steps, int64_t columns) : steps(steps), columns(columns), chunks((steps + kChunk - 1) / kChunk) {}
  COMMODITY_INLINE int64_t end(int64_t chunk) const {
    return (chunk + 1) * kChunk < steps ? (chunk + 1) * kChunk : steps;
  }
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t chunk, int64_t column) const {
    return (panel * chunks + chunk) * columns + column;
  }
};

// The earliest source row of each chunk of rows.
struct EarliestOfChunk {
  Sources sources;
  Chunks chunks;
  int64_t* output;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t chunk) const {
    int64_t earliest = sources.steps;
    for (int64_t t = chunk * kChunk; t < chunks.end(chunk); ++t) {
      const int64_t row = sources.row(panel, t, n);
      earliest = row < earliest ? row : earliest;
    }
    output[chunks.at(panel, chunk, n)] = earliest;
  }
};

// Turns it into the earliest source row of each chunk and all chunks after it.
struct EarliestFromChunkOn {
  Chunks chunks;
  int64_t* earliest;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    int64_t minimum = chunks.steps;
    for (int64_t chunk = chunks.chunks - 1; chunk >= 0; --chunk) {
      int64_t& row = earliest[chunks.at(panel, chunk, n)];
      minimum = row = row < minimum ? row : minimum;
    }
  }
};

// An item computes kRows rows: it scans the later rows in time order, up to the last chunk whose sources go back so
// far.
template <typename scalar_t>
struct Scatter {
  static constexpr int kRows = 8;
  Sources sources;
  Chunks chunks;
  const int64_t* earliest;
  const scalar_t* x;
  scalar_t* y;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t group) const {
    const int64_t first = group * kRows, last = first + kRows - 1;
    double sums[kRows] = {};
    for (int64_t t = first; t < sources.steps; ++t) {
      if ((t == first || t % kChunk == 0) && read(earliest + chunks.at(panel, t / kChunk, n)) > last) break;
      const int64_t row = sources.row(panel, t, n);
      if (row < first || row > last) continue;
      const double value = read(x + sources.at(panel, t, n));
#pragma unroll
      for (int k = 0; k < kRows; ++k) sums[k] += row == first + k ? value : 0;
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (first + k < sources.steps) y[sources.at(panel, first + k, n)] = static_cast<scalar_t>(sums[k]);
  }
};

Tensor gather_lag(const Tensor& x_, const Tensor& lag_, bool scatter) {
  STD_TORCH_CHECK(x_.dim() >= 2 && x_.sizes().equals(lag_.sizes()), "gather_lag: x and lag must be (..., T, N)");
  STD_TORCH_CHECK(lag_.scalar_type() == torch::headeronly::ScalarType::Long, "gather_lag: lag must be int64");
  const Tensor x = contiguous(x_), lag = contiguous(lag_);
  Tensor y = new_empty(x, x.sizes());
  const Panels panels(x);
  const Sources sources{lag.const_data_ptr<int64_t>(), panels.steps, panels.assets};
  const Chunks chunks(panels.steps, panels.assets);
  const Tensor earliest = scratch(x, panels.batch * chunks.chunks * panels.assets);
  int64_t* rows = data_ptr<int64_t>(earliest);
  if (scatter) {
    launch_grid(x, Grid(panels.batch, panels.assets, chunks.chunks), EarliestOfChunk{sources, chunks, rows});
    launch_grid(x, Grid(panels.batch, panels.assets, 1), EarliestFromChunkOn{chunks, rows});
  }
  dispatch("gather_lag", x, [&]<typename scalar_t>() {
    const scalar_t* input = x.const_data_ptr<scalar_t>();
    scalar_t* output = y.mutable_data_ptr<scalar_t>();
    const auto grid = [&](int64_t rows) { return Grid(panels.batch, panels.assets, (panels.steps + rows - 1) / rows); };
    if (scatter)
      launch_grid(x, grid(Scatter<scalar_t>::kRows), Scatter<scalar_t>{sources, chunks, rows, input, output});
    else
      launch_grid(x, grid(1), Gather<scalar_t>{sources, input, output});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(gather_lag)
