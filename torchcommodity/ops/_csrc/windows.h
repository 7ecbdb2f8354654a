// Rolling windows over (..., T, N) on the CPU: the scheme behind every rolling operator.
//
// A running sum that adds the newest row and subtracts the oldest keeps the rounding error of every outlier it has
// seen. These kernels only add. Time is cut into blocks of `window` rows (van Herk, 1992), so that the window ending in
// row j of a block is a suffix of the previous block and a prefix of its own:
//
//       previous block        this block
//     | .  .  .  s  s  s  s | p  p  p  .  .  .  . |      window = 7, j = 2
//
//   1. Walk the previous block backwards and store its suffix sums: suffix[j] = rows j + 1 .. window - 1.
//   2. Walk this block forwards with a running total. The sum of the window is suffix[j] + total.
//
// A row costs two additions whatever the window. An outlier or a NaN leaves no trace once it is out of the window.
// Blocks are independent of each other and run in parallel. The first block has no predecessor: its suffix sums are
// zero. Counts, sums of powers and extrema are accumulated in the same way; gradients run it backwards in time.
#pragma once
#include <memory>

#include "native.h"

namespace commodity {

constexpr int64_t kStrip = 128;       // columns per strip: whole rows of most panels, which a prefetcher can follow
constexpr int64_t kPrefetchRows = 8;  // how many rows ahead to prefetch

// Columns [first, first + width) of a panel, and the rows [begin, end) of one block.
struct WindowBlock {
  int64_t panel, first, width, begin, end;
};

// Calls body(block, scratch) for every block of every strip. `scratch` holds `channels` x `window` rows of `columns`
// numbers, for the suffix sums.
template <typename number_t, typename Body>
void for_each_window_block(const Panels& panels, int64_t window, int64_t channels, const Body& body,
                           int64_t columns = kStrip) {
  if (panels.batch == 0) return;
  const int64_t strips = (panels.assets + kStrip - 1) / kStrip, blocks = (panels.steps + window - 1) / window;
  const int64_t grain = std::max<int64_t>(1, kGrain / (window * std::min(kStrip, panels.assets)));
  parallel_for(0, panels.batch * strips * blocks, grain, [&](int64_t from, int64_t to) {
    const std::unique_ptr<number_t[]> scratch(new number_t[channels * window * columns]);
    for (int64_t i = from; i < to; ++i) {
      const int64_t begin = i % blocks * window, first = i / blocks % strips * kStrip;
      body(WindowBlock{i / blocks / strips, first, std::min(kStrip, panels.assets - first), begin,
                       std::min(begin + window, panels.steps)},
           scratch.get());
    }
  });
}

// The window in [1, T]: one longer than the panel gives the same result as one of the panel's length.
inline int64_t clamp_window(const Panels& panels, int64_t window) {
  return std::clamp<int64_t>(window, 1, std::max<int64_t>(1, panels.steps));
}

// Prefetches a row in software: the hardware does not follow a stride of a whole row.
template <typename scalar_t>
inline void prefetch(const scalar_t* row, int64_t width) {
  for (int64_t n = 0; n < width; n += 64 / sizeof(scalar_t)) __builtin_prefetch(row + n);
}

// Whether `rows` rows of at most kStrip columns are all finite. Prefetches up to `available` rows.
template <typename scalar_t>
inline bool all_finite(const scalar_t* x, int64_t rows, int64_t stride, int64_t width, int64_t available = 0) {
  scalar_t residue[kStrip] = {};  // x - x is zero for a finite x, NaN otherwise
  for (int64_t j = 0; j < rows; ++j, x += stride) {
    if (j + kPrefetchRows < std::max(rows, available)) prefetch(x + kPrefetchRows * stride, width);
    for (int64_t n = 0; n < width; ++n) residue[n] += x[n] - x[n];
  }
  bool finite = true;
  for (int64_t n = 0; n < width; ++n) finite &= residue[n] == 0;
  return finite;
}

}  // namespace commodity
