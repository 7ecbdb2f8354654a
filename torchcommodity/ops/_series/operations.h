// The arithmetic of pointwise statements, shared by the CPU and CUDA: `value`, and one derivative for each operand that
// has one, from the operands and the value.
#pragma once
#include <vector_math.h>

#include "missing.h"

namespace commodity::series {

struct Add {
  static COMMODITY_INLINE double value(double a, double b) { return a + b; }
  static COMMODITY_INLINE double d_a(double, double, double) { return 1; }
  static COMMODITY_INLINE double d_b(double, double, double) { return 1; }
};

struct Subtract {
  static COMMODITY_INLINE double value(double a, double b) { return a - b; }
  static COMMODITY_INLINE double d_a(double, double, double) { return 1; }
  static COMMODITY_INLINE double d_b(double, double, double) { return -1; }
};

struct Multiply {
  static COMMODITY_INLINE double value(double a, double b) { return a * b; }
  static COMMODITY_INLINE double d_a(double, double b, double) { return b; }
  static COMMODITY_INLINE double d_b(double a, double, double) { return a; }
};

struct Negate {
  static COMMODITY_INLINE double value(double a) { return -a; }
  static COMMODITY_INLINE double d_a(double, double) { return -1; }
};

struct Absolute {
  static COMMODITY_INLINE double value(double a) { return std::fabs(a); }
  static COMMODITY_INLINE double d_a(double a, double) { return a > 0 ? 1 : (a < 0 ? -1 : 0); }
};

// At a tie the gradient goes to the first operand.
struct Maximum {
  template <typename Number>
  static COMMODITY_INLINE Number value(const Number& a, const Number& b) {
    const Number larger = b > a ? b : a;  // a, if either is missing: one instruction
    return missing(b) ? b : larger;
  }
  static COMMODITY_INLINE double d_a(double a, double b, double) { return a >= b ? 1 : 0; }
  static COMMODITY_INLINE double d_b(double a, double b, double) { return a >= b ? 0 : 1; }
};

struct Minimum {
  template <typename Number>
  static COMMODITY_INLINE Number value(const Number& a, const Number& b) {
    const Number smaller = b < a ? b : a;
    return missing(b) ? b : smaller;
  }
  static COMMODITY_INLINE double d_a(double a, double b, double) { return a <= b ? 1 : 0; }
  static COMMODITY_INLINE double d_b(double a, double b, double) { return a <= b ? 0 : 1; }
};

// `zero` where the divisor is zero.
struct Quotient {
  static COMMODITY_INLINE double value(double a, double b, double zero) {
    const double quotient = a / b, at_zero = missing(a) ? kMissing : zero;
    return b == 0 ? at_zero : quotient;
  }
  static COMMODITY_INLINE double d_a(double, double b, double) {
    const double slope = 1 / b;
    return b == 0 ? 0 : slope;
  }
  static COMMODITY_INLINE double d_b(double, double b, double y) {
    const double slope = -y / b;
    return b == 0 ? 0 : slope;
  }
};

// Zero, with zero gradient, where x is not positive.
struct SquareRoot {
  static COMMODITY_INLINE double value(double a) {
    const double root = std::sqrt(a > 0 ? a : 0);
    return missing(a) ? a : root;
  }
  static COMMODITY_INLINE double d_a(double a, double y) {
    const double slope = 0.5 / y;
    return a > 0 ? slope : 0;
  }
};

struct Exp {
  static COMMODITY_INLINE double value(double a) {
    const double y = fast_exp(missing(a) ? 0 : a);
    return missing(a) ? a : y;
  }
  static COMMODITY_INLINE double d_a(double, double y) { return y; }
};

struct Log {
  static COMMODITY_INLINE double value(double a) {
    const bool normal = a >= 0x1p-1022;
    const double y = fast_log(normal ? a : (a > 0 ? a * 0x1p64 : 1)) - (normal ? 0 : 64 * 0x1.62e42fefa39efp-1);
    return a > 0 ? y : kMissing;
  }
  static COMMODITY_INLINE double d_a(double a, double) { return 1 / a; }
};

struct Atan {
  static COMMODITY_INLINE double value(double a) { return std::atan(a); }
  static COMMODITY_INLINE double d_a(double a, double) { return 1 / (1 + a * a); }
};

struct Sin {
  static COMMODITY_INLINE double value(double a) { return std::sin(a); }
  static COMMODITY_INLINE double d_a(double a, double) { return std::cos(a); }
};

struct Cos {
  static COMMODITY_INLINE double value(double a) { return std::cos(a); }
  static COMMODITY_INLINE double d_a(double a, double) { return -std::sin(a); }
};

struct Floor {
  static COMMODITY_INLINE double value(double a) { return std::floor(a); }
};

struct Ceil {
  static COMMODITY_INLINE double value(double a) { return std::ceil(a); }
};

struct Sign {
  static COMMODITY_INLINE double value(double a) { return a > 0 ? 1 : (a < 0 ? -1 : a); }
};

struct Less {
  static COMMODITY_INLINE double value(double a, double b) {
    const double otherwise = a >= b ? 0 : kMissing;
    return a < b ? 1 : otherwise;
  }
};

struct LessEqual {
  static COMMODITY_INLINE double value(double a, double b) {
    const double otherwise = a > b ? 0 : kMissing;
    return a <= b ? 1 : otherwise;
  }
};

struct Equal {
  static COMMODITY_INLINE double value(double a, double b) {
    const double mask = a == b ? 1 : 0;
    return (missing(a) | missing(b)) ? kMissing : mask;
  }
};

struct Valid {
  static COMMODITY_INLINE double value(double a) { return missing(a) ? 0 : 1; }
};

struct Fill {
  static COMMODITY_INLINE double value(double a, double b) { return missing(a) ? b : a; }
  static COMMODITY_INLINE double d_a(double a, double, double) { return missing(a) ? 0 : 1; }
  static COMMODITY_INLINE double d_b(double a, double, double) { return missing(a) ? 1 : 0; }
};

// The value where the mask is neither missing nor zero.
struct Restrict {
  static COMMODITY_INLINE double value(double a, double mask) { return std::fabs(mask) > 0 ? a : kMissing; }
  static COMMODITY_INLINE double d_a(double, double, double) { return 1; }
  static COMMODITY_INLINE double d_b(double, double, double) { return 0; }
};

}  // namespace commodity::series
