// Panels in and out of tiles: conversion to float64 and back, and the masks of values that are missing together.
#pragma once
#include "program.h"

namespace commodity::series {

// Columns [first, first + columns) of a contiguous panel, rows of `stride` elements.
struct View {
  int64_t stride, columns, width;
};

// Adds to `bad` what is not zero where a value is not finite.
template <typename scalar_t>
SERIES_KERNEL void mark_missing(const scalar_t* x, const View& view, int64_t rows, double* bad) {
  for (int64_t r = 0; r < rows; ++r, x += view.stride, bad += view.width) {
    COMMODITY_IVDEP
    for (int64_t n = 0; n < view.columns; ++n) {
      const double value = x[n];
      bad[n] += value - value;
    }
  }
}

// Returns whether all values are finite. Prefetches what lies `ahead` elements further: line by line, as a processor
// drops the prefetches of a burst, and the hardware follows neither a stride of a whole row nor a row into the next
// page.
template <typename scalar_t>
SERIES_KERNEL bool load_tile(const scalar_t* x, const View& view, int64_t rows, int64_t ahead, double* y) {
  constexpr int64_t count = Simd<double>::count, line = 64 / sizeof(scalar_t);
  Vec<double> value, residue = {};  // x - x is zero for a finite x, else NaN
  double rest = 0;
  for (int64_t r = 0; r < rows; ++r, x += view.stride, y += view.width) {
    int64_t n = 0;
    for (; n + count <= view.columns; n += count) {
      if (n % line == 0) __builtin_prefetch(x + ahead + n);
      load<double>(value, x + n), store<double>(value, y + n);
      residue += value - value;
    }
    for (; n < view.columns; ++n) y[n] = x[n], rest += y[n] - y[n];
    for (; n < view.width; ++n) y[n] = 1;  // nobody reads it; a missing value would slow down
  }
  for (int l = 0; l < count; ++l) rest += residue[l];
  return rest == 0;
}

// Makes missing what is bad.
inline SERIES_KERNEL void remove_values(const double* bad, int64_t size, double* y) {
  COMMODITY_IVDEP
  for (int64_t i = 0; i < size; ++i) y[i] = bad[i] == 0 ? y[i] : kMissing;
}

inline SERIES_KERNEL void mark_missing_values(const double* x, int64_t size, double* bad) {
  COMMODITY_IVDEP
  for (int64_t i = 0; i < size; ++i) bad[i] += missing(x[i]) ? 1 : 0;
}

// `absent` stands for a missing value. Returns whether a value is missing, unless `bad` says which are.
template <typename scalar_t>
SERIES_KERNEL bool store_tile(const double* x, const double* bad, const View& view, int64_t rows, double absent,
                              scalar_t* y) {
  const bool converts = std::is_floating_point_v<scalar_t> && missing(absent);  // NaN is NaN
  int64_t count = 0;
  for (int64_t r = 0; r < rows; ++r, x += view.width, y += view.stride) {
    if (bad) {
      COMMODITY_IVDEP
      for (int64_t n = 0; n < view.columns; ++n) y[n] = static_cast<scalar_t>(bad[n] == 0 ? x[n] : absent);
      bad += view.width;
    } else if (converts) {
      COMMODITY_IVDEP
      for (int64_t n = 0; n < view.columns; ++n) y[n] = static_cast<scalar_t>(x[n]), count += missing(x[n]) ? 1 : 0;
    } else {
      COMMODITY_IVDEP
      for (int64_t n = 0; n < view.columns; ++n) {
        y[n] = static_cast<scalar_t>(missing(x[n]) ? absent : x[n]);
        count += missing(x[n]) ? 1 : 0;
      }
    }
  }
  return count > 0;
}

// A single column of a panel of one asset is a contiguous row.
inline View flatten(const View& view, int64_t& rows) {
  if (view.stride != 1) return view;
  const int64_t size = std::exchange(rows, 1);
  return {size, size, size};
}

}  // namespace commodity::series
