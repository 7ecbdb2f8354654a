// add, subtract, multiply, divide, negate, absolute, maximum, minimum.
#include "operations.h"
#include "pointwise.h"
#include "primitives.h"

namespace commodity::series {
namespace {

// The quotient, and `zero` where the divisor is zero: missing, or the constant in the attribute.
template <bool constant_a, bool constant_b>
inline void divide_elements(const Forward& tile, double zero) {
  const Operand<constant_a> a{tile.x[0]};
  const Operand<constant_b> b{tile.x[1]};
  double* y = tile.y;
  for_elements(tile, [=](int64_t i) { y[i] = Quotient::value(a[i], b[i], zero); });
}

SERIES_KERNEL void divide(const Forward& tile) {
  const double zero = tile.attribute_count ? tile.attributes[0] : kMissing;
  if (tile.constant[0])
    divide_elements<true, false>(tile, zero);
  else if (tile.constant[1])
    divide_elements<false, true>(tile, zero);
  else
    divide_elements<false, false>(tile, zero);
}

constexpr Primitive kPrimitives[] = {
    binary_primitive<Add>("add"),
    binary_primitive<Subtract>("subtract"),
    binary_primitive<Multiply>("multiply"),
    {.name = "divide",
     .operands = 2,
     .max_attributes = 1,
     .forward = divide,
     .elementwise = true,
     .adjoint = binary_adjoint<Quotient>},
    unary_primitive<Negate>("negate"),
    unary_primitive<Absolute>("absolute"),
    binary_primitive<Maximum>("maximum"),
    binary_primitive<Minimum>("minimum"),
};

}  // namespace

std::span<const Primitive> arithmetic_primitives() { return kPrimitives; }

}  // namespace commodity::series
