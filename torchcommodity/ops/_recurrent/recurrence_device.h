// A recurrent layer over a sequence, forward and backward, on a GPU. One product projects the input onto the gates.
// Then one kernel runs over all steps where the recurrent weights fit into the registers of a block
// (recurrence_blocks.h); otherwise every step is one ATen product with the weights and one kernel for the cell.
#pragma once
#if defined(COMMODITY_GPU)
#include "aten.h"
#include "checks.h"
#include "recurrence_blocks.h"
#include "units.h"

namespace commodity {
inline namespace on_gpu {

using torch::stable::select;
using torch::stable::transpose;
using torch::stable::view;

template <typename Cell, typename scalar_t>
struct ForwardStep {
  RecurrentLayer<scalar_t> layer;
  const scalar_t* recurrent;  // h_{t-1} W'
  scalar_t *h, *c, *gates;
  int64_t t;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t series = item / layer.hidden, j = item % layer.hidden, row = layer.row(series, t);
    const int64_t width = Cell::kGates * layer.hidden;
    UnitState<Cell, scalar_t> state{layer.state(h, layer.h0, series, t - 1, j),
                                    layer.state(c, layer.c0, series, t - 1, j)};
    scalar_t z[Cell::kGates], a[Cell::kGates];
    for (int g = 0; g < Cell::kGates; ++g) {
      const int64_t gate = g * layer.hidden + j;
      z[g] = read(layer.gates + row * width + gate) + recurrent[series * width + gate];
    }
    state.step(z, a, layer.missing[row]);
    if (gates)
      for (int g = 0; g < Cell::kGates; ++g) gates[row * width + g * layer.hidden + j] = a[g];
    h[row * layer.hidden + j] = state.h, c[row * layer.hidden + j] = state.c;
  }
};

template <typename Cell, typename scalar_t>
struct BackwardStep {
  RecurrentLayer<scalar_t> layer;
  const scalar_t *grad_h, *grad_c;
  const scalar_t* d_h_recurrent;  // d_gates_{t+1} W, null in the last row
  UnitGradient<Cell, scalar_t>* gradients;
  scalar_t* d_gates;
  int64_t t;

  COMMODITY_INLINE UnitGradient<Cell, scalar_t> incoming(int64_t item) const {
    if (!d_h_recurrent) return {};
    const auto& after = gradients[item];
    return {after.d_c, layer.missing[layer.row(item / layer.hidden, t + 1)] ? after.d_h : d_h_recurrent[item]};
  }
  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t series = item / layer.hidden, j = item % layer.hidden, row = layer.row(series, t);
    const int64_t width = Cell::kGates * layer.hidden, i = row * layer.hidden + j;
    scalar_t a[Cell::kGates], d_z[Cell::kGates];
    for (int g = 0; g < Cell::kGates; ++g) a[g] = read(layer.gates + row * width + g * layer.hidden + j);
    auto gradient = incoming(item);
    gradient.step(a, layer.state(layer.c, layer.c0, series, t - 1, j), layer.c[i], read(grad_h + i), read(grad_c + i),
                  layer.missing[row], d_z);
    for (int g = 0; g < Cell::kGates; ++g) d_gates[row * width + g * layer.hidden + j] = d_z[g];
    gradients[item] = gradient;
  }
};

// Gradients of h0 and c0.
template <typename Cell, typename scalar_t>
struct InitialStateGradients {
  BackwardStep<Cell, scalar_t> step;  // at t = -1
  scalar_t *d_h0, *d_c0;
  COMMODITY_INLINE void operator()(int64_t item) const {
    const auto gradient = step.incoming(item);
    d_h0[item] = gradient.d_h, d_c0[item] = scalar_t(gradient.d_c);
  }
};

// The input and the initial states of a layer.
struct LayerTensors {
  Tensor input, h0, c0, missing;
  int64_t steps, hidden, series;

  LayerTensors(const Tensor& input_, const Tensor& h0, const Tensor& c0)
      : input(as_contiguous(input_)),
        h0(as_contiguous(h0)),
        c0(as_contiguous(c0)),
        missing(find_missing(input)),
        steps(input.size(-2)),
        hidden(h0.size(-1)),
        series(h0.numel() / std::max<int64_t>(1, hidden)) {}

  template <typename scalar_t>
  RecurrentLayer<scalar_t> pointers(const Tensor& gates, const Tensor& c) const {
    return {series,
            steps,
            hidden,
            gates.const_data_ptr<scalar_t>(),
            h0.const_data_ptr<scalar_t>(),
            c0.const_data_ptr<scalar_t>(),
            missing.const_data_ptr<bool>(),
            c.const_data_ptr<scalar_t>()};
  }
};

template <typename Cell, typename scalar_t>
void run_steps(const Tensor& h, const Tensor& h0, const Tensor& weight_hh, ForwardStep<Cell, scalar_t> step) {
  const auto& layer = step.layer;
  const Tensor rows = view(h, {layer.series, layer.steps, layer.hidden}), weights = transpose(weight_hh, 0, 1);
  const Tensor initial = view(h0, {layer.series, layer.hidden});
  for (step.t = 0; step.t < layer.steps; ++step.t) {
    const Tensor recurrent = call_aten("aten::mm", step.t ? select(rows, 1, step.t - 1) : initial, weights);
    step.recurrent = recurrent.const_data_ptr<scalar_t>();
    launch(h, layer.series * layer.hidden, step);
  }
}

template <typename Cell>
LayerOutputs run_layer(const char* name, const Tensor& input, const Tensor& h0, const Tensor& c0,
                       const Tensor& weight_ih, const Tensor& weight_hh, const std::optional<Tensor>& bias,
                       bool save_gates) {
  check_layer<Cell>(name, input, h0, c0, weight_ih, weight_hh, bias);
  const LayerOutputs outputs = new_layer_outputs<Cell>(input, h0.size(-1), save_gates);
  const Tensor &h = std::get<0>(outputs), &c = std::get<1>(outputs), &gates = std::get<2>(outputs);
  if (!h.numel()) return outputs;
  const LayerTensors tensors(input, h0, c0);
  dispatch(name, input, [&]<typename scalar_t>() {
    const Tensor projected = call_aten("aten::linear", tensors.input, weight_ih, bias);
    const auto layer = tensors.template pointers<scalar_t>(projected, c);
    scalar_t *to_h = data_ptr<scalar_t>(h), *to_c = data_ptr<scalar_t>(c);
    scalar_t* to_gates = save_gates ? data_ptr<scalar_t>(gates) : nullptr;
    const bool in_blocks = with_block_size<scalar_t>(layer.hidden, [&]<typename Size>(Size) {
      const PackedTiles<typename Size::Tiles> weights(weight_hh);
      const SeriesBlocks<Size> blocks(layer, weights.tiles);
      launch_loops(h, blocks.blocks(), blocks.threads, layer.steps,
                   ForwardBlocks<Cell, Size>{blocks, to_h, to_c, to_gates});
    });
    if (!in_blocks) run_steps<Cell, scalar_t>(h, tensors.h0, weight_hh, {layer, nullptr, to_h, to_c, to_gates, 0});
  });
  return outputs;
}

template <typename Cell, typename scalar_t>
void run_steps_back(const Tensor& weight_hh, BackwardStep<Cell, scalar_t> step, const Tensor& d_gates,
                    const Tensor& d_h0, const Tensor& d_c0) {
  const auto& layer = step.layer;
  const int64_t states = layer.series * layer.hidden;
  const Tensor rows = view(d_gates, {layer.series, layer.steps, Cell::kGates * layer.hidden});
  const Tensor gradients = scratch(d_gates, states * sizeof(*step.gradients) / sizeof(double));
  step.gradients = data_ptr<UnitGradient<Cell, scalar_t>>(gradients);
  std::optional<Tensor> d_h_recurrent;
  for (step.t = layer.steps - 1; step.t >= 0; --step.t) {
    launch(d_gates, states, step);
    d_h_recurrent = call_aten("aten::mm", select(rows, 1, step.t), weight_hh);
    step.d_h_recurrent = d_h_recurrent->template const_data_ptr<scalar_t>();
  }
  launch(d_gates, states,
         InitialStateGradients<Cell, scalar_t>{step, data_ptr<scalar_t>(d_h0), data_ptr<scalar_t>(d_c0)});
}

template <typename Cell>
std::tuple<Tensor, Tensor, Tensor> run_layer_backward(const char* name, const Tensor& grad_h_, const Tensor& grad_c_,
                                                      const Tensor& input, const Tensor& h0, const Tensor& c0,
                                                      const Tensor& weight_ih, const Tensor& weight_hh,
                                                      const std::optional<Tensor>& bias, const Tensor& c_,
                                                      const Tensor& gates_) {
  check_layer<Cell>(name, input, h0, c0, weight_ih, weight_hh, bias);
  check_states<Cell>(name, input, h0, {grad_h_, grad_c_, c_}, gates_);
  const LayerTensors tensors(input, h0, c0);
  const Tensor c = as_contiguous(c_), gates = as_contiguous(gates_), grad_h = as_contiguous(grad_h_),
               grad_c = as_contiguous(grad_c_);
  Tensor d_gates = new_empty(gates, gates.sizes()), d_h0 = new_empty(h0, h0.sizes()), d_c0 = new_empty(c0, c0.sizes());
  if (!d_h0.numel()) return {d_gates, d_h0, d_c0};
  dispatch(name, input, [&]<typename scalar_t>() {
    const auto layer = tensors.template pointers<scalar_t>(gates, c);
    const scalar_t *from_h = grad_h.const_data_ptr<scalar_t>(), *from_c = grad_c.const_data_ptr<scalar_t>();
    const bool in_blocks = with_block_size<scalar_t>(layer.hidden, [&]<typename Size>(Size) {
      const PackedTiles<typename Size::Tiles> weights(transpose(weight_hh, 0, 1));
      const SeriesBlocks<Size> blocks(layer, weights.tiles);
      launch_loops(c, blocks.blocks(), blocks.threads, layer.steps,
                   BackwardBlocks<Cell, Size>{blocks, from_h, from_c, data_ptr<scalar_t>(d_gates),
                                              data_ptr<scalar_t>(d_h0), data_ptr<scalar_t>(d_c0)});
    });
    if (!in_blocks)
      run_steps_back<Cell, scalar_t>(
          weight_hh, {layer, from_h, from_c, nullptr, nullptr, data_ptr<scalar_t>(d_gates), 0}, d_gates, d_h0, d_c0);
  });
  return {d_gates, d_h0, d_c0};
}

// The tangents of h and c (tangent.h) by one kernel; false where the registers are too few. The h0 of `tensors` is the
// tangent of h0.
template <typename Cell>
bool run_tangent_blocks(const char* name, const Tensor& d_gates, const LayerTensors& tensors, const Tensor& d_c0_,
                        const Tensor& weight_hh, const Tensor& c, const Tensor& gates, const Tensor& d_h,
                        const Tensor& d_c) {
  bool in_blocks = false;
  const Tensor d_c0 = as_contiguous(d_c0_);
  dispatch(name, c, [&]<typename scalar_t>() {
    const auto layer = tensors.template pointers<scalar_t>(gates, c);
    in_blocks = with_block_size<scalar_t>(layer.hidden, [&]<typename Size>(Size) {
      const PackedTiles<typename Size::Tiles> weights(weight_hh);
      const SeriesBlocks<Size> blocks(layer, weights.tiles);
      launch_loops(
          c, blocks.blocks(), blocks.threads, layer.steps,
          TangentBlocks<Cell, Size>{blocks, d_gates.const_data_ptr<scalar_t>(), layer.h0,
                                    d_c0.const_data_ptr<scalar_t>(), data_ptr<scalar_t>(d_h), data_ptr<scalar_t>(d_c)});
    });
  });
  return in_blocks;
}

}  // namespace on_gpu
}  // namespace commodity
#endif
