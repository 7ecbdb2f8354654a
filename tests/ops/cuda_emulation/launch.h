// Stands before ops/_csrc/launch.h where tests compile the .cu files with the C++ compiler: the same bodies, run on the
// processor, one item after the other. What it cannot show: races and the launch itself.
#pragma once
#include "native.h"

#define COMMODITY_CUDA(name) \
  STABLE_TORCH_LIBRARY_IMPL(commodity, CPU, m) { m.impl(#name, TORCH_BOX(&name)); }

// Items come in the order that a test asks for: bits that depend on it would be a race on a GPU.
inline bool backwards = false;
extern "C" void run_backwards(bool wanted) { backwards = wanted; }

namespace commodity {

constexpr int kWarp = 32;
constexpr int64_t kChunk = 8;  // short, so that the small panels of the tests have many

template <typename T>
inline T read(const T* at) {
  return *at;
}

inline int64_t in_order(int64_t i, int64_t items) { return backwards ? items - 1 - i : i; }

template <typename Body>
void launch(const Tensor&, int64_t items, const Body& body) {
  for (int64_t i = 0; i < items; ++i) body(in_order(i, items));
}

template <typename Body>
void launch_rows(const Tensor&, int64_t rows, int64_t terms, const Body& body) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = in_order(i, rows);
    double sums[kWarp][Body::kSums] = {};
    for (int64_t k = 0; k < terms; ++k) body.add(row, k, sums[k % kWarp]);
    for (int reach = kWarp / 2; reach > 0; reach /= 2)
      for (int lane = 0; lane < reach; ++lane)
        for (int s = 0; s < Body::kSums; ++s) sums[lane][s] += sums[lane + reach][s];
    body.finish(row, sums[0]);
  }
}

}  // namespace commodity
