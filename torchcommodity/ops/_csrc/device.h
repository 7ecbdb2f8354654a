// For every CUDA kernel: the grid over columns and stretches of time, and scratch memory.
#pragma once
#include <launch.h>

namespace commodity {

// One item per panel, column and chunk of time. Neighboring lanes of a warp read neighboring columns; consecutive warps
// take chunks of the same columns, so that the rows they share are in the cache.
struct Grid {
  int64_t batch, columns, chunks, tile, tiles;
  Grid(int64_t batch, int64_t columns, int64_t chunks)
      : batch(batch),
        columns(columns),
        chunks(chunks),
        tile(std::max<int64_t>(1, std::min<int64_t>(kWarp, columns))),
        tiles((columns + tile - 1) / tile) {}
  int64_t items() const { return batch * tiles * chunks * tile; }
};

template <typename Body>
struct GridItem {
  Grid grid;
  Body body;

  template <typename... Memory>
  COMMODITY_INLINE void operator()(int64_t i, const Memory&... memory) const {
    const int64_t lane = i % grid.tile, chunk = i / grid.tile % grid.chunks, rest = i / grid.tile / grid.chunks;
    const int64_t column = rest % grid.tiles * grid.tile + lane;
    if (column < grid.columns) body(rest / grid.tiles, column, chunk, memory...);
  }
};

// Calls body(panel, column, chunk) for every item.
template <typename Body>
void launch_grid(const Tensor& like, const Grid& grid, const Body& body) {
  launch(like, grid.items(), GridItem<Body>{grid, body});
}

inline namespace on_gpu {

template <typename scalar_t>
COMMODITY_INLINE bool is_finite(scalar_t x) {
  return std::abs(x) < INFINITY;
}

}  // namespace on_gpu

// Temporary memory on the device of a tensor. It may be freed before the kernels that use it have run, since the
// allocator reuses it in stream order.
inline Tensor scratch(const Tensor& like, int64_t doubles) {
  return new_empty(like, {doubles}, torch::headeronly::ScalarType::Double);
}

template <typename T>
T* data_ptr(const Tensor& memory) {
  return static_cast<T*>(memory.mutable_data_ptr());
}

}  // namespace commodity
