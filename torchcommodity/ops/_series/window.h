// Trailing windows of W rows by additions only (van Herk, see _csrc/windows.h): time is cut into blocks of W rows, and
// a window is a suffix of the previous block and a prefix of its own. Blocks begin at multiples of W, so that the bits
// do not depend on how time is split.
//
// The state has W planes: in block row j, plane i > j still holds the suffix of the previous block after row i, and
// plane i <= j already the value of this block's row i. When a block is full, the values become suffixes in place.
// Before the first row there is a block of missing values: a window that is not complete is missing.
#pragma once
#include "statement.h"

namespace commodity::series {

// Calls body(row, j, count) for stretches of tile rows in one block, and turn() before the first row of each block but
// the first.
template <typename Turn, typename Body>
inline void for_blocks(int64_t time, int64_t begin, int64_t end, int64_t window, const Turn& turn, const Body& body) {
  for (int64_t r = begin, count; r < end; r += count) {
    const int64_t j = (time + r) % window;
    count = std::min(end - r, window - j);
    if (j == 0 && time + r > 0) turn();
    body(r, j, count);
  }
}

// Same, from the last row of the series to the first, for the transpose: blocks begin at the last row. body(row, j,
// count) runs rows row, row - 1, ...
template <typename Turn, typename Body>
inline void for_blocks_backward(const Tile& tile, int64_t steps, int64_t window, const Turn& turn, const Body& body) {
  for (int64_t r = tile.end - 1, count; r >= tile.begin; r -= count) {
    const int64_t done = steps - 1 - (tile.time + r), j = done % window;
    count = std::min(r + 1 - tile.begin, window - j);
    if (j == 0 && done > 0) turn();
    body(r, j, count);
  }
}

inline int64_t window_of(const double* attributes) { return int64_t(attributes[0]); }

// Sum, and sum of each value times its age (the number of rows since then). Planes: W values or suffixes, then the
// totals of the prefix.
template <bool ages, typename Width>
struct BlockSums {
  const int64_t window;
  const Width width;
  double* __restrict slots, * __restrict total, * __restrict aged;
  static constexpr int kTotals = ages ? 2 : 1;

  BlockSums(int64_t window, Width width, double* state)
      : window(window), width(width), slots(state), total(state + window * width), aged(total + (ages ? width : 0)) {}

  // In suffix j: the sum of the rows after j, or their ages in block row j times their values.
  void turn() {
    std::fill_n(total, kTotals * width, 0.0);
    for (int64_t j = window - 1; j >= 0; --j) {
      double* __restrict slot = slots + j * width;
      const double age = double(window - j);
      for_columns(width, [&](int64_t n) {
        const double value = slot[n], sum = total[n];
        if constexpr (ages)
          slot[n] = aged[n] + double(j) * sum, aged[n] += age * value;
        else
          slot[n] = sum;
        total[n] = sum + value;
      });
    }
    std::fill_n(total, kTotals * width, 0.0);
  }

  // Row i of the stretch: value(i, n), and take(i, n, sum) with the sum of its window.
  template <typename Value, typename Take>
  void run(int64_t j, int64_t count, const Value& value, const Take& take) {
    for (int64_t i = 0; i < count; ++i) {
      double* __restrict slot = slots + (j + i) * width;
      for_columns(width, [&](int64_t n) {
        const double x = value(i, n), suffix = slot[n];
        if constexpr (ages) {
          aged[n] += total[n];
          take(i, n, missing(x) ? x : suffix + aged[n]);  // its age is zero, but it is in the window
          total[n] += x;
        } else {
          total[n] += x;
          take(i, n, suffix + total[n]);
        }
        slot[n] = x;
      });
    }
  }
};

// State of a window that ends before the first row: missing, but for the suffix after the last row, which is empty.
inline void start_window(const double* attributes, int64_t planes, int64_t width, double* state) {
  const int64_t window = window_of(attributes);
  std::fill_n(state, (window - 1) * width, kMissing);
  std::fill_n(state + (window - 1) * width, (planes - window + 1) * width, 0.0);
}

}  // namespace commodity::series
