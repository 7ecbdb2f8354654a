// Kernels of the operations of scans.h: the rows of a tile one after the other.
#pragma once
#include "statement.h"

namespace commodity::series {

template <typename Operation, bool record, typename Width>
inline void scan_rows(const Forward& tile, Width width) {
  constexpr int operands = Operation::kOperands, states = Operation::kStates, tapes = Operation::kTapes;
  for_vectors(width, [&](auto zero, int64_t n) {
    decltype(zero) x[Operation::kOperands], state[Operation::kStates], tape[Operation::kTapes + 1];
    const double* from[Operation::kOperands];
    double *to = tile.y + n, *memory = tile.state + n, *record_to = tile.tape + n;
    for (int k = 0; k < operands; ++k) from[k] = tile.x[k] + n;
    for (int k = 0; k < states; ++k) load<double>(state[k], memory + k * width);
    const int64_t end = tile.end * width;
    for (int64_t i = tile.begin * width; i < end; i += width) {
      for (int k = 0; k < operands; ++k) load<double>(x[k], from[k] + i);
      store<double>(Operation::step(x, state, tape), to + i);
      if constexpr (record)
        for (int k = 0; k < tapes; ++k) store<double>(tape[k], record_to + i * tapes + k * width);
    }
    for (int k = 0; k < states; ++k) store<double>(state[k], memory + k * width);
  });
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
