// Kernels written once for the CPU and a GPU: `name.kernel.h` is compiled once for each of them. The body of a kernel
// is a struct of pointers; the drivers of this file call it, in parallel, on the device for which they are compiled.
#pragma once

#if defined(COMMODITY_GPU)
#include "device.h"
#define COMMODITY_KERNEL(name, schema) COMMODITY_CUDA(name)
#else
#include "native.h"
#define COMMODITY_KERNEL(name, schema) COMMODITY_OPERATOR(name, schema)
#endif

namespace commodity {

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

template <typename Body>
struct PanelItem {
  Body body;
  double* memory;

  COMMODITY_INLINE void operator()(int64_t panel) const { body(panel, memory + panel * body.memory()); }
};

// Calls body(panel, memory) for every panel, with memory for body.memory() numbers of its own. One thread per panel; on
// the CPU, a thread has panels that are body.work() elements of work each.
template <typename Body>
void for_each_panel(const Tensor& like, int64_t panels, const Body& body) {
  const Tensor memory = scratch(like, panels * body.memory());
  launch(like, panels, PanelItem<Body>{body, data_ptr<double>(memory)});
}

}  // namespace on_gpu
#else
inline namespace on_cpu {

template <typename Body>
COMMODITY_SIMD void run_panel(const Body& body, int64_t panel, double* memory) {
  body(panel, memory);
}

template <typename Body>
void for_each_panel(const Tensor&, int64_t panels, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, body.work()));
  parallel_for(0, panels, grain, [&](int64_t first, int64_t last) {
    std::vector<double> memory(body.memory());
    for (int64_t panel = first; panel < last; ++panel) run_panel(body, panel, memory.data());
  });
}

}  // namespace on_cpu
#endif

}  // namespace commodity
