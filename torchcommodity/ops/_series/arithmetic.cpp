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

#if defined(__FMA__)
// The bits of the division of normal numbers by one number, in half of its time: an estimate that is wrong by less than
// one unit in the last place, and its exact remainder (Brisebarre, Muller and Raina 2004). Zeros and infinities have
// the signs of a product.
inline void divide_by(const Forward& tile, double b) {
  const double reciprocal = 1 / b, rest = std::fma(-reciprocal, b, 1.0) / b;
  const double* a = tile.x[0];
  double* y = tile.y;
  for_elements(tile, [=](int64_t i) {
    const double estimate = std::fma(a[i], reciprocal, a[i] * rest), remainder = std::fma(-estimate, b, a[i]);
    const double quotient = std::fma(remainder, reciprocal, estimate), product = a[i] * reciprocal;
    y[i] = std::fabs(quotient) > 0 ? quotient : product;
  });
}
#endif

SERIES_KERNEL void divide(const Forward& tile) {
#if defined(__FMA__)
  const double b = tile.constant[1] ? std::fabs(*tile.x[1]) : 0;
  if (b > 0x1p-64 && b < 0x1p64) return divide_by(tile, *tile.x[1]);
#endif
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
