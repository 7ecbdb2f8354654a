// Recurrences whose rows are affine maps of the state.
#pragma once
#include "portable.h"

namespace commodity {

// K states that share their factor: a row maps y_k to factor * y_k + offset_k.
template <int K = 1, typename number_t = double>
struct State {
  number_t y[K];
};

template <int K = 1, typename number_t = double>
struct Affine {
  using State = commodity::State<K, number_t>;
  number_t factor, offset[K];

  // Of a single row, whose factor is one of the inputs.
  COMMODITY_INLINE State apply(const State& y) const {
    State next;
    for (int k = 0; k < K; ++k) next.y[k] = factor * y.y[k] + offset[k];
    return next;
  }
  COMMODITY_INLINE State operator()(const State& y) const {
    State next;
    for (int k = 0; k < K; ++k)  // a composed factor may be infinite: infinity * 0 would be NaN
      next.y[k] = y.y[k] == 0 && factor == factor ? offset[k] : factor * y.y[k] + offset[k];
    return next;
  }
  COMMODITY_INLINE Affine after(const Affine& first) const {
    Affine composed{factor * first.factor};
    for (int k = 0; k < K; ++k) composed.offset[k] = factor * first.offset[k] + offset[k];
    return composed;
  }
};

}  // namespace commodity
