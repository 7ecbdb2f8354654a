// less, less_equal, equal, valid, fill, restrict, where. A mask is 1, 0 or missing.
#include "operations.h"
#include "pointwise.h"
#include "primitives.h"

namespace commodity::series {
namespace {

template <bool constant_a, bool constant_b>
inline void where_elements(const Forward& tile) {
  const double* mask = tile.x[0];
  const Operand<constant_a> a{tile.x[1]};
  const Operand<constant_b> b{tile.x[2]};
  double* y = tile.y;
  for_elements(tile, [=](int64_t i) {
    const double left = a[i], right = b[i], chosen = mask[i] != 0 ? left : right;
    y[i] = missing(mask[i]) ? kMissing : chosen;
  });
}

SERIES_KERNEL void where(const Forward& tile) {
  if (tile.constant[1])
    tile.constant[2] ? where_elements<true, true>(tile) : where_elements<true, false>(tile);
  else
    tile.constant[2] ? where_elements<false, true>(tile) : where_elements<false, false>(tile);
}

// Only the chosen branch has a gradient.
SERIES_KERNEL void where_adjoint(const Adjoint& tile) {
  const double *mask = tile.x[0], *y = tile.y, *dy = tile.dy;
  if (double* da = tile.dx[1])
    for_elements(tile, [=](int64_t i) { da[i] += missing(y[i]) | (mask[i] == 0) ? 0 : dy[i]; });
  if (double* db = tile.dx[2])
    for_elements(tile, [=](int64_t i) { db[i] += missing(y[i]) | (mask[i] != 0) ? 0 : dy[i]; });
}

constexpr Primitive kPrimitives[] = {
    binary_primitive<Less>("less"),
    binary_primitive<LessEqual>("less_equal"),
    binary_primitive<Equal>("equal"),
    unary_primitive<Valid>("valid"),
    binary_primitive<Fill>("fill"),
    binary_primitive<Restrict>("restrict"),
    {.name = "where", .operands = 3, .forward = where, .elementwise = true, .adjoint = where_adjoint},
};

}  // namespace

std::span<const Primitive> mask_primitives() { return kPrimitives; }

}  // namespace commodity::series
