// A missing value is NaN.
#pragma once
#include <portable.h>

#include <limits>

namespace commodity::series {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Of a vector of numbers, a mask.
template <typename Number>
COMMODITY_INLINE auto missing(const Number& x) {
  return x != x;
}

}  // namespace commodity::series
