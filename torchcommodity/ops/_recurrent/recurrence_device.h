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
  scalar_t *h, *c;
  int64_t t;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t series = item / layer.hidden, j = item % layer.hidden, row = layer.row(series, t);
    const int64_t width = Cell::kGates * layer.hidden;
    UnitState<Cell, scalar_t> state{layer.state(h, layer.h0, series, t - 1, j),
                                    layer.state(c, layer.c0, series, t - 1, j)};
    scalar_t z[Cell::kGates];
    for (int g = 0; g < Cell::kGates; ++g) {
      const int64_t gate = g * layer.hidden + j;
      z[g] = read(layer.gates + row * width + gate) + recurrent[series * width + gate];
    }
    state.step(z, layer.missing[row]);
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
    scalar_t z[Cell::kGates], d_z[Cell::kGates];
    for (int g = 0; g < Cell::kGates; ++g) z[g] = read(layer.gates + row * width + g * layer.hidden + j);
    auto gradient = incoming(item);
    gradient.step(z, layer.state(layer.c, layer.c0, series, t - 1, j), layer.c[i], read(grad_h + i), read(grad_c + i),
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

// The input and h_{t-1} of all rows, side by side.
template <typename scalar_t>
struct JoinedRows {
  RecurrentLayer<scalar_t> layer;
  const scalar_t* input;
  int64_t features;
  scalar_t* to;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t width = features + layer.hidden, row = item / width, j = item % width;
    to[item] = j < features ? input[row * features + j]
                            : layer.state(layer.h, layer.h0, row / layer.steps, row % layer.steps - 1, j - features);
  }
};

// The arguments of a layer.
struct LayerTensors {
  Tensor input, h0, c0, weight_ih, weight_hh, missing;
  std::optional<Tensor> bias;
  int64_t steps, hidden, series;

  LayerTensors(const Tensor& input_, const Tensor& h0, const Tensor& c0, const Tensor& weight_ih,
               const Tensor& weight_hh, const std::optional<Tensor>& bias)
      : input(as_contiguous(input_)),
        h0(as_contiguous(h0)),
        c0(as_contiguous(c0)),
        weight_ih(weight_ih),
        weight_hh(weight_hh),
        missing(find_missing(input)),
        bias(bias),
        steps(input.size(-2)),
        hidden(h0.size(-1)),
        series(h0.numel() / std::max<int64_t>(1, hidden)) {}

  template <typename scalar_t>
  RecurrentLayer<scalar_t> pointers(const Tensor& h, const Tensor& c) const {
    return {series,
            steps,
            hidden,
            nullptr,
            h0.const_data_ptr<scalar_t>(),
            c0.const_data_ptr<scalar_t>(),
            missing.const_data_ptr<bool>(),
            h.const_data_ptr<scalar_t>(),
            c.const_data_ptr<scalar_t>()};
  }
  Tensor project_input() const { return call_aten("aten::linear", input, weight_ih, bias); }

  // The gates of all rows from their input and the states before them, as one product.
  template <typename scalar_t>
  Tensor gates_of(const RecurrentLayer<scalar_t>& layer) const {
    const int64_t features = input.size(-1);
    const Tensor joined = new_empty(input, {series * steps, features + hidden});
    launch(input, joined.numel(),
           JoinedRows<scalar_t>{layer, input.const_data_ptr<scalar_t>(), features, data_ptr<scalar_t>(joined)});
    const Tensor weights = call_aten("aten::cat", std::vector<Tensor>{weight_ih, weight_hh}, int64_t(1));
    return call_aten("aten::linear", joined, weights, bias);
  }
};

template <typename Cell, typename scalar_t>
void run_steps(const LayerTensors& tensors, const RecurrentLayer<scalar_t>& layer, const Tensor& h, const Tensor& c) {
  const Tensor rows = view(h, {layer.series, layer.steps, layer.hidden}), weights = transpose(tensors.weight_hh, 0, 1);
  const Tensor initial = view(tensors.h0, {layer.series, layer.hidden});
  for (int64_t t = 0; t < layer.steps; ++t) {
    const Tensor recurrent = call_aten("aten::mm", t ? select(rows, 1, t - 1) : initial, weights);
    launch(h, layer.series * layer.hidden,
           ForwardStep<Cell, scalar_t>{layer, recurrent.const_data_ptr<scalar_t>(), data_ptr<scalar_t>(h),
                                       data_ptr<scalar_t>(c), t});
  }
}

template <typename Cell>
std::tuple<Tensor, Tensor> run_layer(const char* name, const Tensor& input, const Tensor& h0, const Tensor& c0,
                                     const Tensor& weight_ih, const Tensor& weight_hh,
                                     const std::optional<Tensor>& bias) {
  check_layer<Cell>(name, input, h0, c0, weight_ih, weight_hh, bias);
  const LayerTensors tensors(input, h0, c0, weight_ih, weight_hh, bias);
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
  sizes.back() = tensors.hidden;
  Tensor h = new_empty(input, sizes), c = new_empty(input, sizes);
  if (!h.numel()) return {h, c};
  dispatch(name, input, [&]<typename scalar_t>() {
    const Tensor gates = tensors.project_input();
    auto layer = tensors.template pointers<scalar_t>(h, c);
    layer.gates = gates.const_data_ptr<scalar_t>();
    const bool in_blocks = with_block_size<scalar_t>(layer.hidden, [&]<typename Size>(Size) {
      const PackedTiles<typename Size::Tiles> weights(weight_hh);
      const SeriesBlocks<Size> blocks(layer, weights.tiles);
      launch_loops(h, blocks.blocks(), blocks.threads, layer.steps,
                   ForwardBlocks<Cell, Size>{blocks, data_ptr<scalar_t>(h), data_ptr<scalar_t>(c)});
    });
    if (!in_blocks) run_steps<Cell>(tensors, layer, h, c);
  });
  return {h, c};
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
                                                      const std::optional<Tensor>& bias, const Tensor& h_,
                                                      const Tensor& c_) {
  check_layer<Cell>(name, input, h0, c0, weight_ih, weight_hh, bias);
  check_states(name, input, h0, {grad_h_, grad_c_, h_, c_});
  const LayerTensors tensors(input, h0, c0, weight_ih, weight_hh, bias);
  const Tensor h = as_contiguous(h_), c = as_contiguous(c_), grad_h = as_contiguous(grad_h_),
               grad_c = as_contiguous(grad_c_);
  std::vector<int64_t> sizes(h.sizes().begin(), h.sizes().end());
  sizes.back() *= Cell::kGates;
  Tensor d_gates = new_empty(h, sizes), d_h0 = new_empty(h0, h0.sizes()), d_c0 = new_empty(c0, c0.sizes());
  if (!d_h0.numel()) return {d_gates, d_h0, d_c0};
  dispatch(name, input, [&]<typename scalar_t>() {
    auto layer = tensors.template pointers<scalar_t>(h, c);
    const Tensor gates = tensors.gates_of(layer);
    layer.gates = gates.const_data_ptr<scalar_t>();
    const scalar_t *from_h = grad_h.const_data_ptr<scalar_t>(), *from_c = grad_c.const_data_ptr<scalar_t>();
    const bool in_blocks = with_block_size<scalar_t>(layer.hidden, [&]<typename Size>(Size) {
      const PackedTiles<typename Size::Tiles> weights(transpose(weight_hh, 0, 1));
      const SeriesBlocks<Size> blocks(layer, weights.tiles);
      launch_loops(h, blocks.blocks(), blocks.threads, layer.steps,
                   BackwardBlocks<Cell, Size>{blocks, from_h, from_c, data_ptr<scalar_t>(d_gates),
                                              data_ptr<scalar_t>(d_h0), data_ptr<scalar_t>(d_c0)});
    });
    if (!in_blocks)
      run_steps_back<Cell, scalar_t>(
          weight_hh, {layer, from_h, from_c, nullptr, nullptr, data_ptr<scalar_t>(d_gates), 0}, d_gates, d_h0, d_c0);
  });
  return {d_gates, d_h0, d_c0};
}

}  // namespace on_gpu
}  // namespace commodity
#endif
