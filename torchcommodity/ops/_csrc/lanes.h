// Kernels that walk through time with the state of a column in registers: a body is written over Number, which is
// double on a GPU, where a thread has a column, and a vector of neighboring columns on the CPU.
#pragma once
#include "kernel.h"
#include "vector_math.h"
#if !defined(COMMODITY_GPU)
#include "simd.h"
#endif

namespace commodity {

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

struct Lanes {
  using Number = double;

  template <typename T>
  COMMODITY_INLINE double load(const T* from) const {
    return read(from);
  }
  template <typename T>
  COMMODITY_INLINE void store(double x, T* to) const {
    *to = static_cast<T>(x);
  }
  template <typename T>
  COMMODITY_INLINE void prefetch(const T* address) const {
    prefetch_line(address);
  }
};

template <typename Body>
struct LanesItem {
  Body body;
  template <typename Memory>
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t, const Memory& memory) const {
    body(Lanes{}, memory.template array<double>(0), panel, n);
  }
};

// Calls body(lanes, memory, panel, n) for the columns of every panel, with memory for body.numbers() numbers.
template <typename Body>
void for_each_column(const Tensor& like, int64_t batch, int64_t, int64_t columns, const Body& body) {
  const Grid grid(batch, columns, 1);
  launch_with_memory(like, grid.items(), body.numbers() * int64_t(sizeof(double)),
                     GridItem<LanesItem<Body>>{grid, {body}});
}

}  // namespace on_gpu
#else

template <>
struct Bits<Vec<double>> {
  using type = Vec<uint64_t>;
};

inline namespace on_cpu {

// `count` columns; the others of the vector are as the last one.
struct Lanes {
  using Number = Vec<double>;
  static constexpr int64_t kMost = Simd<double>::count;
  int64_t count;

  template <typename T>
  COMMODITY_INLINE Number load(const T* from) const {
    Number x;
    if (count == kMost) return commodity::load<double>(x, from), x;
    for (int64_t l = 0; l < kMost; ++l) x[l] = from[std::min(l, count - 1)];
    return x;
  }
  template <typename T>
  COMMODITY_INLINE void store(const Number& x, T* to) const {
    if (count == kMost) return commodity::store<double>(x, to);
    for (int64_t l = 0; l < count; ++l) to[l] = static_cast<T>(x[l]);
  }
  // The hardware does not follow a stride of a whole row.
  template <typename T>
  COMMODITY_INLINE void prefetch(const T* from) const {
    __builtin_prefetch(from);
  }
};

template <typename Body>
COMMODITY_SIMD void run_lanes(const Body& body, const Lanes& lanes, Vec<double>* memory, int64_t panel, int64_t n) {
  body(lanes, memory, panel, n);
}

template <typename Body>
void for_each_column(const Tensor&, int64_t batch, int64_t steps, int64_t columns, const Body& body) {
  for_each_block(Panels(batch, steps, columns), [&](int64_t panel, int64_t first, int64_t last) {
    AlignedVector<Vec<double>> memory(body.numbers());
    for (int64_t n = first; n < last; n += Lanes::kMost)
      run_lanes(body, Lanes{std::min(Lanes::kMost, last - n)}, memory.data(), panel, n);
  });
}

}  // namespace on_cpu
#endif

}  // namespace commodity
