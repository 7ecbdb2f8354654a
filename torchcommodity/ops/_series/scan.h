// Kernels of the operations of scans.h: the rows of a tile one after the other.
#pragma once
#include "statement.h"

namespace commodity::series {

template <typename Operation, bool record, typename Width>
inline void scan_rows(const Forward& tile, Width width) {
  constexpr int operands = Operation::kOperands, states = Operation::kStates, tapes = Operation::kTapes;
  const auto step = [&](int64_t i, int64_t tape_row, int64_t n, double* state) {
    double x[operands], tape[tapes + 1];
    for (int k = 0; k < operands; ++k) x[k] = tile.x[k][i];
    tile.y[i] = Operation::step(x, state, tape);
    if constexpr (record)
      for (int k = 0; k < tapes; ++k) tile.tape[(tape_row + k) * width + n] = tape[k];
  };
  if constexpr (!std::is_same_v<Width, int64_t>) {
    double state[states];
    for (int k = 0; k < states; ++k) state[k] = tile.state[k];
    for (int64_t r = tile.begin; r < tile.end; ++r) step(r, r * tapes, 0, state);
    for (int k = 0; k < states; ++k) tile.state[k] = state[k];
  } else {
    for (int64_t r = tile.begin; r < tile.end; ++r) {
      for_columns(width, [&](int64_t n) {
        double state[states];
        for (int k = 0; k < states; ++k) state[k] = tile.state[k * width + n];
        step(r * width + n, r * tapes, n, state);
        for (int k = 0; k < states; ++k) tile.state[k * width + n] = state[k];
      });
    }
  }
}

template <typename Operation>
SERIES_KERNEL void scan(const Forward& tile) {
  for_width(tile.width, [&](auto width) {
    tile.tape ? scan_rows<Operation, true>(tile, width) : scan_rows<Operation, false>(tile, width);
  });
}

// A gradient that nobody wants goes to one row of waste.
template <typename Operation>
SERIES_KERNEL void scan_adjoint(const Adjoint& tile) {
  constexpr int operands = Operation::kOperands, carries = Operation::kCarries, tapes = Operation::kTapes;
  for_width(tile.width, [&](auto width) {
    for (int64_t r = tile.end - 1; r >= tile.begin; --r) {
      double* gradient[operands];
      for (int k = 0; k < operands; ++k) gradient[k] = tile.dx[k] ? tile.dx[k] + r * width : tile.waste;
      const double* tapes_of_row = tile.tape + r * tapes * width;
      for_columns(width, [&](int64_t n) {
        const int64_t i = r * width + n;
        double x[operands], dx[operands], tape[tapes + 1], carry[carries];
        for (int k = 0; k < operands; ++k) x[k] = tile.x[k][i];
        for (int k = 0; k < tapes; ++k) tape[k] = tapes_of_row[k * width + n];
        for (int k = 0; k < carries; ++k) carry[k] = tile.state[k * width + n];
        Operation::adjoint(x, missing(tile.y[i]) ? 0 : tile.dy[i], tape, carry, dx);
        for (int k = 0; k < carries; ++k) tile.state[k * width + n] = carry[k];
        for (int k = 0; k < operands; ++k) gradient[k][n] += dx[k];
      });
    }
  });
}

template <typename Operation>
constexpr Primitive scan_primitive(std::string_view name) {
  Primitive primitive{.name = name, .operands = Operation::kOperands, .forward = scan<Operation>};
  primitive.states = [](const double*) -> int64_t { return Operation::kStates; };
  primitive.start = [](const double*, int64_t planes, int64_t width, double* state) {
    std::fill_n(state, planes * width, Operation::kStart);
  };
  if constexpr (requires { Operation::kCarries; }) {
    primitive.adjoint = scan_adjoint<Operation>;
    primitive.adjoint_states = [](const double*) -> int64_t { return Operation::kCarries; };
    primitive.tapes = Operation::kTapes;
  }
  return primitive;
}

}  // namespace commodity::series
