// The product of a few rows with a matrix that is packed once and used at every step of a recurrence.
//
// A packed matrix has its columns in blocks of C vectors, each block stored row by row: the order in which a tile reads
// it. A tile of R rows times C vectors is accumulated in registers over the rows of the matrix.
#pragma once
#include <cstdint>

#include "simd.h"

namespace commodity {

inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

template <typename scalar_t, int C, int Bytes>
struct PackedMatrix {
  static constexpr int64_t kLanes = Bytes / sizeof(scalar_t);
  typedef scalar_t Vector __attribute__((vector_size(Bytes), aligned(sizeof(scalar_t)), may_alias));

  int64_t depth, blocks;
  AlignedVector<scalar_t> values;

  PackedMatrix(int64_t depth, int64_t blocks) : depth(depth), blocks(blocks), values(depth * blocks * C * kLanes) {}

  // Sets `rows` rows, from row `first` on. column(block, vector, lane) points to those of one column, which are
  // `stride` apart; null is a column of zeros.
  template <typename Column>
  void fill(int64_t first, int64_t rows, int64_t stride, const Column& column) {
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t c = 0; c < C; ++c)
        for (int64_t lane = 0; lane < kLanes; ++lane)
          if (const scalar_t* from = column(block, c, lane)) {
            scalar_t* to = &values[((block * depth + first) * C + c) * kLanes + lane];
            for (int64_t k = 0; k < rows; ++k) to[k * C * kLanes] = from[k * stride];
          }
  }

  // Adds R rows times the next `count` rows of a block.
  template <int R>
  static COMMODITY_INLINE void accumulate(Vector (&sum)[R][C], const scalar_t* const* rows, int64_t count,
                                          const Vector* w) {
    for (int64_t k = 0; k < count; ++k, w += C)
      for (int r = 0; r < R; ++r) {
        for (int c = 0; c < C; ++c) sum[r][c] += rows[r][k] * w[c];
#if defined(__AVX__)  // clang would spill a sum, and wait for it at every step, before it reads a weight twice
        if constexpr (Bytes == 32)
          for (int c = 0; c < C; ++c) asm("" : "+x"(sum[r][c]));
#endif
      }
  }

  template <int R>
  static COMMODITY_INLINE void store(const Vector (&sum)[R][C], scalar_t* to, int64_t row_stride,
                                     int64_t vector_stride) {
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) *reinterpret_cast<Vector*>(to + r * row_stride + c * vector_stride) = sum[r][c];
  }

  const Vector* block(int64_t i) const { return reinterpret_cast<const Vector*>(&values[i * depth * C * kLanes]); }
};

}  // namespace commodity
