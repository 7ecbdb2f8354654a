// What every CUDA kernel shares: how columns and time are handed out, and the recurrence in chunks of time.
#pragma once
#include <launch.h>

namespace commodity {

// One item for each column and chunk of time. Neighbors in a warp are neighbors in a row; chunks of the same columns
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

// Memory on the device of a tensor. It may go before its kernels are done: the stream hands it out in order.
inline Tensor scratch(const Tensor& on, int64_t doubles) {
  return new_empty(on, {doubles}, torch::headeronly::ScalarType::Double);
}

template <typename T>
T* data_of(const Tensor& memory) {
  return static_cast<T*>(memory.mutable_data_ptr());
}

// States y_1 .. y_K, each of which a row takes to factor y_k + added_k.
template <int K = 1>
struct State {
  double y[K];
};

template <int K = 1>
struct Affine {
  double factor, added[K];

  COMMODITY_INLINE State<K> operator()(const State<K>& from) const {
    State<K> to;
    for (int k = 0; k < K; ++k)  // a product of factors may overflow where a state of zero stays zero
      to.y[k] = from.y[k] == 0 && factor == factor ? added[k] : factor * from.y[k] + added[k];
    return to;
  }
  COMMODITY_INLINE Affine after(const Affine& first) const {
    Affine both{factor * first.factor};
    for (int k = 0; k < K; ++k) both.added[k] = factor * first.added[k] + added[k];
    return both;
  }
};

// Where a panel of (steps, columns) is cut into chunks of time.
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

// The maps of each chunk as one.
template <int K, typename Maps>
struct Compose {
  Maps maps;
  Chunks chunks;
  Affine<K>* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t chunk) const {
    Affine<K> all{1};
    const int64_t end = chunks.end(chunk);
#pragma unroll 8
    for (int64_t t = chunk * kChunk; t < end; ++t) all = maps(panel, t, column).after(all);
    to[chunks.at(panel, chunk, column)] = all;
  }
};

template <int K>
struct Composed {
  Chunks chunks;
  const Affine<K>* maps;
  COMMODITY_INLINE Affine<K> operator()(int64_t panel, int64_t chunk, int64_t column) const {
    return maps[chunks.at(panel, chunk, column)];
  }
};

// Every row of a chunk in turn, from the state before it.
template <int K, typename Maps, typename Write>
struct Apply {
  Maps maps;
  Write write;
  Chunks chunks;
  const State<K>* before;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t chunk) const {
    State<K> now = before[chunks.at(panel, chunk, column)];
    const int64_t end = chunks.end(chunk);
#pragma unroll 8
    for (int64_t t = chunk * kChunk; t < end; ++t) {
      const State<K> previous = now;
      now = maps(panel, t, column)(previous);
      write(panel, t, column, previous, now);
    }
  }
};

template <int K, typename Initial>
struct Start {
  Initial initial;
  int64_t columns;
  State<K>* to;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t) const {
    to[panel * columns + column] = initial(panel, column);
  }
};

template <int K>
struct Keep {
  Chunks chunks;
  State<K>* to;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t chunk, int64_t column, const State<K>& previous,
                                   const State<K>&) const {
    to[chunks.at(panel, chunk, column)] = previous;
  }
};

// The states before each chunk of rows. Chunks are composed, and chained by the same means.
template <int K, typename Maps, typename Initial>
Tensor states_before(const Tensor& on, int64_t batch, const Chunks& chunks, const Maps& maps, const Initial& initial) {
  const int64_t count = batch * chunks.chunks * chunks.columns;
  const Tensor before = scratch(on, K * count);
  const Grid grid(batch, chunks.columns, chunks.chunks);
  if (chunks.chunks <= 1) {
    launch_grid(on, grid, Start<K, Initial>{initial, chunks.columns, data_of<State<K>>(before)});
    return before;
  }
  const Tensor whole = scratch(on, (K + 1) * count);
  launch_grid(on, grid, Compose<K, Maps>{maps, chunks, data_of<Affine<K>>(whole)});
  const Composed<K> composed{chunks, data_of<Affine<K>>(whole)};
  const Chunks above(chunks.chunks, chunks.columns);
  const Tensor higher = states_before<K>(on, batch, above, composed, initial);
  const Keep<K> keep{chunks, data_of<State<K>>(before)};
  launch_grid(on, Grid(batch, above.columns, above.chunks),
              Apply<K, Composed<K>, Keep<K>>{composed, keep, above, data_of<State<K>>(higher)});
  return before;
}

// y_t = maps(panel, t, column)(y_{t-1}) from initial(panel, column), and write(panel, t, column, y_{t-1}, y_t), in
// double. What is read twice is near in time.
template <int K = 1, typename Maps, typename Initial, typename Write>
void recur(const Tensor& on, int64_t batch, int64_t steps, int64_t columns, const Maps& maps, const Initial& initial,
           const Write& write) {
  const Chunks chunks(steps, columns);
  const Tensor before = states_before<K>(on, batch, chunks, maps, initial);
  launch_grid(on, Grid(batch, columns, chunks.chunks),
              Apply<K, Maps, Write>{maps, write, chunks, data_of<State<K>>(before)});
}

}  // namespace commodity
