// What every CPU kernel shares: the stable ABI, the parallel loop over columns, the registration.
#pragma once
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Dispatch_v2.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "portable.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace commodity {

using torch::stable::contiguous;
using torch::stable::new_empty;
using torch::stable::Tensor;

// One compiled body per instruction set, with all that it calls, chosen when the library is loaded: a wheel is
// portable.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define COMMODITY_SIMD __attribute__((flatten, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define COMMODITY_SIMD
#endif

constexpr int64_t kBlock = 64;       // columns handled together: whole cache lines, whatever the number of threads
constexpr int64_t kGrain = 1 << 15;  // elements below which a thread is not worth waking

// A batch of panels (batch, steps, assets), contiguous.
struct Panels {
  int64_t batch, steps, assets;
  explicit Panels(const Tensor& x)
      : batch(x.numel() ? x.numel() / (x.size(-2) * x.size(-1)) : 0), steps(x.size(-2)), assets(x.size(-1)) {}
  Panels(int64_t batch, int64_t steps, int64_t assets) : batch(batch), steps(steps), assets(assets) {}
  int64_t size() const { return steps * assets; }
};

// Calls body(panel, first, last) for every block of columns [first, last) of every panel, in parallel.
// Blocks do not depend on the number of threads, so neither do the bits. Neighbors that one thread takes go together,
// if a body says that it takes so many columns: memory is faster by whole rows.
template <typename Body>
void for_each_block(const Panels& panels, const Body& body, int64_t most = kBlock) {
  const int64_t blocks = std::max<int64_t>(1, (panels.assets + kBlock - 1) / kBlock);
  const int64_t even = (panels.assets + blocks - 1) / blocks, block = (even + 7) / 8 * 8;  // 56 and 44, not 64 and 36
  const int64_t elements = std::max<int64_t>(1, panels.steps * std::min(block, panels.assets));
  const int64_t grain = std::max<int64_t>(1, kGrain / elements);
  torch::stable::parallel_for(0, panels.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin, together = 1; i < end; i += together) {
      const int64_t first = (i % blocks) * block;
      together = std::max<int64_t>(1, std::min({end - i, blocks - i % blocks, most / block}));
      body(i / blocks, first, std::min(first + together * block, panels.assets));
    }
  });
}

// Asks for huge pages under a large fresh output, whose first touch of small ones costs more than the arithmetic, and
// touches each once: threads that meet in one that nobody has touched both clear it.
inline Tensor on_huge_pages(Tensor y) {
#if defined(MADV_HUGEPAGE)
  constexpr uintptr_t page = uintptr_t(1) << 21;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(y.data_ptr());
  const uintptr_t first = (begin + page - 1) / page, last = (begin + y.numel() * y.element_size()) / page;
  if (first >= last) return y;
  madvise(reinterpret_cast<void*>(first * page), (last - first) * page, MADV_HUGEPAGE);
  torch::stable::parallel_for(first, last, 1, [](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) *reinterpret_cast<volatile char*>(i * page) = 0;
  });
#endif
  return y;
}

inline void check_same(const char* operation, const Tensor& x, const Tensor& y) {
  STD_TORCH_CHECK(x.sizes().equals(y.sizes()) && x.scalar_type() == y.scalar_type(), operation,
                  ": panels must have one shape and one dtype");
}

}  // namespace commodity

// The schema lives in the library too, so that a compiled model runs where no Python record has been made.
#define COMMODITY_OPERATOR(name, schema)                               \
  STABLE_TORCH_LIBRARY_FRAGMENT(commodity, m) { m.def(#name schema); } \
  STABLE_TORCH_LIBRARY_IMPL(commodity, CPU, m) { m.impl(#name, TORCH_BOX(&name)); }
