// The share of a new value in an exponentially weighted mean, by pandas' rules, for the CPU and CUDA kernels.
#pragma once
#include "portable.h"

namespace commodity {

// The state of one column: the total weight of all values so far, zero before the first one.
struct EwmWeight {
  double total = 0;

  // Moves on by one row and returns the share of its value in the mean; zero if the value is missing.
  COMMODITY_INLINE double next(bool valid, double alpha, bool adjust, bool ignore_na) {
    const double decayed = valid || !ignore_na ? total * (1 - alpha) : total;
    const double added = adjust || total == 0 ? 1 : alpha, sum = decayed + added;
    total = valid ? (adjust ? sum : 1) : decayed;
    return valid ? added / sum : 0;
  }
};

}  // namespace commodity
