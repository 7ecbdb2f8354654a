// sqrt, exp, log, atan, sin, cos, floor, ceil, sign.
#include <vector_math.h>

#include "pointwise.h"
#include "primitives.h"

namespace commodity::series {
namespace {

// Zero, with zero gradient, where x is not positive.
struct SquareRoot {
  static double value(double a) {
    const double root = __builtin_sqrt(a > 0 ? a : 0);
    return missing(a) ? a : root;
  }
  static double d_a(double a, double y) {
    const double slope = 0.5 / y;
    return a > 0 ? slope : 0;
  }
};

struct Exp {
  static double value(double a) {
    const double y = fast_exp(missing(a) ? 0 : a);
    return missing(a) ? a : y;
  }
  static double d_a(double, double y) { return y; }
};

struct Log {
  static double value(double a) {
    const bool normal = a >= 0x1p-1022;
    const double y = fast_log(normal ? a : (a > 0 ? a * 0x1p64 : 1)) - (normal ? 0 : 64 * 0x1.62e42fefa39efp-1);
    return a > 0 ? y : kMissing;
  }
  static double d_a(double a, double) { return 1 / a; }
};

struct Atan {
  static double value(double a) { return __builtin_atan(a); }
  static double d_a(double a, double) { return 1 / (1 + a * a); }
};

struct Sin {
  static double value(double a) { return __builtin_sin(a); }
  static double d_a(double a, double) { return __builtin_cos(a); }
};

struct Cos {
  static double value(double a) { return __builtin_cos(a); }
  static double d_a(double a, double) { return -__builtin_sin(a); }
};

struct Floor {
  static double value(double a) { return __builtin_floor(a); }
};

struct Ceil {
  static double value(double a) { return __builtin_ceil(a); }
};

struct Sign {
  static double value(double a) { return a > 0 ? 1 : (a < 0 ? -1 : a); }
};

constexpr Primitive kPrimitives[] = {
    unary_primitive<SquareRoot>("sqrt"), unary_primitive<Exp>("exp"),   unary_primitive<Log>("log"),
    unary_primitive<Atan>("atan"),       unary_primitive<Sin>("sin"),   unary_primitive<Cos>("cos"),
    unary_primitive<Floor>("floor"),     unary_primitive<Ceil>("ceil"), unary_primitive<Sign>("sign"),
};

}  // namespace

std::span<const Primitive> function_primitives() { return kPrimitives; }

}  // namespace commodity::series
