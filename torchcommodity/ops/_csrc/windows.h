// Windows in time, for every kernel over trailing windows of (..., T, N).
//
// Time is cut into blocks of `window` rows. A window that ends in one block started in the block before, so what it
// holds is a suffix of that one and a prefix of its own: nothing is ever taken out again, a spike leaves with its row,
// and the bits depend on the rows of the window alone. Blocks do not know of each other, so they run in parallel.
#pragma once
#include <memory>

#include "native.h"

namespace commodity {

// The columns [first, first + width) of a panel, and the rows [begin, end) of one block of windows.
struct WindowBlock {
  int64_t panel, first, width, begin, end;
};

// Calls body(block, scratch) for all of them. `scratch` has `channels` times `window` rows of kBlock numbers.
template <typename number_t, typename Body>
void for_each_window_block(const Panels& panels, int64_t window, int64_t channels, const Body& body) {
  if (panels.batch == 0) return;
  const int64_t strips = (panels.assets + kBlock - 1) / kBlock, blocks = (panels.steps + window - 1) / window;
  const int64_t grain = std::max<int64_t>(1, kGrain / (window * std::min(kBlock, panels.assets)));
  torch::stable::parallel_for(0, panels.batch * strips * blocks, grain, [&](int64_t from, int64_t to) {
    const std::unique_ptr<number_t[]> scratch(new number_t[channels * window * kBlock]);
    for (int64_t i = from; i < to; ++i) {
      const int64_t begin = i % blocks * window, first = i / blocks % strips * kBlock;
      body(WindowBlock{i / blocks / strips, first, std::min(kBlock, panels.assets - first), begin,
                       std::min(begin + window, panels.steps)},
           scratch.get());
    }
  });
}

// A window that is longer than the panel holds what one of the panel's length does.
inline int64_t reach(const Panels& panels, int64_t window) {
  return std::clamp<int64_t>(window, 1, std::max<int64_t>(1, panels.steps));
}

}  // namespace commodity
