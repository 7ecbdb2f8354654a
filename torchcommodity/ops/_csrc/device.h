// For every CUDA kernel: the grid over columns and chunks of time, dtype dispatch, scratch memory, and the parallel
// linear recurrence.
//
// A recurrence runs in chunks of kChunk rows (Blelloch's scan). Each row is an affine map y -> factor * y + offset.
//   1. Every chunk composes the maps of its rows into one map, all chunks in parallel.
//   2. The composed maps are themselves a shorter recurrence, solved in the same way: it gives the state before each
//      chunk.
//   3. Every chunk applies its rows to its state, all chunks in parallel.
#pragma once
#include <launch.h>

#include "affine.h"

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

// Temporary memory on the device of a tensor. It may be freed before the kernels that use it have run, since the
// allocator reuses it in stream order.
inline Tensor scratch(const Tensor& like, int64_t doubles) {
  return new_empty(like, {doubles}, torch::headeronly::ScalarType::Double);
}

template <typename T>
T* data_ptr(const Tensor& memory) {
  return static_cast<T*>(memory.mutable_data_ptr());
}

// The chunks of time of a panel (steps, columns).
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

// Step 1: the composed map of each chunk.
template <int K, typename Maps>
struct Compose {
  Maps maps;
  Chunks chunks;
  Affine<K>* composed;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t chunk) const {
    Affine<K> map{1};
    const int64_t end = chunks.end(chunk);
#pragma unroll 8
    for (int64_t t = chunk * kChunk; t < end; ++t) map = maps(panel, t, column).after(map);
    composed[chunks.at(panel, chunk, column)] = map;
  }
};

// The composed maps, as the rows of the shorter recurrence.
template <int K>
struct ComposedMaps {
  Chunks chunks;
  const Affine<K>* maps;
  COMMODITY_INLINE Affine<K> operator()(int64_t panel, int64_t chunk, int64_t column) const {
    return maps[chunks.at(panel, chunk, column)];
  }
};

// Step 3: applies the rows of a chunk to the state before it.
template <int K, typename Maps, typename Write>
struct Apply {
  Maps maps;
  Write write;
  Chunks chunks;
  const State<K>* initial;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t chunk) const {
    State<K> state = initial[chunks.at(panel, chunk, column)];
    const int64_t end = chunks.end(chunk);
#pragma unroll 8
    for (int64_t t = chunk * kChunk; t < end; ++t) {
      const State<K> previous = state;
      state = maps(panel, t, column)(previous);
      write(panel, t, column, previous, state);
    }
  }
};

template <int K, typename Initial>
struct SetInitial {
  Initial initial;
  int64_t columns;
  State<K>* states;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t) const {
    states[panel * columns + column] = initial(panel, column);
  }
};

template <int K>
struct StorePrevious {
  Chunks chunks;
  State<K>* states;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t chunk, int64_t column, const State<K>& previous,
                                   const State<K>&) const {
    states[chunks.at(panel, chunk, column)] = previous;
  }
};

// Step 2: the state before each chunk, by recursion over chunks of chunks.
template <int K, typename Maps, typename Initial>
Tensor states_before(const Tensor& like, int64_t batch, const Chunks& chunks, const Maps& maps,
                     const Initial& initial) {
  const int64_t count = batch * chunks.chunks * chunks.columns;
  const Tensor states = scratch(like, K * count);
  const Grid grid(batch, chunks.columns, chunks.chunks);
  if (chunks.chunks <= 1) {
    launch_grid(like, grid, SetInitial<K, Initial>{initial, chunks.columns, data_ptr<State<K>>(states)});
    return states;
  }
  const Tensor composed = scratch(like, (K + 1) * count);
  launch_grid(like, grid, Compose<K, Maps>{maps, chunks, data_ptr<Affine<K>>(composed)});
  const ComposedMaps<K> rows{chunks, data_ptr<Affine<K>>(composed)};
  const Chunks upper(chunks.chunks, chunks.columns);
  const Tensor upper_states = states_before<K>(like, batch, upper, rows, initial);
  const StorePrevious<K> store{chunks, data_ptr<State<K>>(states)};
  launch_grid(like, Grid(batch, upper.columns, upper.chunks),
              Apply<K, ComposedMaps<K>, StorePrevious<K>>{rows, store, upper, data_ptr<State<K>>(upper_states)});
  return states;
}

}  // namespace commodity
