// A statement of a series program and the kernel that runs it on a tile: some rows of a block of columns, in float64.
// A missing value is NaN. Tiles are one column wide, or padded to whole vectors of kLanes columns.
#pragma once
#include <native.h>
#include <simd.h>

#include <string>
#include <string_view>

#include "missing.h"

// Products and sums are rounded one by one: the bits depend neither on the instruction set nor on how a loop is cut.
#if defined(__GNUC__) && !defined(__clang__)
#define SERIES_KERNEL COMMODITY_SIMD __attribute__((optimize("fp-contract=off")))
#else
#define SERIES_KERNEL COMMODITY_SIMD
#pragma STDC FP_CONTRACT OFF
#endif

namespace commodity::series {

constexpr int kLanes = 8;
constexpr int kOperands = 5;

// Rows [begin, end) of a tile. Registers point at row 0 of the tile, which is row `time` of the series.
struct Tile {
  int64_t begin, end, width, time;
  int64_t offset() const { return begin * width; }
  int64_t size() const { return (end - begin) * width; }
};

struct Forward : Tile {
  const double* x[kOperands];  // operands
  bool constant[kOperands];    // every element of the operand is the same
  double* y;
  double* state;  // planes of `width` numbers
  bool traced;    // in a backward pass: the state is that of `traced_states`
  double* tape;   // what the adjoint needs besides the registers: rows of `tapes` planes; or nullptr
  const double* attributes;
  int attribute_count;
};

// Rows end - 1, ..., begin in this order. Adds to the gradients of the operands.
struct Adjoint : Tile {
  const double* x[kOperands];
  const double* y;
  const double* tape;
  const double* start;  // the forward state before row 0 of the tile
  const double* attributes;
  int attribute_count;
  double* dy;             // gradient of the value; where the value is missing it is to be ignored
  double* dx[kOperands];  // nullptr: not wanted
  double* state;          // of the adjoint, carried to earlier rows; zero after the last row
  double* waste;          // a row that may be overwritten
  int64_t steps;          // rows of the whole series
};

using Count = int64_t (*)(const double* attributes);
using Start = void (*)(const double* attributes, int64_t planes, int64_t width, double* state);

inline int64_t none(const double*) { return 0; }

struct Primitive {
  std::string_view name;
  int operands = 0;
  int min_attributes = 0, max_attributes = 0;
  void (*forward)(const Forward&) = nullptr;
  bool elementwise = false;                   // may write where it reads
  Count states = none;                        // planes of state
  Count traced_states = nullptr;              // in a backward pass; nullptr: the same
  Start start = nullptr;                      // of the state; nullptr: zero
  void (*adjoint)(const Adjoint&) = nullptr;  // nullptr: no gradient
  Count adjoint_states = none;
  int tapes = 0;
};

// nullptr if no primitive has this name.
const Primitive* find_primitive(std::string_view name);

// Whole vectors, so that loops over columns have no remainder.
inline int64_t whole(int64_t width) { return width / kLanes * kLanes; }

// Calls body(width) with a width that the compiler knows to be 1 or whole vectors.
template <typename Body>
inline void for_width(int64_t width, const Body& body) {
  if (width == 1)
    body(std::integral_constant<int64_t, 1>());
  else
    body(whole(width));
}

// Calls body(n) for every column; the body may write to a column only what belongs to it.
template <typename Width, typename Body>
inline void for_columns(Width width, const Body& body) {
  if constexpr (std::is_same_v<Width, int64_t>) {
    COMMODITY_IVDEP
    for (int64_t n = 0; n < width; ++n) body(n);
  } else {
    body(0);
  }
}

// Calls body(zero, n) for every vector of columns, or with a number for a single one: what the body carries from row to
// row stays in registers.
template <typename Width, typename Body>
inline void for_vectors(Width width, const Body& body) {
  if constexpr (std::is_same_v<Width, int64_t>)
    for (int64_t n = 0; n < width; n += Simd<double>::count) body(Vec<double>{}, n);
  else
    body(0.0, 0);
}

inline void start_missing(const double*, int64_t planes, int64_t width, double* state) {
  std::fill_n(state, planes * width, kMissing);
}

}  // namespace commodity::series
