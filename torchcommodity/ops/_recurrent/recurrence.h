// A recurrent layer over a sequence, forward and backward, for the cells of cells.h.
//
// Threads take blocks of kBlockSeries series and run through all of time, with the weights, packed into vector order,
// in the cache. A step of the forward pass is one product of [1, x_t, h_{t-1}] with [b, W_ih, W_hh]', then the cell.
// The backward pass is given the activations of the gates of every row and goes through time in reverse: D_t = dL/dh_t
// = grad_t + d_gates_{t+1} W_hh, and the gradient of c is summed in double.
#pragma once
#if !defined(COMMODITY_GPU)
#include "checks.h"
#include "packed_matrix.h"
#include "units.h"

namespace commodity {
inline namespace on_cpu {

constexpr int64_t kBlockSeries = 16;
constexpr int kTile = 4;  // series of a product that is accumulated in registers

// Gates of a packed block: with kTile series their sums fill the vector registers, of which AVX-512 has twice as many.
template <typename Cell, int Bytes>
constexpr int kGateGroup = Cell::kGates % 3 ? (Bytes == 64 ? 4 : 2) : 3;

// Sequences (series, steps, .), states (series, hidden). The forward pass writes h, c and, if there are any, the
// activations of the gates; the backward pass reads c and the activations.
template <typename scalar_t>
struct Layer {
  int64_t steps, features, hidden;
  const scalar_t *input, *h0, *c0;
  scalar_t *h, *c, *gates;
  const scalar_t *grad_h = nullptr, *grad_c = nullptr;
  scalar_t *d_gates = nullptr, *d_h0 = nullptr, *d_c0 = nullptr;

  const scalar_t* state(const scalar_t* sequence, const scalar_t* first, int64_t series, int64_t t) const {
    return t < 0 ? first + series * hidden : sequence + (series * steps + t) * hidden;
  }
  // The input of a row; null if the row is missing.
  COMMODITY_INLINE const scalar_t* present_input(int64_t row) const {
    const scalar_t* x = input + row * features;
    return has_nan(x, features) ? nullptr : x;
  }
};

// Asks for memory that the next step needs: of so many series the processor does not foresee it.
COMMODITY_INLINE void prefetch(const void* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(from) + i);
}

// The weights of a layer, (gates * hidden, features) and (gates * hidden, hidden), whose rows are `stride` apart.
template <typename scalar_t>
struct LayerWeights {
  const scalar_t* input;
  int64_t input_stride;
  const scalar_t* state;
  int64_t state_stride;
  const scalar_t* bias;
};

template <typename Cell, typename scalar_t, int Bytes>
struct ForwardBlock {
  static constexpr int G = Cell::kGates, C = kGateGroup<Cell, Bytes>;
  using Weights = PackedMatrix<scalar_t, C, Bytes>;
  static constexpr int64_t L = Weights::kLanes;
  const Layer<scalar_t>& layer;
  const Weights& weights;
  int64_t first, count;
  const int64_t hidden = layer.hidden, padded = round_up(hidden, L);
  AlignedVector<scalar_t> gates = AlignedVector<scalar_t>(count * G * padded);  // (series, gates, padded)
  std::vector<scalar_t> zeros = std::vector<scalar_t>(layer.features);
  const scalar_t *inputs[kBlockSeries], *states[kBlockSeries];
  bool missing[kBlockSeries];

  // A block of the matrix holds the same units of C gates.
  static Weights pack(const LayerWeights<scalar_t>& from, const Layer<scalar_t>& layer) {
    const int64_t vectors = round_up(layer.hidden, L) / L;
    Weights weights(1 + layer.features + layer.hidden, vectors * G / C);
    const auto fill = [&](int64_t row, int64_t rows, const scalar_t* weight, int64_t stride) {
      weights.fill(row, rows, 1, [=, &layer](int64_t block, int64_t c, int64_t lane) {
        const int64_t gate = block / vectors * C + c, j = block % vectors * L + lane;
        return j < layer.hidden ? weight + (gate * layer.hidden + j) * stride : nullptr;
      });
    };
    if (from.bias) fill(0, 1, from.bias, 1);
    fill(1, layer.features, from.input, from.input_stride);
    fill(1 + layer.features, layer.hidden, from.state, from.state_stride);
    return weights;
  }

  COMMODITY_INLINE void run() {
    for (int64_t t = 0; t < layer.steps; ++t) {
      for (int64_t r = 0; r < count; ++r) {
        const scalar_t* x = layer.present_input((first + r) * layer.steps + t);
        missing[r] = !x, inputs[r] = x ? x : zeros.data();
        states[r] = layer.state(layer.h, layer.h0, first + r, t - 1);
      }
      for (int64_t block = 0; block < weights.blocks; ++block) {
        int64_t r = 0;
        for (; r + kTile <= count; r += kTile) multiply<kTile>(r, block);
        for (; r < count; ++r) multiply<1>(r, block);
      }
      for (int64_t r = 0; r < count; ++r) missing[r] ? keep(r, t) : layer.gates ? step<true>(r, t) : step<false>(r, t);
    }
  }

  template <int R>
  COMMODITY_INLINE void multiply(int64_t r, int64_t block) {
    const auto* w = weights.block(block);
    typename Weights::Vector sum[R][C];
    for (int i = 0; i < R; ++i)
      for (int c = 0; c < C; ++c) sum[i][c] = w[c];
    Weights::template accumulate<R>(sum, inputs + r, layer.features, w + C);
    Weights::template accumulate<R>(sum, states + r, hidden, w + (1 + layer.features) * C);
    const int64_t vectors = padded / L, first_gate = block / vectors * C, unit = block % vectors * L;
    Weights::template store<R>(sum, &gates[(r * G + first_gate) * padded + unit], G * padded, padded);
  }

  COMMODITY_INLINE void keep(int64_t r, int64_t t) const {
    const int64_t series = first + r, row = series * layer.steps + t;
    std::copy_n(layer.state(layer.c, layer.c0, series, t - 1), hidden, layer.c + row * hidden);
    std::copy_n(states[r], hidden, layer.h + row * hidden);
    if (layer.gates) std::fill_n(layer.gates + row * G * hidden, G * hidden, scalar_t(0));
  }

  template <bool saves_gates>
  COMMODITY_INLINE void step(int64_t r, int64_t t) const {
    const int64_t series = first + r, row = series * layer.steps + t, width = hidden, stride = padded;
    const scalar_t* __restrict c_previous = layer.state(layer.c, layer.c0, series, t - 1);
    scalar_t* __restrict c = layer.c + row * width, * __restrict h = layer.h + row * width;
    const scalar_t* __restrict from = &gates[r * G * stride];
    scalar_t* __restrict to = layer.gates + row * G * width;
    COMMODITY_IVDEP  // otherwise the inlined pointers may alias, which prevents vectorization
    for (int64_t j = 0; j < width; ++j) {
      scalar_t z[G], a[G];
      for (int g = 0; g < G; ++g) z[g] = from[g * stride + j];
      Cell::activate(z, a);
      Cell::step(a, c_previous[j], c[j], h[j]);
      if constexpr (saves_gates)
        for (int g = 0; g < G; ++g) to[g * width + j] = a[g];
    }
  }
};

template <typename Cell, typename scalar_t, int Bytes>
struct BackwardBlock {
  static constexpr int G = Cell::kGates, C = 2;
  using Weights = PackedMatrix<scalar_t, C, Bytes>;
  static constexpr int64_t L = Weights::kLanes;
  const Layer<scalar_t>& layer;
  const Weights& weights;
  int64_t first, count;
  const int64_t steps = layer.steps, hidden = layer.hidden, padded = round_up(hidden, C* L);
  AlignedVector<scalar_t> d_h = AlignedVector<scalar_t>(count * padded), d_h_total = d_h;
  std::vector<double> d_c = std::vector<double>(count * hidden);  // a sum over time
  const scalar_t* rows[kBlockSeries];
  bool missing[kBlockSeries];

  static Weights pack(const LayerWeights<scalar_t>& from, const Layer<scalar_t>& layer) {
    Weights weights(G * layer.hidden, round_up(layer.hidden, C * L) / (C * L));
    weights.fill(0, G * layer.hidden, from.state_stride, [&](int64_t block, int64_t c, int64_t lane) {
      const int64_t j = (block * C + c) * L + lane;
      return j < layer.hidden ? from.state + j : nullptr;
    });
    return weights;
  }

  // D_t = grad_t + d_gates_{t+1} W; where row t + 1 is missing, D_t = grad_t + D_{t+1}.
  COMMODITY_INLINE void run() {
    for (int64_t t = steps - 1; t >= 0; --t) {
      for (int64_t r = 0; r < count; ++r) step(r, t);
      for (int64_t block = 0; block < weights.blocks; ++block) {
        int64_t r = 0;
        for (; r + kTile <= count; r += kTile) multiply<kTile>(r, block);
        for (; r < count; ++r) multiply<1>(r, block);
      }
      for (int64_t r = 0; r < count; ++r)
        if (missing[r]) std::copy_n(&d_h_total[r * padded], hidden, &d_h[r * padded]);
    }
    for (int64_t r = 0; r < count; ++r) {
      std::copy_n(&d_h[r * padded], hidden, layer.d_h0 + (first + r) * hidden);
      std::copy_n(&d_c[r * hidden], hidden, layer.d_c0 + (first + r) * hidden);
    }
  }

  template <int R>
  COMMODITY_INLINE void multiply(int64_t r, int64_t block) {
    typename Weights::Vector sum[R][C] = {};
    Weights::template accumulate<R>(sum, rows + r, G * hidden, weights.block(block));
    Weights::template store<R>(sum, &d_h[r * padded + block * C * L], padded, L);
  }

  COMMODITY_INLINE void step(int64_t r, int64_t t) {
    const int64_t series = first + r, row = series * steps + t, width = hidden;
    const scalar_t* __restrict grad_h = layer.grad_h + row * width, * __restrict grad_c = layer.grad_c + row * width;
    scalar_t* __restrict total = &d_h_total[r * padded], * __restrict to = layer.d_gates + row * G * width;
    const scalar_t* __restrict d_h_next = &d_h[r * padded];
    double* __restrict d_c = &this->d_c[r * width];
    rows[r] = to, missing[r] = !layer.present_input(row);
    for (int64_t j = 0; j < width; ++j) total[j] = d_h_next[j] + grad_h[j], d_c[j] += grad_c[j];
    if (missing[r]) return void(std::fill_n(to, G * width, scalar_t(0)));
    const scalar_t* __restrict gates = layer.gates + row * G * width;
    const scalar_t* __restrict c_previous = layer.state(layer.c, layer.c0, series, t - 1);
    const scalar_t* __restrict c = layer.c + row * width;
    if (t > 1) {
      const int64_t bytes = width * sizeof(scalar_t);
      prefetch(layer.state(layer.c, layer.c0, series, t - 2), bytes);
      prefetch(grad_h - width, bytes), prefetch(grad_c - width, bytes);
      prefetch(gates - G * width, G * bytes), prefetch(to - G * width, G * bytes);
    }
    COMMODITY_IVDEP
    for (int64_t j = 0; j < width; ++j) {
      scalar_t a[G], d_z[G];
      for (int g = 0; g < G; ++g) a[g] = gates[g * width + j];
      Cell::backward(a, c_previous[j], c[j], total[j], d_c[j], d_z, d_c[j]);
      for (int g = 0; g < G; ++g) to[g * width + j] = d_z[g];
    }
  }
};

template <typename Block>
COMMODITY_SIMD void run(Block& block) {
  block.run();
}
template <typename Block>
COMMODITY_WIDE void run_wide(Block& block) {
  block.run();
}

// Runs every block of series, in parallel, with the widest vectors of the processor.
template <template <typename, typename, int> class Block, typename Cell, typename scalar_t>
void run_blocks(const Layer<scalar_t>& layer, const LayerWeights<scalar_t>& weights, int64_t series) {
  const auto run_all = [&](auto bytes, auto run) {
    using Blocks = Block<Cell, scalar_t, bytes.value>;
    const typename Blocks::Weights packed = Blocks::pack(weights, layer);
    const int64_t parts = 2 * torch::stable::get_num_threads();  // two of each: one that is held up holds up little
    const int64_t size = std::clamp(round_up((series + parts - 1) / parts, kTile), int64_t(kTile), kBlockSeries);
    const int64_t blocks = (series + size - 1) / size, work = size * layer.steps * layer.hidden * Cell::kGates;
    parallel_for(0, blocks, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Blocks block{layer, packed, i * size, std::min(size, series - i * size)};
        run(block);
      }
    });
  };
  if (has_wide_vectors())
    run_all(std::integral_constant<int, 64>(), [](auto& block) { run_wide(block); });
  else
    run_all(std::integral_constant<int, 32>(), [](auto& block) { run(block); });
}

// The arguments of a layer, contiguous; the rows of the weights are, which may be columns of one matrix.
struct LayerTensors {
  Tensor input, h0, c0, weight_ih, weight_hh;
  std::optional<Tensor> bias;
  int64_t hidden, series;

  LayerTensors(const Tensor& input, const Tensor& h0, const Tensor& c0, const Tensor& weight_ih,
               const Tensor& weight_hh, const std::optional<Tensor>& bias)
      : input(as_contiguous(input)),
        h0(as_contiguous(h0)),
        c0(as_contiguous(c0)),
        weight_ih(with_contiguous_rows(weight_ih)),
        weight_hh(with_contiguous_rows(weight_hh)),
        bias(bias ? std::optional(as_contiguous(*bias)) : std::nullopt),
        hidden(h0.size(-1)),
        series(h0.numel() / std::max<int64_t>(1, hidden)) {}

  template <typename scalar_t>
  Layer<scalar_t> layer(scalar_t* h, const Tensor& c, const Tensor& gates) const {
    return {input.size(-2),
            input.size(-1),
            hidden,
            input.const_data_ptr<scalar_t>(),
            h0.const_data_ptr<scalar_t>(),
            c0.const_data_ptr<scalar_t>(),
            h,
            static_cast<scalar_t*>(c.data_ptr()),
            gates.numel() ? static_cast<scalar_t*>(gates.data_ptr()) : nullptr};
  }
  template <typename scalar_t>
  LayerWeights<scalar_t> weights() const {
    return {weight_ih.const_data_ptr<scalar_t>(), weight_ih.stride(0), weight_hh.const_data_ptr<scalar_t>(),
            weight_hh.stride(0), bias ? bias->const_data_ptr<scalar_t>() : nullptr};
  }
};

template <typename Cell>
LayerOutputs run_layer(const char* name, const Tensor& input, const Tensor& h0, const Tensor& c0,
                       const Tensor& weight_ih, const Tensor& weight_hh, const std::optional<Tensor>& bias,
                       bool save_gates) {
  check_layer<Cell>(name, input, h0, c0, weight_ih, weight_hh, bias);
  const LayerTensors tensors(input, h0, c0, weight_ih, weight_hh, bias);
  const LayerOutputs outputs = new_layer_outputs<Cell>(input, tensors.hidden, save_gates);
  const Tensor &h = std::get<0>(outputs), &c = std::get<1>(outputs), &gates = std::get<2>(outputs);
  dispatch(name, input, [&]<typename scalar_t>() {
    run_blocks<ForwardBlock, Cell>(tensors.layer(static_cast<scalar_t*>(h.data_ptr()), c, gates),
                                   tensors.template weights<scalar_t>(), tensors.series);
  });
  return outputs;
}

template <typename Cell>
std::tuple<Tensor, Tensor, Tensor> run_layer_backward(const char* name, const Tensor& grad_h_, const Tensor& grad_c_,
                                                      const Tensor& input, const Tensor& h0, const Tensor& c0,
                                                      const Tensor& weight_ih, const Tensor& weight_hh,
                                                      const std::optional<Tensor>& bias, const Tensor& c_,
                                                      const Tensor& gates_) {
  check_layer<Cell>(name, input, h0, c0, weight_ih, weight_hh, bias);
  check_states<Cell>(name, input, h0, {grad_h_, grad_c_, c_}, gates_);
  const LayerTensors tensors(input, h0, c0, weight_ih, weight_hh, bias);
  const Tensor grad_h = as_contiguous(grad_h_), grad_c = as_contiguous(grad_c_), c = as_contiguous(c_),
               gates = as_contiguous(gates_);
  Tensor d_gates = new_empty(gates, gates.sizes()), d_h0 = new_empty(h0, h0.sizes()), d_c0 = new_empty(c0, c0.sizes());
  dispatch(name, input, [&]<typename scalar_t>() {
    Layer<scalar_t> layer = tensors.layer<scalar_t>(nullptr, c, gates);
    layer.grad_h = grad_h.const_data_ptr<scalar_t>(), layer.grad_c = grad_c.const_data_ptr<scalar_t>();
    layer.d_gates = d_gates.mutable_data_ptr<scalar_t>();
    layer.d_h0 = d_h0.mutable_data_ptr<scalar_t>(), layer.d_c0 = d_c0.mutable_data_ptr<scalar_t>();
    run_blocks<BackwardBlock, Cell>(layer, tensors.template weights<scalar_t>(), tensors.series);
  });
  return {d_gates, d_h0, d_c0};
}

}  // namespace on_cpu
}  // namespace commodity
#endif
