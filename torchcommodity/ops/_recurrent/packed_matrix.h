// The product of a few rows with a matrix that is packed once and used at every step of a recurrence.
//
// A packed matrix has its columns in blocks of C vectors, each block stored row by row: the order in which
// multiply_tile reads it. A tile of R rows times C vectors is accumulated in registers over the rows of the matrix.
#pragma once
#include <cstdint>
#include <vector>

namespace commodity {

constexpr int kVectorBytes = 32;

template <typename scalar_t>
constexpr int64_t kLanes = kVectorBytes / sizeof(scalar_t);

inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

// A matrix (depth, columns) in blocks of C vectors of columns, row by row: the order in which multiply_tile reads it.
template <typename scalar_t>
struct PackedMatrix {
  int64_t depth, blocks;
  std::vector<scalar_t> values;

  template <typename Element>
  PackedMatrix(int64_t depth, int64_t blocks, int C, const Element& element)
      : depth(depth), blocks(blocks), values(depth * blocks * C * kLanes<scalar_t>) {
    scalar_t* to = values.data();
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t k = 0; k < depth; ++k)
        for (int c = 0; c < C; ++c)
          for (int64_t lane = 0; lane < kLanes<scalar_t>; ++lane) *to++ = element(k, block, c, lane);
  }
};

// R rows times C vectors of columns, accumulated in registers.
template <int R, int C, typename scalar_t>
inline void multiply_tile(const scalar_t* const* rows, int64_t depth, const scalar_t* packed, scalar_t* to,
                          int64_t row_stride, int64_t vector_stride) {
  typedef scalar_t Vector __attribute__((vector_size(kVectorBytes), aligned(sizeof(scalar_t)), may_alias));
  Vector sum[R][C] = {};
  const Vector* w = reinterpret_cast<const Vector*>(packed);
  for (int64_t k = 0; k < depth; ++k, w += C)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) sum[r][c] += rows[r][k] * w[c];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) *reinterpret_cast<Vector*>(to + r * row_stride + c * vector_stride) = sum[r][c];
}

// The rows times `blocks` blocks of a packed matrix, from `block` on; the results of a block begin block_stride after
// those of the previous one.
template <int R, int C, typename scalar_t>
inline void multiply_blocks(const scalar_t* const* rows, int64_t count, const PackedMatrix<scalar_t>& w, int64_t block,
                            int64_t blocks, scalar_t* to, int64_t row_stride, int64_t vector_stride,
                            int64_t block_stride) {
  const scalar_t* packed = w.values.data() + block * w.depth * C * kLanes<scalar_t>;
  for (; blocks > 0; --blocks, to += block_stride, packed += w.depth * C * kLanes<scalar_t>) {
    int64_t r = 0;
    for (; r + R <= count; r += R)
      multiply_tile<R, C>(rows + r, w.depth, packed, to + r * row_stride, row_stride, vector_stride);
    for (; r < count; ++r)
      multiply_tile<1, C>(rows + r, w.depth, packed, to + r * row_stride, row_stride, vector_stride);
  }
}

}  // namespace commodity
