// The shares of values in exponentially weighted means on a GPU: the total weight of the values so far is a linear
// recurrence.
#pragma once
#include "device_scan.h"

namespace commodity {

// The total weight and the number of the values so far.
struct WeightState {
  double total, count;
};

struct WeightMap {
  using State = WeightState;
  Affine<> total;
  double count;

  COMMODITY_INLINE State operator()(const State& state) const {
    return {total({state.total}).y[0], state.count + count};
  }
  COMMODITY_INLINE State apply(const State& state) const { return (*this)(state); }
  COMMODITY_INLINE WeightMap after(const WeightMap& first) const {
    return {total.after(first.total), first.count + count};
  }
};

template <typename scalar_t>
COMMODITY_INLINE bool is_valid(scalar_t x) {
  return std::abs(x) < INFINITY;
}

// EwmWeight::next as a map of the total weight, and without branches.
struct EwmRule {
  bool adjust, ignore_na;

  COMMODITY_INLINE WeightMap map(bool adds, double alpha) const {
    const double decay = adds && !adjust ? 0 : adds || !ignore_na ? 1 - alpha : 1;
    return {{decay, {adds ? 1.0 : 0.0}}, adds ? 1.0 : 0.0};
  }
  COMMODITY_INLINE double next_share(double& total, bool adds, double alpha) const {
    const double decayed = adds || !ignore_na ? total * (1 - alpha) : total;
    const double added = adjust || total == 0 ? 1 : alpha, sum = decayed + added;
    total = adds ? (adjust ? sum : 1) : decayed;
    return adds ? divide(added, sum) : 0;
  }
};

}  // namespace commodity
