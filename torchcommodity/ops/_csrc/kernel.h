// Kernels written once for the CPU and a GPU: `name.kernel.h` is compiled once for each of them. The body of a kernel
// is a struct of pointers; the drivers call it, in parallel, on the device for which they are compiled. They are
//
//   for_each_panel(like, panels, body)             below: panels of which each is a sequence of its own
//   run_series(like, batch, steps, columns, body)  recurrences over time: row by row on the CPU (rows.h), a thread for
//                                                  each column on a GPU
//   run_scan(like, batch, steps, columns, body)    those whose rows are affine maps: a scan on a GPU (device_scan.h)
//   for_each_column(like, batch, ..., body)        lanes.h: whole columns, their state in registers
//   roll(operation, x, window, ..., statistic)     window_kernel.h: rolling windows
//   roll(operation, x, window, min_count, body)    statistics of rolling windows (window_kernel.h)
#pragma once

#if defined(COMMODITY_GPU)
#include "device_scan.h"
#define COMMODITY_KERNEL(name, schema) COMMODITY_CUDA(name)
#else
#include "rows.h"
#define COMMODITY_KERNEL(name, schema) COMMODITY_OPERATOR(name, schema)
#endif

namespace commodity {

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

// The arithmetic of a recurrence: a GPU has time for float64 while it waits for memory.
template <typename scalar_t>
using Number = double;

template <typename Shape>
Tensor new_output(const Tensor& like, const Shape& shape,
                  std::optional<torch::headeronly::ScalarType> dtype = std::nullopt) {
  return new_empty(like, shape, dtype);
}

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

template <typename Body>
struct SeriesItem {
  Body body;
  int64_t steps, columns;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    const auto column = body.column(panel, n);
    auto state = body.initial(column);
#pragma unroll 8
    for (int64_t t = 0; t < steps; ++t) state = body.advance(column, (panel * steps + t) * columns + n, t, state);
  }
};

template <typename Body>
void run_series(const Tensor& like, int64_t batch, int64_t steps, int64_t columns, const Body& body) {
  launch_grid(like, Grid(batch, columns, 1), SeriesItem<Body>{body, steps, columns});
}

}  // namespace on_gpu
#else
inline namespace on_cpu {

template <typename scalar_t>
using Number = scalar_t;

template <typename Shape>
Tensor new_output(const Tensor& like, const Shape& shape,
                  std::optional<torch::headeronly::ScalarType> dtype = std::nullopt) {
  return on_huge_pages(new_empty(like, shape, dtype));
}

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
