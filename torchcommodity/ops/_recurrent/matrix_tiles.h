// Products of one small matrix with many vectors, by the threads of a block: each keeps a tile of the matrix in
// registers, multiplies its part of a vector, and leaves sums of parts in shared memory.
#pragma once
#include "device.h"

namespace commodity {
inline namespace on_gpu {

template <typename scalar_t>
struct alignas(16) Quad {
  scalar_t values[4];
};

constexpr int kTileRows = 4;

// A matrix (rows, columns) in tiles: tile i has the rows i % groups + q * groups and part i / groups of the columns.
// Of its columns kInRegisters are kept in registers; the others are read in each product, from the L1 cache.
template <typename scalar_t_, int kInRegisters, int kCached>
struct MatrixTiles {
  using scalar_t = scalar_t_;
  static constexpr int kColumns = kInRegisters + kCached;
  int rows, columns, groups, parts;
  const Quad<scalar_t>* packed;  // (kColumns / 4, kTileRows, tiles)

  MatrixTiles(int64_t rows, int64_t columns)
      : rows(static_cast<int>(rows)),
        columns(static_cast<int>(columns)),
        groups(static_cast<int>((rows + kTileRows - 1) / kTileRows)),
        parts(static_cast<int>((columns + kColumns - 1) / kColumns)),
        packed(nullptr) {}
  COMMODITY_INLINE int tiles() const { return groups * parts; }
  COMMODITY_INLINE int padded_rows() const { return groups * kTileRows; }
  COMMODITY_INLINE int padded_columns() const { return parts * kColumns; }
  COMMODITY_INLINE const Quad<scalar_t>& weights(int quad, int row, int tile) const {
    return packed[(quad * kTileRows + row) * tiles() + tile];
  }

  struct Tile {
    Quad<scalar_t> weights[kInRegisters / 4][kTileRows];
    int number, column, sum;  // of its first column, and of its first sum
  };
  COMMODITY_INLINE void load(Tile& to, int tile) const {
    const int part = tile / groups;
    to.number = tile, to.column = part * kColumns, to.sum = part * padded_rows() + tile % groups;
#pragma unroll
    for (int quad = 0; quad < kInRegisters / 4; ++quad)
#pragma unroll
      for (int row = 0; row < kTileRows; ++row) to.weights[quad][row] = weights(quad, row, tile);
  }

  // From a vector of padded_columns() elements, zero from `columns` on, to (parts, padded_rows()) sums.
  COMMODITY_INLINE void multiply(const Tile& tile, const scalar_t* vector, scalar_t* sums) const {
    scalar_t sum[kTileRows] = {};
    const auto add = [&](int quad, const auto& row_weights) {
      const Quad<scalar_t> x = reinterpret_cast<const Quad<scalar_t>*>(vector + tile.column)[quad];
#pragma unroll
      for (int row = 0; row < kTileRows; ++row) {
        const Quad<scalar_t> w = row_weights(row);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[row] += w.values[i] * x.values[i];
      }
    };
#pragma unroll
    for (int quad = 0; quad < kInRegisters / 4; ++quad) add(quad, [&](int row) { return tile.weights[quad][row]; });
#pragma unroll 1
    for (int quad = kInRegisters / 4; quad < kColumns / 4; ++quad)
      add(quad, [&](int row) { return weights(quad, row, tile.number); });
#pragma unroll
    for (int row = 0; row < kTileRows; ++row) sums[tile.sum + row * groups] = sum[row];
  }

  // Adds to each of `to` an element of the product, from the sums of its parts: those at first + i * stride.
  template <int N>
  COMMODITY_INLINE void add_totals(const scalar_t* sums, int first, int stride, scalar_t (&to)[N]) const {
#pragma unroll(N == 1 ? 8 : 4)
    for (int part = 0; part < parts; ++part)
#pragma unroll
      for (int i = 0; i < N; ++i) to[i] += sums[part * padded_rows() + first + i * stride];
  }
};

template <typename Tiles>
struct PackTiles {
  using scalar_t = typename Tiles::scalar_t;
  Tiles tiles;
  const scalar_t* matrix;
  int64_t row_stride, column_stride;
  scalar_t* to;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t i = item / 4, tile = i % tiles.tiles(), q = i / tiles.tiles() % kTileRows;
    const int64_t quad = i / tiles.tiles() / kTileRows;
    const int64_t row = q * tiles.groups + tile % tiles.groups;
    const int64_t column = tile / tiles.groups * Tiles::kColumns + quad * 4 + item % 4;
    to[item] = row < tiles.rows && column < tiles.columns ? matrix[row * row_stride + column * column_stride] : 0;
  }
};

// The tiles of a matrix, and the memory that they are in.
template <typename Tiles>
struct PackedTiles {
  Tiles tiles;
  Tensor memory;

  explicit PackedTiles(const Tensor& matrix)
      : tiles(matrix.size(0), matrix.size(1)),
        memory(new_empty(matrix, {int64_t(tiles.tiles()) * kTileRows * Tiles::kColumns})) {
    using scalar_t = typename Tiles::scalar_t;
    launch(matrix, memory.numel(),
           PackTiles<Tiles>{tiles, matrix.const_data_ptr<scalar_t>(), matrix.stride(0), matrix.stride(1),
                            data_ptr<scalar_t>(memory)});
    tiles.packed = data_ptr<Quad<scalar_t>>(memory);
  }
};

}  // namespace on_gpu
}  // namespace commodity
