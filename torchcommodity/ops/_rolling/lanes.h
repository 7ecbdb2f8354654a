// Adjacent columns in registers: 32 at a time, then 4, then single ones. Kernels of windows.h that walk over the rows
// of a block with their sums in registers, and with suffix sums that stay in the first-level cache.
#pragma once
#include "simd.h"
#include "windows.h"

namespace commodity {

constexpr int64_t kLanes = 32;  // the most columns at a time

// kVectors vectors, or one double: the values of one row.
template <typename Vector, int kVectors>
struct Lanes {
  static constexpr int64_t width = kVectors * int64_t(sizeof(Vector) / sizeof(double));
  Vector value[kVectors] = {};

  template <typename scalar_t>
  inline static Lanes read(const scalar_t* row) {
    Lanes lanes;
    for (int v = 0; v < kVectors; ++v) load<double>(lanes.value[v], row + v * Simd<double>::count);
    return lanes;
  }

  template <typename scalar_t>
  inline void write(scalar_t* row) const {
    for (int v = 0; v < kVectors; ++v) store<double>(value[v], row + v * Simd<double>::count);
  }

  inline void square_root() {
    for (int v = 0; v < kVectors; ++v) commodity::square_root<double>(value[v]);
  }

  inline bool finite() const {
    double row[width];
    write(row);
    bool finite = true;
    for (const double x : row) finite &= x - x == 0;
    return finite;
  }
};

// Calls body.operator()<Vector, kVectors>(n) for the first column n of each group of columns.
template <typename Body>
inline void for_each_group(int64_t width, const Body& body) {
  int64_t n = 0;
  for (; n + kLanes <= width; n += kLanes) body.template operator()<Vec<double>, kLanes / Simd<double>::count>(n);
  for (; n + Simd<double>::count <= width; n += Simd<double>::count) body.template operator()<Vec<double>, 1>(n);
  for (; n < width; ++n) body.template operator()<double, 1>(n);
}

}  // namespace commodity
