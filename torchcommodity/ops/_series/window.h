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

// Sum, or sum with the weights W of the newest value down to 1 of the oldest. Planes: W values or suffixes, then the
// totals of the prefix: the sum, and that of each value times its age.
template <bool weighted, typename Width>
struct BlockSums {
  const int64_t window;
  const Width width;
  double *slots, *total, *aged;
  static constexpr int kTotals = weighted ? 2 : 1;

  BlockSums(int64_t window, Width width, double* state)
      : window(window),
        width(width),
        slots(state),
        total(state + window * width),
        aged(total + (weighted ? width : 0)) {}

  // In suffix j: the sum of the rows after j, or their sum with the weights that they have in row j of the next block.
  void turn() {
    for_vectors(width, [&](auto zero, int64_t n) {
      auto sum = zero, weighted_sum = zero, value = zero;
      double* slot = slots + window * width + n;
      for (int64_t j = window - 1; j >= 0; --j) {
        load<double>(value, slot -= width);
        store<double>(weighted ? weighted_sum : sum, slot);
        sum += value, weighted_sum += sum;
      }
    });
    std::fill_n(total, kTotals * width, 0.0);
  }

  // Row i of the stretch: value(x, i, n) sets x, and take(i, n, sum) gets the sum of its window; of a vector of columns
  // from n on.
  template <typename Value, typename Take>
  void run(int64_t j, int64_t count, const Value& value, const Take& take) {
    for_vectors(width, [&](auto zero, int64_t n) {
      auto x = zero, suffix = zero, sum = zero, aged_sum = zero;
      load<double>(sum, total + n), load<double>(aged_sum, aged + n);
      double* slot = slots + j * width + n;
      for (int64_t i = 0; i < count; ++i, slot += width) {
        value(x, i, n), load<double>(suffix, slot);
        if constexpr (weighted) aged_sum += sum;
        sum += x;
        take(i, n, suffix + (weighted ? double(window) * sum - aged_sum : sum));
        store<double>(x, slot);
      }
      store<double>(sum, total + n);
      if constexpr (weighted) store<double>(aged_sum, aged + n);
    });
  }
};

// State of a window that ends before the first row: missing, but for the suffix after the last row, which is empty.
inline void start_window(const double* attributes, int64_t planes, int64_t width, double* state) {
  const int64_t window = window_of(attributes);
  std::fill_n(state, (window - 1) * width, kMissing);
  std::fill_n(state + (window - 1) * width, (planes - window + 1) * width, 0.0);
}

}  // namespace commodity::series
