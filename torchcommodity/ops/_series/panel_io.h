// Panels in and out of tiles: conversion to float64 and back, and the masks of values that are missing together.
#pragma once
#include "program.h"

namespace commodity::series {

// Columns [first, first + columns) of a contiguous panel, rows of `stride` elements.
struct View {
  int64_t stride, columns, width;
};

// Prefetches rows of a panel: the hardware does not follow a stride of a whole row, nor a row into the next page.
template <typename scalar_t>
inline void prefetch_tile(const scalar_t* x, const View& view, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, x += view.stride)
    for (int64_t n = 0; n < view.columns; n += 64 / sizeof(scalar_t)) __builtin_prefetch(x + n);
}

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

// Returns whether all values are finite.
template <typename scalar_t>
SERIES_KERNEL bool load_tile(const scalar_t* x, const View& view, int64_t rows, double* y) {
  constexpr int64_t count = Simd<double>::count;
  Vec<double> value, residue = {};  // x - x is zero for a finite x, else NaN
  double rest = 0;
  for (int64_t r = 0; r < rows; ++r, x += view.stride, y += view.width) {
    int64_t n = 0;
    for (; n + count <= view.columns; n += count) {
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

// `absent` stands for a missing value.
template <typename scalar_t>
SERIES_KERNEL void store_tile(const double* x, const double* bad, const View& view, int64_t rows, double absent,
                              scalar_t* y) {
  for (int64_t r = 0; r < rows; ++r, x += view.width, y += view.stride) {
    if (bad) {
      COMMODITY_IVDEP
      for (int64_t n = 0; n < view.columns; ++n) y[n] = static_cast<scalar_t>(bad[n] == 0 ? x[n] : absent);
      bad += view.width;
    } else {
      COMMODITY_IVDEP
      for (int64_t n = 0; n < view.columns; ++n) y[n] = static_cast<scalar_t>(missing(x[n]) ? absent : x[n]);
    }
  }
}

// A single column of a panel of one asset is a contiguous row.
inline View flatten(const View& view, int64_t& rows) {
  if (view.stride != 1) return view;
  const int64_t size = std::exchange(rows, 1);
  return {size, size, size};
}

}  // namespace commodity::series
