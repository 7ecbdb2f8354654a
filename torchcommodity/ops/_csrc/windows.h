// Windows in time, for every kernel over trailing windows of (..., T, N).
//
// Time is cut into blocks of `window` rows. A window that ends in one block started in the block before, so what it
// holds is a suffix of that one and a prefix of its own: nothing is ever taken out again, a spike leaves with its row,
// and the bits depend on the rows of the window alone. Blocks do not know of each other, so they run in parallel.
#pragma once
#include <memory>

#include "native.h"

namespace commodity {

constexpr int64_t kStrip = 128;  // columns handled together: whole rows of most panels, which a prefetcher can follow
constexpr int64_t kAhead = 8;    // rows to fetch before they are needed

// The columns [first, first + width) of a panel, and the rows [begin, end) of one block of windows.
struct WindowBlock {
  int64_t panel, first, width, begin, end;
};

// Calls body(block, scratch) for all of them. `scratch` has `channels` times `window` rows of kStrip numbers.
template <typename number_t, typename Body>
void for_each_window_block(const Panels& panels, int64_t window, int64_t channels, const Body& body) {
  if (panels.batch == 0) return;
  const int64_t strips = (panels.assets + kStrip - 1) / kStrip, blocks = (panels.steps + window - 1) / window;
  const int64_t grain = std::max<int64_t>(1, kGrain / (window * std::min(kStrip, panels.assets)));
  torch::stable::parallel_for(0, panels.batch * strips * blocks, grain, [&](int64_t from, int64_t to) {
    const std::unique_ptr<number_t[]> scratch(new number_t[channels * window * kStrip]);
    for (int64_t i = from; i < to; ++i) {
      const int64_t begin = i % blocks * window, first = i / blocks % strips * kStrip;
      body(WindowBlock{i / blocks / strips, first, std::min(kStrip, panels.assets - first), begin,
                       std::min(begin + window, panels.steps)},
           scratch.get());
    }
  });
}

// A window that is longer than the panel holds what one of the panel's length does.
inline int64_t reach(const Panels& panels, int64_t window) {
  return std::clamp<int64_t>(window, 1, std::max<int64_t>(1, panels.steps));
}

// Asks for a row before it is needed: no prefetcher follows a stride of a whole row.
template <typename scalar_t>
inline void fetch(const scalar_t* row, int64_t width) {
  for (int64_t n = 0; n < width; n += 64 / sizeof(scalar_t)) __builtin_prefetch(row + n);
}

// Whether every value of some rows, of kStrip columns at most, is finite. `left` rows are there to be fetched.
template <typename scalar_t>
inline bool complete(const scalar_t* x, int64_t rows, int64_t stride, int64_t width, int64_t left = 0) {
  scalar_t off[kStrip] = {};
  for (int64_t j = 0; j < rows; ++j, x += stride) {
    if (j + kAhead < std::max(rows, left)) fetch(x + kAhead * stride, width);
    for (int64_t n = 0; n < width; ++n) off[n] += x[n] - x[n];
  }
  bool all = true;
  for (int64_t n = 0; n < width; ++n) all &= off[n] == 0;
  return all;
}

// Whether nothing is missing in the windows of a block: then it need not be asked, nor counted, value by value.
template <typename scalar_t>
inline bool complete(const scalar_t* x, int64_t stride, const WindowBlock& block, int64_t window) {
  const int64_t first = std::max<int64_t>(0, block.begin - window);
  return complete(x + first * stride, block.end - first, stride, block.width);
}

}  // namespace commodity
