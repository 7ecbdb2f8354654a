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
  static constexpr int kThreads = kTiles > kSeries* kHidden ? kTiles : kSeries * kHidden;
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
    int64_t series;
    int index, unit, number_of_tile, copy;  // copies of the matrix in a block take its series in turn
    bool active;
  };
  RecurrentLayer<scalar_t> layer;
  typename Size::Tiles tiles;
  int count, copies, threads;  // series, copies and threads of a block

  SeriesBlocks(const RecurrentLayer<scalar_t>& layer, const typename Size::Tiles& tiles)
      : layer(layer),
        tiles(tiles),
        count(static_cast<int>(
            std::clamp<int64_t>((layer.series + Size::kSpread - 1) / Size::kSpread, 1, Size::kSeries))) {
    const int units = count * static_cast<int>(layer.hidden);
    copies = std::clamp(units / tiles.tiles(), 1, count);
    threads = std::max(copies * tiles.tiles(), units);
  }
  int64_t blocks() const { return (layer.series + count - 1) / count; }

  COMMODITY_INLINE void start(Thread& thread, int block, int number) const {
    const int hidden = static_cast<int>(layer.hidden);
    thread.index = number / hidden, thread.unit = number % hidden;
    thread.series = int64_t(block) * count + thread.index;
    thread.active = thread.index < count && thread.series < layer.series;
    thread.copy = number / tiles.tiles(), thread.number_of_tile = number % tiles.tiles();
    if (thread.copy < copies) tiles.load(thread.tile, thread.number_of_tile);
  }
  COMMODITY_INLINE void multiply(const Thread& thread, Shared& shared) const {
    if (thread.copy >= copies) return;
#pragma unroll 1
    for (int i = thread.copy; i < count; i += copies)
      tiles.multiply(thread.tile, thread.number_of_tile, shared.vectors + i * tiles.padded_columns(), sums(shared, i));
  }
  COMMODITY_INLINE scalar_t* vector(Shared& shared, const Thread& thread) const {
    return shared.vectors + thread.index * tiles.padded_columns();
  }
  COMMODITY_INLINE scalar_t* sums(Shared& shared, int i) const {
    return shared.sums + i * tiles.parts * tiles.padded_rows();
  }
  // Adds elements of the product of the series, layer.hidden apart.
  template <int N>
  COMMODITY_INLINE void add_products(Shared& shared, const Thread& thread, scalar_t (&to)[N]) const {
    tiles.add_totals(sums(shared, thread.index), thread.unit, static_cast<int>(layer.hidden), to);
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
  scalar_t *h, *c;

  COMMODITY_INLINE void load(Thread& thread, int t) const {
    const auto& layer = blocks.layer;
    if (t >= layer.steps) return;
    const int64_t row = layer.row(thread.series, t);
    thread.next.missing = layer.missing[row];
    COMMODITY_UNROLL
    for (int g = 0; g < G; ++g) thread.next.gates[g] = read(layer.gates + (row * G + g) * layer.hidden + thread.unit);
  }
  COMMODITY_INLINE void start(Thread& thread, Shared& shared, int block, int number) const {
    const auto& layer = blocks.layer;
    blocks.start(thread, block, number);
    const int width = blocks.tiles.padded_columns();
    for (int i = number; i < blocks.count * width; i += blocks.threads) {
      const int64_t series = int64_t(block) * blocks.count + i / width, j = i % width;
      shared.vectors[i] = series < layer.series && j < layer.hidden ? layer.h0[series * layer.hidden + j] : 0;
    }
    if (!thread.active) return;
    const int64_t i = thread.series * layer.hidden + thread.unit;
    thread.state = {layer.h0[i], layer.c0[i]};
    load(thread, 0);
  }
  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int, int t, int) const {
    if constexpr (phase == 0) {
      blocks.multiply(thread, shared);
    } else if (thread.active) {
      const auto& layer = blocks.layer;
      scalar_t z[G];
      COMMODITY_UNROLL
      for (int g = 0; g < G; ++g) z[g] = thread.next.gates[g];
      blocks.add_products(shared, thread, z);
      const bool is_missing = thread.next.missing;
      load(thread, t + 1);
      thread.state.step(z, is_missing);
      blocks.vector(shared, thread)[thread.unit] = thread.state.h;
      const int64_t i = layer.row(thread.series, t) * layer.hidden + thread.unit;
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

  COMMODITY_INLINE void load(Thread& thread, int64_t t) const {
    const auto& layer = blocks.layer;
    if (t < 0) return;
    const int64_t row = layer.row(thread.series, t), i = row * layer.hidden + thread.unit;
    thread.next.missing = layer.missing[row];
    COMMODITY_UNROLL
    for (int g = 0; g < G; ++g) thread.next.gates[g] = read(layer.gates + (row * G + g) * layer.hidden + thread.unit);
    thread.next.c_previous = layer.state(layer.c, layer.c0, thread.series, t - 1, thread.unit);
    thread.next.grad_h = read(grad_h + i), thread.next.grad_c = read(grad_c + i);
  }
  COMMODITY_INLINE void start(Thread& thread, Shared& shared, int block, int number) const {
    const auto& layer = blocks.layer;
    blocks.start(thread, block, number);
    for (int i = number; i < blocks.count * blocks.tiles.padded_columns(); i += blocks.threads) shared.vectors[i] = 0;
    if (!thread.active) return;
    thread.gradient = {}, thread.keeps_d_h = true;
    thread.c = layer.state(layer.c, layer.c0, thread.series, layer.steps - 1, thread.unit);
    load(thread, layer.steps - 1);
  }
  COMMODITY_INLINE scalar_t incoming(Thread& thread, Shared& shared) const {
    scalar_t d_h[1] = {};
    blocks.add_products(shared, thread, d_h);
    return thread.keeps_d_h ? thread.gradient.d_h : d_h[0];
  }
  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int, int step, int) const {
    if constexpr (phase == 1) {
      blocks.multiply(thread, shared);
    } else if (thread.active) {
      const auto& layer = blocks.layer;
      const int64_t t = layer.steps - 1 - step;
      thread.gradient.d_h = incoming(thread, shared);
      const Row row = thread.next;
      load(thread, t - 1);
      scalar_t d_z[G];
      thread.gradient.step(row.gates, row.c_previous, thread.c, row.grad_h, row.grad_c, row.missing, d_z);
      thread.keeps_d_h = row.missing, thread.c = row.c_previous;
      COMMODITY_UNROLL
      for (int g = 0; g < G; ++g) {
        const int gate = g * static_cast<int>(layer.hidden) + thread.unit;
        blocks.vector(shared, thread)[gate] = d_z[g];
        d_gates[layer.row(thread.series, t) * G * layer.hidden + gate] = d_z[g];
      }
    }
  }
  COMMODITY_INLINE void finish(Thread& thread, Shared& shared, int, int) const {
    if (!thread.active) return;
    const int64_t state = thread.series * blocks.layer.hidden + thread.unit;
    d_h0[state] = incoming(thread, shared), d_c0[state] = scalar_t(thread.gradient.d_c);
  }
};

}  // namespace on_gpu
}  // namespace commodity
