// add, subtract, multiply, divide, negate, absolute, maximum, minimum.
#include "pointwise.h"
#include "primitives.h"

namespace commodity::series {
namespace {

struct Add {
  static double value(double a, double b) { return a + b; }
  static double d_a(double, double, double) { return 1; }
  static double d_b(double, double, double) { return 1; }
};

struct Subtract {
  static double value(double a, double b) { return a - b; }
  static double d_a(double, double, double) { return 1; }
  static double d_b(double, double, double) { return -1; }
};

struct Multiply {
  static double value(double a, double b) { return a * b; }
  static double d_a(double, double b, double) { return b; }
  static double d_b(double a, double, double) { return a; }
};

struct Negate {
  static double value(double a) { return -a; }
  static double d_a(double, double) { return -1; }
};

struct Absolute {
  static double value(double a) { return __builtin_fabs(a); }
  static double d_a(double a, double) { return a > 0 ? 1 : (a < 0 ? -1 : 0); }
};

// At a tie the gradient goes to the first operand.
struct Maximum {
  static double value(double a, double b) {
    const double larger = a >= b ? a : b;  // b if one is missing
    return missing(a) ? a : larger;
  }
  static double d_a(double a, double b, double) { return a >= b ? 1 : 0; }
  static double d_b(double a, double b, double) { return a >= b ? 0 : 1; }
};

struct Minimum {
  static double value(double a, double b) {
    const double smaller = a <= b ? a : b;
    return missing(a) ? a : smaller;
  }
  static double d_a(double a, double b, double) { return a <= b ? 1 : 0; }
  static double d_b(double a, double b, double) { return a <= b ? 0 : 1; }
};

// The quotient, and `zero` where the divisor is zero: missing, or the constant in the attribute.
template <bool constant_a, bool constant_b>
inline void divide_elements(const Forward& tile, double zero) {
  const Operand<constant_a> a{tile.x[0]};
  const Operand<constant_b> b{tile.x[1]};
  double* y = tile.y;
  for_elements(tile, [=](int64_t i) {
    const double quotient = a[i] / b[i], at_zero = missing(a[i]) ? kMissing : zero;
    y[i] = b[i] == 0 ? at_zero : quotient;
  });
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

struct Quotient {
  static double d_a(double, double b, double) {
    const double slope = 1 / b;
    return b == 0 ? 0 : slope;
  }
  static double d_b(double, double b, double y) {
    const double slope = -y / b;
    return b == 0 ? 0 : slope;
  }
};

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
