// The weight of a new value in an exponential average, by pandas' rules. CPU and CUDA kernels share it.
#pragma once
#include "portable.h"

namespace commodity {

// What is known of the weights of one column: the weight of all that was, zero before the first value.
struct EwmWeight {
  double old = 0;

  // The share of a new value in the average; zero where it is missing: the average is carried on.
  COMMODITY_INLINE double next(bool present, double alpha, bool adjust, bool ignore_na) {
    const double faded = present || !ignore_na ? old * (1 - alpha) : old;
    const double fresh = adjust || old == 0 ? 1 : alpha, all = faded + fresh;
    old = present ? (adjust ? all : 1) : faded;
    return present ? fresh / all : 0;
  }
};

}  // namespace commodity
