// A missing value is NaN.
#pragma once
#include <portable.h>

#include <limits>

namespace commodity::series {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

COMMODITY_INLINE bool missing(double x) { return x != x; }

}  // namespace commodity::series
