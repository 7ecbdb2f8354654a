// Statements whose value in a row depends on that row only: kernels over all elements of a tile at once.
// An operation is a struct with `value`, and one derivative per operand that has one, from the operands and the value.
#pragma once
#include "statement.h"

namespace commodity::series {

// An operand that is the same everywhere is read once.
template <bool constant>
struct Operand {
  const double* x;
  double operator[](int64_t i) const { return constant ? *x : x[i]; }
};

template <typename Body>
inline void for_elements(const Tile& tile, const Body& body) {
  const int64_t last = tile.end * tile.width;
  COMMODITY_IVDEP
  for (int64_t i = tile.begin * tile.width; i < last; ++i) body(i);
}

template <typename Operation>
SERIES_KERNEL void unary(const Forward& tile) {
  const double* a = tile.x[0];
  double* y = tile.y;
  for_elements(tile, [=](int64_t i) { y[i] = Operation::value(a[i]); });
}

template <typename Operation>
SERIES_KERNEL void unary_adjoint(const Adjoint& tile) {
  const double *a = tile.x[0], *y = tile.y, *dy = tile.dy;
  double* da = tile.dx[0];
  for_elements(tile, [=](int64_t i) {
    const double term = dy[i] * Operation::d_a(a[i], y[i]);
    da[i] += missing(y[i]) ? 0 : term;
  });
}

template <typename Operation, bool constant_a, bool constant_b>
inline void binary_elements(const Forward& tile) {
  const Operand<constant_a> a{tile.x[0]};
  const Operand<constant_b> b{tile.x[1]};
  double* y = tile.y;
  for_elements(tile, [=](int64_t i) { y[i] = Operation::value(a[i], b[i]); });
}

template <typename Operation>
SERIES_KERNEL void binary(const Forward& tile) {
  if (tile.constant[0])
    binary_elements<Operation, true, false>(tile);
  else if (tile.constant[1])
    binary_elements<Operation, false, true>(tile);
  else
    binary_elements<Operation, false, false>(tile);
}

template <typename Operation>
SERIES_KERNEL void binary_adjoint(const Adjoint& tile) {
  const double *a = tile.x[0], *b = tile.x[1], *y = tile.y, *dy = tile.dy;
  if (double* da = tile.dx[0])
    for_elements(tile, [=](int64_t i) {
      const double term = dy[i] * Operation::d_a(a[i], b[i], y[i]);
      da[i] += missing(y[i]) ? 0 : term;
    });
  if (double* db = tile.dx[1])
    for_elements(tile, [=](int64_t i) {
      const double term = dy[i] * Operation::d_b(a[i], b[i], y[i]);
      db[i] += missing(y[i]) ? 0 : term;
    });
}

template <typename Operation>
constexpr Primitive unary_primitive(std::string_view name) {
  Primitive primitive{.name = name, .operands = 1, .forward = unary<Operation>, .elementwise = true};
  if constexpr (requires { Operation::d_a(0.0, 0.0); }) primitive.adjoint = unary_adjoint<Operation>;
  return primitive;
}

template <typename Operation>
constexpr Primitive binary_primitive(std::string_view name) {
  Primitive primitive{.name = name, .operands = 2, .forward = binary<Operation>, .elementwise = true};
  if constexpr (requires { Operation::d_a(0.0, 0.0, 0.0); }) primitive.adjoint = binary_adjoint<Operation>;
  return primitive;
}

}  // namespace commodity::series
