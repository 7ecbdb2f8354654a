// The primitives by theme. `find_primitive` looks through all of them.
#pragma once
#include <span>

#include "statement.h"

namespace commodity::series {

std::span<const Primitive> arithmetic_primitives();
std::span<const Primitive> function_primitives();
std::span<const Primitive> mask_primitives();
std::span<const Primitive> delay_primitives();
std::span<const Primitive> recursive_primitives();
std::span<const Primitive> window_primitives();
std::span<const Primitive> extreme_primitives();
std::span<const Primitive> order_primitives();

}  // namespace commodity::series
