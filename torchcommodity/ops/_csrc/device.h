// What every CUDA kernel shares: how columns and time are handed out, and the recurrence in chunks of time.
#pragma once
#include <launch.h>

namespace commodity {

// One item for each column and chunk of time. Neighbours in a warp are neighbours in a row; chunks of the same columns
// lie together, so that the rows which they share are in the cache.
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
struct OnGrid {
  Grid grid;
  Body body;

  COMMODITY_INLINE void operator()(int64_t i) const {
    const int64_t lane = i % grid.tile, chunk = i / grid.tile % grid.chunks, rest = i / grid.tile / grid.chunks;
    const int64_t column = rest % grid.tiles * grid.tile + lane;
    if (column < grid.columns) body(rest / grid.tiles, column, chunk);
  }
};

// body(panel, column, chunk), for every one of them.
template <typename Body>
void launch_grid(const Tensor& on, const Grid& grid, const Body& body) {
  launch(on, grid.items(), OnGrid<Body>{grid, body});
}

// body of the dtype of `x`, float or double: `[&]<typename scalar_t> { ... }`.
template <typename Body>
void dispatch(const char* operation, const Tensor& x, const Body& body) {
  using torch::headeronly::ScalarType;
  const ScalarType dtype = x.scalar_type();
  STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double, operation, ": float32 or float64; got ",
                  torch::headeronly::toString(dtype));
  dtype == ScalarType::Float ? body.template operator()<float>() : body.template operator()<double>();
}

inline int64_t chunks_of(int64_t steps, int64_t length = kChunk) { return (steps + length - 1) / length; }

// Memory on the device of a tensor. It may go before its kernels are done: the stream hands it out in order.
inline Tensor scratch(const Tensor& on, int64_t doubles) {
  return new_empty(on, {doubles}, torch::headeronly::ScalarType::Double);
}

template <typename T>
T* data_of(const Tensor& memory) {
  return static_cast<T*>(memory.mutable_data_ptr());
}

// y -> factor y + added
struct Affine {
  double factor, added;
  COMMODITY_INLINE double operator()(double y) const { return y == 0 && factor == factor ? added : factor * y + added; }
  COMMODITY_INLINE Affine after(const Affine& first) const {
    return {factor * first.factor, factor * first.added + added};
  }
};

// Composes the maps of a chunk.
template <typename Maps>
struct Compose {
  Maps maps;
  int64_t steps, columns, chunks;
  Affine* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t chunk) const {
    Affine all{1, 0};
    const int64_t end = chunk * kChunk + kChunk < steps ? chunk * kChunk + kChunk : steps;
#pragma unroll 8
    for (int64_t t = chunk * kChunk; t < end; ++t) all = maps(panel, t, column).after(all);
    to[(panel * chunks + chunk) * columns + column] = all;
  }
};

// Applies maps one after the other, from `initial` in the first chunk and from what `before` holds in the others.
template <typename Maps, typename Initial, typename Write>
struct Apply {
  Maps maps;
  Initial initial;
  Write write;
  int64_t steps, columns, chunks;
  const double* before;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t chunk) const {
    double y = chunk ? before[(panel * chunks + chunk) * columns + column] : initial(panel, column);
    const int64_t end = chunk * kChunk + kChunk < steps ? chunk * kChunk + kChunk : steps;
#pragma unroll 8
    for (int64_t t = chunk * kChunk; t < end; ++t) {
      const double previous = y;
      y = maps(panel, t, column)(y);
      write(panel, t, column, previous, y);
    }
  }
};

struct ComposedMaps {
  const Affine* maps;
  int64_t chunks, columns;
  COMMODITY_INLINE Affine operator()(int64_t panel, int64_t t, int64_t column) const {
    return {read(&maps[(panel * chunks + t) * columns + column].factor),
            read(&maps[(panel * chunks + t) * columns + column].added)};
  }
};

struct WriteBefore {
  double* to;
  int64_t chunks, columns;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t column, double previous, double) const {
    to[(panel * chunks + t) * columns + column] = previous;
  }
};

// y_t = maps(panel, t, column)(y_{t-1}) from y_{-1} = initial(panel, column), then write(panel, t, column, y_{t-1},
// y_t). Chunks of time are composed, the chunks are chained by the same means, and every chunk then runs from where the
// last one ended: what is read twice is near in time, and sums are in double.
template <typename Maps, typename Initial, typename Write>
void recur(const Tensor& on, int64_t batch, int64_t steps, int64_t columns, const Maps& maps, const Initial& initial,
           const Write& write) {
  const int64_t chunks = chunks_of(steps);
  const Grid grid(batch, columns, chunks);
  const Tensor before = scratch(on, chunks > 1 ? batch * chunks * columns : 0);
  if (chunks > 1) {
    const Tensor whole = scratch(on, 2 * batch * chunks * columns);
    launch_grid(on, grid, Compose<Maps>{maps, steps, columns, chunks, data_of<Affine>(whole)});
    recur(on, batch, chunks, columns, ComposedMaps{data_of<Affine>(whole), chunks, columns}, initial,
          WriteBefore{data_of<double>(before), chunks, columns});
  }
  launch_grid(on, grid, Apply<Maps, Initial, Write>{maps, initial, write, steps, columns, chunks,
                                                    data_of<double>(before)});
}

}  // namespace commodity
