// sqrt, exp, log, atan, sin, cos, floor, ceil, sign.
#include "operations.h"
#include "pointwise.h"
#include "primitives.h"

namespace commodity::series {
namespace {

constexpr Primitive kPrimitives[] = {
    unary_primitive<SquareRoot>("sqrt"), unary_primitive<Exp>("exp"),   unary_primitive<Log>("log"),
    unary_primitive<Atan>("atan"),       unary_primitive<Sin>("sin"),   unary_primitive<Cos>("cos"),
    unary_primitive<Floor>("floor"),     unary_primitive<Ceil>("ceil"), unary_primitive<Sign>("sign"),
};

}  // namespace

std::span<const Primitive> function_primitives() { return kPrimitives; }

}  // namespace commodity::series
