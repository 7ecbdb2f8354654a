// A recurrent layer over a sequence on a GPU, and its adjoint: what remains once the input is projected onto the gates.
// Products with the weights are ATen's; a kernel for every step does the rest.
#pragma once
#include "aten.h"
#include "cells.h"
#include "device.h"

namespace commodity {
namespace {  // each kernel file compiles its own

using torch::stable::select;
using torch::stable::transpose;
using torch::stable::view;

// Sequences (series, steps, .) and states (series, hidden).
template <typename scalar_t>
struct RecurrentLayer {
  int64_t steps, hidden;
  const scalar_t *gates, *h0, *c0;
  const bool* missing;
  const scalar_t *h, *c;

  COMMODITY_INLINE int64_t at(int64_t series, int64_t t) const { return series * steps + t; }
  COMMODITY_INLINE scalar_t state(const scalar_t* sequence, const scalar_t* first, int64_t series, int64_t t,
                                  int64_t j) const {
    return t < 0 ? first[series * hidden + j] : sequence[at(series, t) * hidden + j];
  }
};

template <typename Cell, typename scalar_t>
struct ForwardStep {
  RecurrentLayer<scalar_t> of;
  const scalar_t* own;  // h_{t-1} times the weights
  scalar_t *h, *c;
  int64_t t;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t series = item / of.hidden, j = item % of.hidden, at = of.at(series, t);
    const scalar_t before = of.state(c, of.c0, series, t - 1, j);
    scalar_t z[Cell::kGates], now_c = before, now_h;
    for (int g = 0; g < Cell::kGates; ++g) {
      const int64_t gate = g * of.hidden + j, wide = Cell::kGates * of.hidden;
      z[g] = read(of.gates + at * wide + gate) + own[series * wide + gate];
    }
    Cell::step(z, before, now_c, now_h);
    const bool skip = of.missing[at];
    c[at * of.hidden + j] = skip ? before : now_c;
    h[at * of.hidden + j] = skip ? of.state(h, of.h0, series, t - 1, j) : now_h;
  }
};

// D_t = d loss / d h_t through all that follows: D_t = grad_t + d_gates_{t+1} W, or D_{t+1} where row t+1 is missing.
// In double: what comes to c is a sum over all of time.
template <typename Cell, typename scalar_t>
struct BackwardStep {
  RecurrentLayer<scalar_t> of;
  const scalar_t *grad_h, *grad_c, *own, *later;  // own: (series * steps, gates); later: d_gates_{t+1} W, or null
  double *kept, *d_c;
  scalar_t* d_gates;
  int64_t t;

  COMMODITY_INLINE double arriving(int64_t series, int64_t j) const {
    const int64_t item = series * of.hidden + j;
    return !later ? 0 : of.missing[of.at(series, t + 1)] ? kept[item] : later[item];
  }
  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t series = item / of.hidden, j = item % of.hidden, at = of.at(series, t);
    const int64_t wide = Cell::kGates * of.hidden;
    const double total = arriving(series, j) + read(grad_h + at * of.hidden + j);
    const double of_c = (later ? d_c[item] : 0) + read(grad_c + at * of.hidden + j);
    double z[Cell::kGates], d_z[Cell::kGates] = {}, before = of_c;
    for (int g = 0; g < Cell::kGates; ++g)
      z[g] = double(read(of.gates + at * wide + g * of.hidden + j)) + read(own + at * wide + g * of.hidden + j);
    if (!of.missing[at])
      Cell::pull(z, double(of.state(of.c, of.c0, series, t - 1, j)), double(of.c[at * of.hidden + j]), total, of_c, d_z,
                 before);
    for (int g = 0; g < Cell::kGates; ++g) d_gates[at * wide + g * of.hidden + j] = scalar_t(d_z[g]);
    kept[item] = total, d_c[item] = before;
  }
};

// What arrives before the first row.
template <typename Cell, typename scalar_t>
struct FirstState {
  BackwardStep<Cell, scalar_t> step;  // of t = -1
  scalar_t *d_h0, *d_c0;
  COMMODITY_INLINE void operator()(int64_t item) const {
    d_h0[item] = scalar_t(step.arriving(item / step.of.hidden, item % step.of.hidden));
    d_c0[item] = scalar_t(step.later ? step.d_c[item] : 0);
  }
};

// h_{t-1} of all rows.
template <typename scalar_t>
struct Previous {
  RecurrentLayer<scalar_t> of;
  scalar_t* to;
  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t row = item / of.hidden;
    to[item] = of.state(of.h, of.h0, row / of.steps, row % of.steps - 1, item % of.hidden);
  }
};

template <typename Cell>
void check_layer(const char* name, const Tensor& gates, const Tensor& missing, const Tensor& weight, const Tensor& h0,
                 const Tensor& c0) {
  const int64_t hidden = h0.size(-1), rows = gates.size(-2), series = h0.numel() / std::max<int64_t>(1, hidden);
  STD_TORCH_CHECK(gates.size(-1) == Cell::kGates * hidden && gates.numel() == series * rows * Cell::kGates * hidden &&
                      missing.numel() == series * rows && weight.numel() == Cell::kGates * hidden * hidden &&
                      c0.numel() == h0.numel(),
                  name, ": gates (..., T, gates * H), missing (..., T), weight (gates * H, H), h0 and c0 (..., H)");
  const auto dtype = gates.scalar_type();
  STD_TORCH_CHECK(missing.scalar_type() == torch::headeronly::ScalarType::Bool && weight.scalar_type() == dtype &&
                      h0.scalar_type() == dtype && c0.scalar_type() == dtype,
                  name, ": missing must be bool, all others of one dtype");
}

struct LayerTensors {
  Tensor gates, missing, weight, h0, c0;
  int64_t steps, hidden, series;

  LayerTensors(const Tensor& gates, const Tensor& missing, const Tensor& weight, const Tensor& h0, const Tensor& c0)
      : gates(contiguous(gates)),
        missing(contiguous(missing)),
        weight(contiguous(weight)),
        h0(contiguous(h0)),
        c0(contiguous(c0)),
        steps(gates.size(-2)),
        hidden(h0.size(-1)),
        series(h0.numel() / std::max<int64_t>(1, hidden)) {}

  template <typename scalar_t>
  RecurrentLayer<scalar_t> layer(const Tensor& h, const Tensor& c) const {
    return {steps,
            hidden,
            gates.const_data_ptr<scalar_t>(),
            h0.const_data_ptr<scalar_t>(),
            c0.const_data_ptr<scalar_t>(),
            missing.const_data_ptr<bool>(),
            h.const_data_ptr<scalar_t>(),
            c.const_data_ptr<scalar_t>()};
  }
};

template <typename Cell>
std::tuple<Tensor, Tensor> layer(const char* name, const Tensor& gates, const Tensor& missing, const Tensor& weight,
                                 const Tensor& h0, const Tensor& c0) {
  check_layer<Cell>(name, gates, missing, weight, h0, c0);
  const LayerTensors given(gates, missing, weight, h0, c0);
  std::vector<int64_t> sizes(gates.sizes().begin(), gates.sizes().end());
  sizes.back() = given.hidden;
  Tensor h = new_empty(gates, sizes), c = new_empty(gates, sizes);
  const Tensor rows = view(h, {given.series, given.steps, given.hidden}), weights = transpose(given.weight, 0, 1);
  const Tensor first = view(given.h0, {given.series, given.hidden});
  dispatch(name, gates, [&]<typename scalar_t>() {
    const auto of = given.template layer<scalar_t>(h, c);
    for (int64_t t = 0; t < given.steps && h.numel(); ++t) {
      const Tensor own = call_aten("aten::mm", t ? select(rows, 1, t - 1) : first, weights);
      launch(h, given.series * given.hidden,
             ForwardStep<Cell, scalar_t>{of, own.const_data_ptr<scalar_t>(), h.mutable_data_ptr<scalar_t>(),
                                         c.mutable_data_ptr<scalar_t>(), t});
    }
  });
  return {h, c};
}

template <typename Cell>
std::tuple<Tensor, Tensor, Tensor> adjoint(const char* name, const Tensor& grad_h_, const Tensor& grad_c_,
                                           const Tensor& gates, const Tensor& missing, const Tensor& weight,
                                           const Tensor& h0, const Tensor& c0, const Tensor& h_, const Tensor& c_) {
  check_layer<Cell>(name, gates, missing, weight, h0, c0);
  for (const Tensor* x : {&grad_h_, &grad_c_, &h_}) check_same(name, *x, c_);
  const LayerTensors given(gates, missing, weight, h0, c0);
  const int64_t wide = Cell::kGates * given.hidden, states = given.series * given.hidden;
  const Tensor h = contiguous(h_), c = contiguous(c_), grad_h = contiguous(grad_h_), grad_c = contiguous(grad_c_);
  Tensor d_gates = new_empty(gates, gates.sizes()), d_h0 = new_empty(h0, h0.sizes()), d_c0 = new_empty(c0, c0.sizes());
  const Tensor previous = new_empty(h, {given.series * given.steps, given.hidden}), kept = scratch(h, states);
  const Tensor carried = scratch(h, states);
  const Tensor rows = view(d_gates, {given.series, given.steps, wide});
  dispatch(name, gates, [&]<typename scalar_t>() {
    const auto of = given.template layer<scalar_t>(h, c);
    launch(h, h.numel(), Previous<scalar_t>{of, data_ptr<scalar_t>(previous)});
    const Tensor own = call_aten("aten::mm", previous, transpose(given.weight, 0, 1));
    std::optional<Tensor> later;
    BackwardStep<Cell, scalar_t> step{of,
                                      grad_h.const_data_ptr<scalar_t>(),
                                      grad_c.const_data_ptr<scalar_t>(),
                                      own.const_data_ptr<scalar_t>(),
                                      nullptr,
                                      data_ptr<double>(kept),
                                      data_ptr<double>(carried),
                                      d_gates.mutable_data_ptr<scalar_t>(),
                                      0};
    for (step.t = given.steps - 1; step.t >= 0; --step.t) {
      launch(h, states, step);
      later = call_aten("aten::mm", select(rows, 1, step.t), given.weight);
      step.later = later->template const_data_ptr<scalar_t>();
    }
    launch(h, states,
           FirstState<Cell, scalar_t>{step, d_h0.mutable_data_ptr<scalar_t>(), d_c0.mutable_data_ptr<scalar_t>()});
  });
  return {d_gates, d_h0, d_c0};
}

}  // namespace
}  // namespace commodity
