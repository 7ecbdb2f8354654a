// Kernels written once for the CPU and a GPU: `name.kernel.h` is compiled once for each of them. The body of a kernel
// is a struct of pointers; the drivers call it, in parallel, on the device for which they are compiled. They are
//
//   for_each_panel(like, panels, body)             below: panels of which each is a sequence of its own
//   for_each_matrix(like, panels, n, body)         below: the same, of which each step is arithmetic of n x n matrices
//   run_series(like, batch, steps, columns, body)  recurrences over time: row by row on the CPU (rows.h), a thread for
//                                                  each column on a GPU
//   run_scan<scalar_t>(like, batch, ..., body)     those whose rows are affine maps: a scan on a GPU (device_scan.h)
//   for_each_column(like, batch, ..., body)        lanes.h: whole columns, their state in registers
//   advance_columns(like, batch, ..., body)        lanes.h: recurrences whose state is a struct, row by row on the CPU
//   roll(operation, x, window, ..., statistic)     window_kernel.h: rolling windows
#pragma once

#if defined(COMMODITY_GPU)
#include "device_scan.h"
#define COMMODITY_KERNEL(name, schema) COMMODITY_CUDA(name)
#define COMMODITY_DEVICE on_gpu
#else
#include "rows.h"
#define COMMODITY_KERNEL(name, schema) COMMODITY_OPERATOR(name, schema)
#define COMMODITY_DEVICE on_cpu
#endif
// What calls a driver and is compiled for both devices stands in `inline namespace COMMODITY_DEVICE`, or in an
// anonymous namespace: of two functions of one name, the linker keeps one.

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

// Calls body(team, panel, memory) for every panel, as for_each_panel does. The threads of a GPU's block are a team: all
// of them run the body, and share the iterations of its loops team.each(n, f), for numbers, and team.each_row(n, f),
// for the rows of a matrix, of which f calls team.each_column(n, g). What is computed outside of the loops is the same
// in all threads. f writes to memory in each(), g in each_row(), and nothing else does. Iterations of a loop do not
// depend on each other, and no thread begins the next before all are done; what is read after a loop is not written by
// the next one.
template <typename Body>
void for_each_matrix(const Tensor& like, int64_t panels, int64_t n, const Body& body) {
  launch_teams(like, panels, n, body.memory() * sizeof(double), body);
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

// A single thread.
struct Team {
  template <typename Iteration>
  COMMODITY_INLINE void each(int64_t n, const Iteration& iteration) const {
    for (int64_t i = 0; i < n; ++i) iteration(i);
  }
  template <typename Iteration>
  COMMODITY_INLINE void each_row(int64_t n, const Iteration& iteration) const {
    for (int64_t i = 0; i < n; ++i) iteration(i);
  }
  template <typename Iteration>
  COMMODITY_INLINE void each_column(int64_t n, const Iteration& iteration) const {
    COMMODITY_IVDEP
    for (int64_t j = 0; j < n; ++j) iteration(j);
  }
  template <typename T>
  COMMODITY_INLINE void prefetch(const T*) const {}  // the hardware follows the rows of one panel
};

template <typename Body>
struct MatrixBody : Body {
  COMMODITY_INLINE void operator()(int64_t panel, double* memory) const { Body::operator()(Team{}, panel, memory); }
};

template <typename Body>
void for_each_matrix(const Tensor& like, int64_t panels, int64_t, const Body& body) {
  for_each_panel(like, panels, MatrixBody<Body>{body});
}

}  // namespace on_cpu
#endif

}  // namespace commodity
