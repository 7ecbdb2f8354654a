// A recurrent layer as one kernel: a block runs over all steps of a few series, its recurrent weights in registers. The
// threads multiply the weights with the states of the series; then each takes a unit of a series. What a step reads is
// loaded one step ahead.
//
// The order of the additions depends on the number of hidden units alone.
#pragma once
#include "matrix_tiles.h"
#include "unit_steps.h"

namespace commodity {
inline namespace on_gpu {

// For up to kHidden units: kInRegisters and kCached columns of a tile. A block takes a second series, and up to
// kSeries, once a multiprocessor has kBlocks blocks.
template <typename scalar_t_, int kHidden, int kInRegisters, int kCached, int kSeries_, int kBlocks>
struct BlockSize {
  using scalar_t = scalar_t_;
  using Tiles = MatrixTiles<scalar_t, kInRegisters, kCached>;
  static constexpr int kSeries = kSeries_, kMaxGates = 4;
  static constexpr int64_t kSpread = kBlocks * kMultiprocessors;
  static constexpr int kTiles = kHidden * kHidden * kMaxGates / (kTileRows * Tiles::kColumns);
  static constexpr int kUnits = kSeries * kHidden, kThreads = kTiles > kUnits ? kTiles : kUnits;
  struct Shared {
    alignas(16) scalar_t vectors[kSeries * (kHidden * kMaxGates + Tiles::kColumns)];
    scalar_t sums[kSeries * kTiles * kTileRows];
  };
};

// Calls body(size) with the size for `hidden` units; false if there is none, as the registers are too few.
template <typename scalar_t, typename Body>
bool with_block_size(int64_t hidden, const Body& body) {
  if (hidden <= 16) return body(BlockSize<scalar_t, 16, 4, 0, 8, 4>()), true;
  if (hidden <= 64) return body(BlockSize<scalar_t, 64, 16, 0, 4, 2>()), true;
  if constexpr (sizeof(scalar_t) == 4)
    if (hidden <= 128) return body(BlockSize<scalar_t, 128, 16, 16, 4, 1>()), true;
  return false;
}

// What both directions share. Thread i has unit i % hidden of series i / hidden of its block, and a tile of the matrix
// that multiplies a vector of every series.
template <typename Size>
struct SeriesBlocks {
  using scalar_t = typename Size::scalar_t;
  using Shared = typename Size::Shared;
  struct Thread {
    typename Size::Tiles::Tile tile;
    int64_t row, first;     // the first row of the series, and the unit in it
    int index, unit, copy;  // copies of the matrix in a block take its series in turn
    COMMODITY_INLINE bool active() const { return index >= 0; }
  };
  RecurrentLayer<scalar_t> layer;
  typename Size::Tiles tiles;
  int steps, hidden, count, copies, threads;  // series, copies and threads of a block

  SeriesBlocks(const RecurrentLayer<scalar_t>& layer, const typename Size::Tiles& tiles)
      : layer(layer),
        tiles(tiles),
        steps(static_cast<int>(layer.steps)),
        hidden(static_cast<int>(layer.hidden)),
        count(static_cast<int>(
            std::clamp<int64_t>((layer.series + Size::kSpread - 1) / Size::kSpread, 1, Size::kSeries))),
        copies(std::clamp(count * hidden / tiles.tiles(), 1, count)),
        threads(std::max(copies * tiles.tiles(), count * hidden)) {}
  int64_t blocks() const { return (layer.series + count - 1) / count; }

  COMMODITY_INLINE void start(Thread& thread, int block, int number) const {
    thread.index = number / hidden, thread.unit = number % hidden;
    const int64_t series = int64_t(block) * count + thread.index;
    thread.row = layer.row(series, 0), thread.first = thread.row * hidden + thread.unit;
    if (thread.index >= count || series >= layer.series) thread.index = -1;
    thread.copy = number / tiles.tiles();
    if (thread.copy < copies) tiles.load(thread.tile, number % tiles.tiles());
  }
  // The vectors before the first row, from initial states (series, hidden).
  COMMODITY_INLINE void fill_vectors(Shared& shared, const scalar_t* initial, int block, int number) const {
    const int width = tiles.padded_columns();
    for (int i = number; i < count * width; i += threads) {
      const int64_t series = int64_t(block) * count + i / width, j = i % width;
      shared.vectors[i] = series < layer.series && j < hidden ? initial[series * hidden + j] : 0;
    }
  }
  // The unit of a thread in h0 and c0.
  COMMODITY_INLINE int64_t initial(const Thread& thread, int block) const {
    return (int64_t(block) * count + thread.index) * hidden + thread.unit;
  }
  // The unit of a thread in row t of a sequence of states, and its gate g in a sequence of gates.
  COMMODITY_INLINE int64_t at(const Thread& thread, int t) const { return thread.first + int64_t(t) * hidden; }
  template <int G>
  COMMODITY_INLINE int64_t gate_at(const Thread& thread, int t, int g) const {
    return G * (at(thread, t) - thread.unit) + thread.unit + g * hidden;
  }
  COMMODITY_INLINE void multiply(const Thread& thread, Shared& shared) const {
    if (thread.copy >= copies) return;
#pragma unroll 1
    for (int i = thread.copy; i < count; i += copies)
      tiles.multiply(thread.tile, shared.vectors + i * tiles.padded_columns(), sums(shared, i));
  }
  COMMODITY_INLINE scalar_t* vector(Shared& shared, const Thread& thread) const {
    return shared.vectors + thread.index * tiles.padded_columns();
  }
  COMMODITY_INLINE scalar_t* sums(Shared& shared, int i) const {
    return shared.sums + i * tiles.parts * tiles.padded_rows();
  }
  // Adds elements of the product of the series, `hidden` apart.
  template <int N>
  COMMODITY_INLINE void add_products(Shared& shared, const Thread& thread, scalar_t (&to)[N]) const {
    tiles.add_totals(sums(shared, thread.index), thread.unit, hidden, to);
  }
};

template <typename Cell, typename Size>
struct ForwardBlocks {
  using scalar_t = typename Size::scalar_t;
  using Shared = typename Size::Shared;
  static constexpr int G = Cell::kGates, kThreads = Size::kThreads, kPhases = 2;
  struct Row {
    scalar_t gates[G];  // from its input
    bool missing;
  };
  struct Thread : SeriesBlocks<Size>::Thread {
    UnitState<Cell, scalar_t> state;
    Row next;
  };
  SeriesBlocks<Size> blocks;
  scalar_t *h, *c, *gates;

  COMMODITY_INLINE void load(Thread& thread, int t) const {
    if (t >= blocks.steps) return;
    thread.next.missing = blocks.layer.missing[thread.row + t];
    COMMODITY_UNROLL
    for (int g = 0; g < G; ++g)
      thread.next.gates[g] = read(blocks.layer.gates + blocks.template gate_at<G>(thread, t, g));
  }
  COMMODITY_INLINE void start(Thread& thread, Shared& shared, int block, int number) const {
    const auto& layer = blocks.layer;
    blocks.start(thread, block, number);
    blocks.fill_vectors(shared, layer.h0, block, number);
    if (!thread.active()) return;
    const int64_t i = blocks.initial(thread, block);
    thread.state = {layer.h0[i], layer.c0[i]};
    load(thread, 0);
  }
  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int, int t, int) const {
    if constexpr (phase == 0) {
      blocks.multiply(thread, shared);
    } else if (thread.active()) {
      const Row row = thread.next;
      load(thread, t + 1);
      scalar_t z[G], a[G];
      COMMODITY_UNROLL
      for (int g = 0; g < G; ++g) z[g] = row.gates[g];
      blocks.add_products(shared, thread, z);
      thread.state.step(z, a, row.missing);
      if (gates) {
        COMMODITY_UNROLL
        for (int g = 0; g < G; ++g) gates[blocks.template gate_at<G>(thread, t, g)] = a[g];
      }
      blocks.vector(shared, thread)[thread.unit] = thread.state.h;
      const int64_t i = blocks.at(thread, t);
      h[i] = thread.state.h, c[i] = thread.state.c;
    }
  }
  COMMODITY_INLINE void finish(Thread&, Shared&, int, int) const {}
};

// The matrix is W_hh', the vectors are the gradients of the gates.
template <typename Cell, typename Size>
struct BackwardBlocks {
  using scalar_t = typename Size::scalar_t;
  using Shared = typename Size::Shared;
  static constexpr int G = Cell::kGates, kThreads = Size::kThreads, kPhases = 2;
  struct Row {
    scalar_t gates[G], c_previous, grad_h, grad_c;
    bool missing;
  };
  struct Thread : SeriesBlocks<Size>::Thread {
    UnitGradient<Cell, scalar_t> gradient;
    bool keeps_d_h;  // of the row after, as that is missing or there is none
    scalar_t c;
    Row next;
  };
  SeriesBlocks<Size> blocks;
  const scalar_t *grad_h, *grad_c;
  scalar_t *d_gates, *d_h0, *d_c0;

  COMMODITY_INLINE scalar_t state(const Thread& thread, int block, int t) const {
    return t < 0 ? blocks.layer.c0[blocks.initial(thread, block)] : blocks.layer.c[blocks.at(thread, t)];
  }
  COMMODITY_INLINE void load(Thread& thread, int block, int t) const {
    if (t < 0) return;
    const int64_t i = blocks.at(thread, t);
    thread.next.missing = blocks.layer.missing[thread.row + t];
    COMMODITY_UNROLL
    for (int g = 0; g < G; ++g)
      thread.next.gates[g] = read(blocks.layer.gates + blocks.template gate_at<G>(thread, t, g));
    thread.next.c_previous = state(thread, block, t - 1);
    thread.next.grad_h = read(grad_h + i), thread.next.grad_c = read(grad_c + i);
  }
  COMMODITY_INLINE void start(Thread& thread, Shared& shared, int block, int number) const {
    blocks.start(thread, block, number);
    for (int i = number; i < blocks.count * blocks.tiles.padded_columns(); i += blocks.threads) shared.vectors[i] = 0;
    if (!thread.active()) return;
    thread.gradient = {}, thread.keeps_d_h = true;
    thread.c = state(thread, block, blocks.steps - 1);
    load(thread, block, blocks.steps - 1);
  }
  COMMODITY_INLINE scalar_t incoming(Thread& thread, Shared& shared) const {
    scalar_t d_h[1] = {};
    blocks.add_products(shared, thread, d_h);
    return thread.keeps_d_h ? thread.gradient.d_h : d_h[0];
  }
  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int block, int step, int) const {
    if constexpr (phase == 1) {
      blocks.multiply(thread, shared);
    } else if (thread.active()) {
      const int t = blocks.steps - 1 - step;
      thread.gradient.d_h = incoming(thread, shared);
      const Row row = thread.next;
      load(thread, block, t - 1);
      scalar_t d_z[G];
      thread.gradient.step(row.gates, row.c_previous, thread.c, row.grad_h, row.grad_c, row.missing, d_z);
      thread.keeps_d_h = row.missing, thread.c = row.c_previous;
      COMMODITY_UNROLL
      for (int g = 0; g < G; ++g) {
        blocks.vector(shared, thread)[g * blocks.hidden + thread.unit] = d_z[g];
        d_gates[blocks.template gate_at<G>(thread, t, g)] = d_z[g];
      }
    }
  }
  COMMODITY_INLINE void finish(Thread& thread, Shared& shared, int block, int) const {
    if (!thread.active()) return;
    const int64_t i = blocks.initial(thread, block);
    d_h0[i] = incoming(thread, shared), d_c0[i] = scalar_t(thread.gradient.d_c);
  }
};

// Forward, with the tangents of h and c as the states.
template <typename Cell, typename Size>
struct TangentBlocks {
  using scalar_t = typename Size::scalar_t;
  using Shared = typename Size::Shared;
  static constexpr int G = Cell::kGates, kThreads = Size::kThreads, kPhases = 2;
  struct Row {
    scalar_t gates[G], d_gates[G], c;
    bool missing;
  };
  struct Thread : SeriesBlocks<Size>::Thread {
    scalar_t d_h, d_c, c;
    Row next;
  };
  SeriesBlocks<Size> blocks;
  const scalar_t *d_gates, *d_h0, *d_c0;
  scalar_t *d_h, *d_c;

  COMMODITY_INLINE void load(Thread& thread, int t) const {
    if (t >= blocks.steps) return;
    thread.next.missing = blocks.layer.missing[thread.row + t];
    thread.next.c = read(blocks.layer.c + blocks.at(thread, t));
    COMMODITY_UNROLL
    for (int g = 0; g < G; ++g) {
      const int64_t i = blocks.template gate_at<G>(thread, t, g);
      thread.next.gates[g] = read(blocks.layer.gates + i), thread.next.d_gates[g] = read(d_gates + i);
    }
  }
  COMMODITY_INLINE void start(Thread& thread, Shared& shared, int block, int number) const {
    blocks.start(thread, block, number);
    blocks.fill_vectors(shared, d_h0, block, number);
    if (!thread.active()) return;
    const int64_t i = blocks.initial(thread, block);
    thread.d_h = d_h0[i], thread.d_c = d_c0[i], thread.c = blocks.layer.c0[i];
    load(thread, 0);
  }
  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int, int t, int) const {
    if constexpr (phase == 0) {
      blocks.multiply(thread, shared);
    } else if (thread.active()) {
      Row row = thread.next;
      load(thread, t + 1);
      blocks.add_products(shared, thread, row.d_gates);
      if (!row.missing) Cell::tangent(row.gates, thread.c, row.c, row.d_gates, thread.d_c, thread.d_c, thread.d_h);
      thread.c = row.c;
      blocks.vector(shared, thread)[thread.unit] = thread.d_h;
      const int64_t i = blocks.at(thread, t);
      d_h[i] = thread.d_h, d_c[i] = thread.d_c;
    }
  }
  COMMODITY_INLINE void finish(Thread&, Shared&, int, int) const {}
};

}  // namespace on_gpu
}  // namespace commodity
