// A recurrent layer over a sequence, forward and backward, on a GPU. One product projects the input onto the gates.
// Every step is one ATen product with the weights and one kernel for the cell.
#pragma once
#if defined(COMMODITY_GPU)
#include "aten.h"
#include "checks.h"
#include "units.h"

namespace commodity {
inline namespace on_gpu {

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

  COMMODITY_INLINE int64_t row(int64_t series, int64_t t) const { return series * steps + t; }
  COMMODITY_INLINE scalar_t state(const scalar_t* sequence, const scalar_t* initial, int64_t series, int64_t t,
                                  int64_t j) const {
    return t < 0 ? initial[series * hidden + j] : sequence[row(series, t) * hidden + j];
  }
};

template <typename Cell, typename scalar_t>
struct ForwardStep {
  RecurrentLayer<scalar_t> layer;
  const scalar_t* recurrent;  // h_{t-1} W'
  scalar_t *h, *c;
  int64_t t;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t series = item / layer.hidden, j = item % layer.hidden, row = layer.row(series, t);
    const scalar_t c_previous = layer.state(c, layer.c0, series, t - 1, j);
    scalar_t z[Cell::kGates], c_next = c_previous, h_next;
    for (int g = 0; g < Cell::kGates; ++g) {
      const int64_t gate = g * layer.hidden + j, width = Cell::kGates * layer.hidden;
      z[g] = read(layer.gates + row * width + gate) + recurrent[series * width + gate];
    }
    Cell::step(z, c_previous, c_next, h_next);
    const bool is_missing = layer.missing[row];
    c[row * layer.hidden + j] = is_missing ? c_previous : c_next;
    h[row * layer.hidden + j] = is_missing ? layer.state(h, layer.h0, series, t - 1, j) : h_next;
  }
};

// D_t = dL/dh_t = grad_t + d_gates_{t+1} W; where row t + 1 is missing, D_t = grad_t + D_{t+1}. In double: the gradient
// of c is a sum over time.
template <typename Cell, typename scalar_t>
struct BackwardStep {
  RecurrentLayer<scalar_t> layer;
  const scalar_t *grad_h, *grad_c;
  const scalar_t *recurrent, *d_h_recurrent;  // h_{t-1} W' of all rows; d_gates_{t+1} W, null in the last row
  double *d_h_total, *d_c;
  scalar_t* d_gates;
  int64_t t;

  COMMODITY_INLINE double incoming(int64_t series, int64_t j) const {
    const int64_t item = series * layer.hidden + j;
    return !d_h_recurrent ? 0 : layer.missing[layer.row(series, t + 1)] ? d_h_total[item] : d_h_recurrent[item];
  }
  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t series = item / layer.hidden, j = item % layer.hidden, row = layer.row(series, t);
    const int64_t width = Cell::kGates * layer.hidden;
    const double d_h = incoming(series, j) + read(grad_h + row * layer.hidden + j);
    const double d_c_total = (d_h_recurrent ? d_c[item] : 0) + read(grad_c + row * layer.hidden + j);
    double z[Cell::kGates], d_z[Cell::kGates] = {}, d_c_previous = d_c_total;
    for (int g = 0; g < Cell::kGates; ++g)
      z[g] = double(read(layer.gates + row * width + g * layer.hidden + j)) +
             read(recurrent + row * width + g * layer.hidden + j);
    if (!layer.missing[row])
      Cell::backward(z, double(layer.state(layer.c, layer.c0, series, t - 1, j)),
                     double(layer.c[row * layer.hidden + j]), d_h, d_c_total, d_z, d_c_previous);
    for (int g = 0; g < Cell::kGates; ++g) d_gates[row * width + g * layer.hidden + j] = scalar_t(d_z[g]);
    d_h_total[item] = d_h, d_c[item] = d_c_previous;
  }
};

// Gradients of h0 and c0.
template <typename Cell, typename scalar_t>
struct InitialStateGradients {
  BackwardStep<Cell, scalar_t> step;  // at t = -1
  scalar_t *d_h0, *d_c0;
  COMMODITY_INLINE void operator()(int64_t item) const {
    d_h0[item] = scalar_t(step.incoming(item / step.layer.hidden, item % step.layer.hidden));
    d_c0[item] = scalar_t(step.d_h_recurrent ? step.d_c[item] : 0);
  }
};

// Copies h_{t-1} of all rows.
template <typename scalar_t>
struct PreviousStates {
  RecurrentLayer<scalar_t> layer;
  scalar_t* to;
  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t row = item / layer.hidden;
    to[item] = layer.state(layer.h, layer.h0, row / layer.steps, row % layer.steps - 1, item % layer.hidden);
  }
};

// The arguments of a layer, and the projection of its input onto the gates.
struct LayerTensors {
  Tensor input, h0, c0, weight_hh, missing, gates;
  int64_t steps, hidden, series;

  LayerTensors(const Tensor& input_, const Tensor& h0, const Tensor& c0, const Tensor& weight_ih,
               const Tensor& weight_hh, const std::optional<Tensor>& bias)
      : input(as_contiguous(input_)),
        h0(as_contiguous(h0)),
        c0(as_contiguous(c0)),
        weight_hh(weight_hh),
        missing(find_missing(input)),
        gates(call_aten("aten::linear", input, weight_ih, bias)),
        steps(input.size(-2)),
        hidden(h0.size(-1)),
        series(h0.numel() / std::max<int64_t>(1, hidden)) {}

  template <typename scalar_t>
  RecurrentLayer<scalar_t> pointers(const Tensor& h, const Tensor& c) const {
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
std::tuple<Tensor, Tensor> run_layer(const char* name, const Tensor& input, const Tensor& h0, const Tensor& c0,
                                     const Tensor& weight_ih, const Tensor& weight_hh,
                                     const std::optional<Tensor>& bias) {
  check_layer<Cell>(name, input, h0, c0, weight_ih, weight_hh, bias);
  const LayerTensors tensors(input, h0, c0, weight_ih, weight_hh, bias);
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
  sizes.back() = tensors.hidden;
  Tensor h = new_empty(input, sizes), c = new_empty(input, sizes);
  const Tensor rows = view(h, {tensors.series, tensors.steps, tensors.hidden}),
               weights = transpose(tensors.weight_hh, 0, 1);
  const Tensor initial = view(tensors.h0, {tensors.series, tensors.hidden});
  dispatch(name, input, [&]<typename scalar_t>() {
    const auto layer = tensors.template pointers<scalar_t>(h, c);
    for (int64_t t = 0; t < tensors.steps && h.numel(); ++t) {
      const Tensor recurrent = call_aten("aten::mm", t ? select(rows, 1, t - 1) : initial, weights);
      launch(h, tensors.series * tensors.hidden,
             ForwardStep<Cell, scalar_t>{layer, recurrent.const_data_ptr<scalar_t>(), h.mutable_data_ptr<scalar_t>(),
                                         c.mutable_data_ptr<scalar_t>(), t});
    }
  });
  return {h, c};
}

template <typename Cell>
std::tuple<Tensor, Tensor, Tensor> run_layer_backward(const char* name, const Tensor& grad_h_, const Tensor& grad_c_,
                                                      const Tensor& input, const Tensor& h0, const Tensor& c0,
                                                      const Tensor& weight_ih, const Tensor& weight_hh,
                                                      const std::optional<Tensor>& bias, const Tensor& h_,
                                                      const Tensor& c_) {
  check_layer<Cell>(name, input, h0, c0, weight_ih, weight_hh, bias);
  check_states(name, input, h0, {grad_h_, grad_c_, h_, c_});
  const LayerTensors tensors(input, h0, c0, weight_ih, weight_hh, bias);
  const int64_t width = Cell::kGates * tensors.hidden, state_size = tensors.series * tensors.hidden;
  const Tensor h = as_contiguous(h_), c = as_contiguous(c_), grad_h = as_contiguous(grad_h_),
               grad_c = as_contiguous(grad_c_);
  Tensor d_gates = new_empty(tensors.gates, tensors.gates.sizes()), d_h0 = new_empty(h0, h0.sizes()),
         d_c0 = new_empty(c0, c0.sizes());
  const Tensor h_previous = new_empty(h, {tensors.series * tensors.steps, tensors.hidden}),
               d_h_total = scratch(h, state_size);
  const Tensor d_c = scratch(h, state_size);
  const Tensor rows = view(d_gates, {tensors.series, tensors.steps, width});
  dispatch(name, input, [&]<typename scalar_t>() {
    const auto layer = tensors.template pointers<scalar_t>(h, c);
    launch(h, h.numel(), PreviousStates<scalar_t>{layer, data_ptr<scalar_t>(h_previous)});
    const Tensor recurrent = call_aten("aten::mm", h_previous, transpose(tensors.weight_hh, 0, 1));
    std::optional<Tensor> d_h_recurrent;
    BackwardStep<Cell, scalar_t> step{layer,
                                      grad_h.const_data_ptr<scalar_t>(),
                                      grad_c.const_data_ptr<scalar_t>(),
                                      recurrent.const_data_ptr<scalar_t>(),
                                      nullptr,
                                      data_ptr<double>(d_h_total),
                                      data_ptr<double>(d_c),
                                      d_gates.mutable_data_ptr<scalar_t>(),
                                      0};
    for (step.t = tensors.steps - 1; step.t >= 0; --step.t) {
      launch(h, state_size, step);
      d_h_recurrent = call_aten("aten::mm", select(rows, 1, step.t), tensors.weight_hh);
      step.d_h_recurrent = d_h_recurrent->template const_data_ptr<scalar_t>();
    }
    launch(h, state_size,
           InitialStateGradients<Cell, scalar_t>{step, d_h0.mutable_data_ptr<scalar_t>(),
                                                 d_c0.mutable_data_ptr<scalar_t>()});
  });
  return {d_gates, d_h0, d_c0};
}

}  // namespace on_gpu
}  // namespace commodity
#endif
