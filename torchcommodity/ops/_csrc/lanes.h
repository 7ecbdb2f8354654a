// Kernels that walk through time with the state of a column in registers: a body is written over Number, which is
// a vector of neighboring columns on the CPU, and a number for a single column, as of the threads of a GPU.
#pragma once
#include <atomic>

#include "kernel.h"
#include "vector_math.h"
#if !defined(COMMODITY_GPU)
#include "simd.h"
#endif

namespace commodity {

#if !defined(COMMODITY_GPU)
template <>
struct Bits<Vec<double>> {
  using type = Vec<uint64_t>;
};

inline namespace on_cpu {
// The hardware does not follow a stride of a whole row.
COMMODITY_INLINE void prefetch_line(const void* address) { __builtin_prefetch(address); }
}  // namespace on_cpu
#endif

inline namespace COMMODITY_DEVICE {

template <typename number_t = double>
struct OneColumn {
  using Number = number_t;

  template <typename T>
  COMMODITY_INLINE Number load(const T* from) const {
    return read(from);
  }
  // What the kernel itself has written.
  template <typename T>
  COMMODITY_INLINE Number reload(const T* from) const {
    return *from;
  }
  template <typename T>
  COMMODITY_INLINE void store(Number x, T* to) const {
    *to = static_cast<T>(x);
  }
  // Rounded as in a vector: in a sum of products over a loop, the compiler may vectorize the products alone.
  COMMODITY_INLINE Number multiply_add(Number a, Number b, Number c) const {
#if defined(FP_FAST_FMA)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
  }
  template <typename T>
  COMMODITY_INLINE void prefetch(const T* address) const {
    prefetch_line(address);
  }
};

}  // namespace COMMODITY_DEVICE

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

using Lanes = OneColumn<>;

template <typename Body>
struct LanesItem {
  Body body;
  template <typename Memory>
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t, const Memory& memory) const {
    body(Lanes{}, memory.template array<double>(0), panel, n);
  }
};

// Calls body(lanes, memory, panel, n) for the columns of every panel, with memory for body.numbers() numbers. On the
// CPU, a last column alone is a vector, too, lest the compiler fuse other products; with Body::kAlone it is a number.
template <typename Body>
void for_each_column(const Tensor& like, int64_t batch, int64_t, int64_t columns, const Body& body) {
  constexpr int64_t kMostBytes = int64_t(1) << 31;  // numbers of every row: of thousands of columns
  const Grid grid(batch, columns, 1);
  launch_with_memory(like, grid.items(), body.numbers() * int64_t(sizeof(double)),
                     GridItem<LanesItem<Body>>{grid, {body}}, kMostBytes);
}

template <typename Body>
struct StateItem {
  Body body;
  int64_t steps;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    auto state = body.initial(Lanes{}, panel, n);
#pragma unroll 4
    for (int64_t t = 0; t < steps; ++t) body.advance(Lanes{}, panel, t, n, state);
    if constexpr (requires { body.finish(Lanes{}, panel, n, state); }) body.finish(Lanes{}, panel, n, state);
  }
};

// For the columns of every panel, calls state = body.initial(lanes, panel, n), body.advance(lanes, panel, t, n, state)
// for every row t and, where a body has it, body.finish(lanes, panel, n, state). On the CPU, numbers are of type
// number_t, and all columns advance by a row before any goes on to the next: memory is faster by whole rows.
template <typename number_t = double, typename Body>
void advance_columns(const Tensor& like, int64_t batch, int64_t steps, int64_t columns, const Body& body) {
  launch_grid(like, Grid(batch, columns, 1), StateItem<Body>{body, steps});
}

}  // namespace on_gpu
#else
inline namespace on_cpu {

// `count` columns; the others of the vector are as the last one.
template <typename number_t>
struct LanesOf {
  using Number = Vec<number_t>;
  static constexpr int64_t kMost = Simd<number_t>::count;
  int64_t count;

  template <typename T>
  COMMODITY_INLINE Number load(const T* from) const {
    Number x;
    if (count == kMost) return commodity::load<number_t>(x, from), x;
    for (int64_t l = 0; l < kMost; ++l) x[l] = from[std::min(l, count - 1)];
    return x;
  }
  template <typename T>
  COMMODITY_INLINE Number reload(const T* from) const {
    return load(from);
  }
  template <typename T>
  COMMODITY_INLINE void store(const Number& x, T* to) const {
    if (count == kMost) return commodity::store<number_t>(x, to);
    for (int64_t l = 0; l < count; ++l) to[l] = static_cast<T>(x[l]);
  }
  COMMODITY_INLINE Number multiply_add(const Number& a, const Number& b, const Number& c) const { return a * b + c; }
  template <typename T>
  COMMODITY_INLINE void prefetch(const T* from) const {
    prefetch_line(from);
  }
};
using Lanes = LanesOf<double>;

template <typename Body, typename Lanes>
COMMODITY_SIMD void run_lanes(const Body& pointers, const Lanes& lanes, typename Lanes::Number* memory, int64_t panel,
                              int64_t n) {
  const Body body = pointers;  // in registers
  body(lanes, memory, panel, n);
}

template <typename Body>
void for_each_column(const Tensor&, int64_t batch, int64_t steps, int64_t columns, const Body& body) {
  for_each_block(Panels(batch, steps, columns), [&](int64_t panel, int64_t first, int64_t last) {
    AlignedVector<Vec<double>> memory(body.numbers());
    for (int64_t n = first; n < last; n += Lanes::kMost) {
      if constexpr (requires { Body::kAlone; })
        if (n + 1 == last) return run_lanes(body, OneColumn<>{}, reinterpret_cast<double*>(memory.data()), panel, n);
      run_lanes(body, Lanes{std::min(Lanes::kMost, last - n)}, memory.data(), panel, n);
    }
  });
}

constexpr int64_t kStateColumns = 256;  // columns of which the caches hold the states and a few rows

// Whole vectors of columns row by row, then the last columns one by one.
template <typename number_t, typename Body>
COMMODITY_SIMD void advance_block(const Body& pointers, int64_t panel, int64_t first, int64_t last, int64_t steps) {
  const Body body = pointers;  // in registers
  using Lanes = LanesOf<number_t>;
  const Lanes lanes{Lanes::kMost};
  const OneColumn<number_t> one;
  decltype(body.initial(lanes, 0, 0)) states[kStateColumns / Lanes::kMost];
  constexpr bool kFinishes = requires { body.finish(lanes, 0, 0, states[0]); };
  const int64_t vectors = (last - first) / Lanes::kMost;
  for (int64_t k = 0; k < vectors; ++k) states[k] = body.initial(lanes, panel, first + k * Lanes::kMost);
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t k = 0; k < vectors; ++k) {
#if defined(__clang__)  // writes x = c ? y : x in memory as a masked store, which AMD's processors do in some 20 steps
      auto state = states[k];
      body.advance(lanes, panel, t, first + k * Lanes::kMost, state);
      std::atomic_signal_fence(std::memory_order_acq_rel);
      states[k] = state;
#else
      body.advance(lanes, panel, t, first + k * Lanes::kMost, states[k]);
#endif
    }
  if constexpr (kFinishes)
    for (int64_t k = 0; k < vectors; ++k) body.finish(lanes, panel, first + k * Lanes::kMost, states[k]);
  for (int64_t n = first + vectors * Lanes::kMost; n < last; ++n) {
    auto state = body.initial(one, panel, n);
    for (int64_t t = 0; t < steps; ++t) body.advance(one, panel, t, n, state);
    if constexpr (kFinishes) body.finish(one, panel, n, state);
  }
}

template <typename number_t = double, typename Body>
void advance_columns(const Tensor&, int64_t batch, int64_t steps, int64_t columns, const Body& body) {
  for_each_block(
      Panels(batch, steps, columns),
      [&](int64_t panel, int64_t first, int64_t last) { advance_block<number_t>(body, panel, first, last, steps); },
      kStateColumns);
}

}  // namespace on_cpu
#endif

}  // namespace commodity
