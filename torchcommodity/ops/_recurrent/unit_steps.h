// One unit of a recurrent layer at one step, on a GPU: what both ways of recurrence_device.h to run over a sequence do.
#pragma once
#include "cells.h"

namespace commodity {
inline namespace on_gpu {

// Sequences (series, steps, .) and states (series, hidden). The gates are, in the forward pass, what the input gives to
// them; in the backward pass, their activations.
template <typename scalar_t>
struct RecurrentLayer {
  int64_t series, steps, hidden;
  const scalar_t *gates, *h0, *c0;
  const bool* missing;
  const scalar_t* c;

  COMMODITY_INLINE int64_t row(int64_t series, int64_t t) const { return series * steps + t; }
  COMMODITY_INLINE scalar_t state(const scalar_t* sequence, const scalar_t* initial, int64_t series, int64_t t,
                                  int64_t j) const {
    return t < 0 ? initial[series * hidden + j] : sequence[row(series, t) * hidden + j];
  }
};

// The state of a unit; a missing row leaves it as it is, and has activations of zero.
template <typename Cell, typename scalar_t>
struct UnitState {
  scalar_t h, c;

  COMMODITY_INLINE void step(const scalar_t (&z)[Cell::kGates], scalar_t (&a)[Cell::kGates], bool is_missing) {
    for (int g = 0; g < Cell::kGates; ++g) a[g] = 0;
    if (is_missing) return;
    const scalar_t c_previous = c;
    Cell::activate(z, a);
    Cell::step(a, c_previous, c, h);
  }
};

// Gradients of the loss by the state of a unit: D_t = dL/dh_t = grad_t + d_gates_{t+1} W; where row t + 1 is missing,
// D_t = grad_t + D_{t+1}. That of c is a sum over time, hence in double.
template <typename Cell, typename scalar_t>
struct UnitGradient {
  double d_c;
  scalar_t d_h;  // D_{t+1} before a step, D_t after it

  COMMODITY_INLINE void step(const scalar_t (&a)[Cell::kGates], scalar_t c_previous, scalar_t c, scalar_t grad_h,
                             scalar_t grad_c, bool is_missing, scalar_t (&d_z)[Cell::kGates]) {
    d_h += grad_h, d_c += grad_c;
    for (int g = 0; g < Cell::kGates; ++g) d_z[g] = 0;
    if (!is_missing) Cell::backward(a, c_previous, c, d_h, d_c, d_z, d_c);
  }
};

}  // namespace on_gpu
}  // namespace commodity
