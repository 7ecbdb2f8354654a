// A recurrent layer over a sequence, forward and backward, for the cells of cells.h.
//
// The input has already been projected onto the gates (one matrix product in Python); what remains in each step is
// gates + h_{t-1} W', then the cell. Threads take blocks of kBlockSeries series and run through all of time, with the
// weights, packed into vector order, in the cache. The backward pass recomputes the gates of each row and goes through
// time in reverse: D_t = dL/dh_t = grad_t + d_gates_{t+1} W, and the gradient of c is summed in double.
#pragma once
#include "cells.h"
#include "native.h"
#include "packed_matrix.h"

namespace commodity {

constexpr int64_t kBlockSeries = 8;  // series of a block

// Gates per packed block: with four series their sums fill the vector registers.
template <typename Cell>
constexpr int kGateGroup = Cell::kGates % 3 ? 2 : 3;

template <typename scalar_t>
struct Layer {
  int64_t steps, hidden;
  const scalar_t *gates, *h0, *c0;
  const bool* missing;
  const scalar_t *grad_h, *grad_c;  // backward only
  scalar_t *h, *c, *d_gates, *d_h0, *d_c0;

  const scalar_t* state(const scalar_t* sequence, const scalar_t* first, int64_t series, int64_t t) const {
    return t < 0 ? first + series * hidden : sequence + (series * steps + t) * hidden;
  }
};

template <typename Cell, typename scalar_t>
struct Block {
  static constexpr int G = Cell::kGates, C = kGateGroup<Cell>;
  static constexpr int64_t L = kLanes<scalar_t>;
  const Layer<scalar_t> layer;
  const PackedMatrix<scalar_t>&weights, &weights_transposed;
  int64_t first, count;
  const int64_t hidden = layer.hidden, padded = round_up(hidden, L), padded_pair = round_up(hidden, 2 * L);
  std::vector<scalar_t> products = std::vector<scalar_t>(count * G * padded);
  const scalar_t* rows[kBlockSeries];

  // h_{t-1} times the weights, into `products` (series, gates, padded).
  void multiply_state(int64_t t) {
    for (int64_t r = 0; r < count; ++r) rows[r] = layer.state(layer.h, layer.h0, first + r, t - 1);
    for (int g = 0; g < G; g += C)
      multiply_blocks<4, C>(rows, count, weights, g / C * padded / L, padded / L, products.data() + g * padded,
                            G * padded, padded, L);
  }

  void run() {
    for (int64_t t = 0; t < layer.steps; ++t) {
      multiply_state(t);
      for (int64_t r = 0; r < count; ++r) step(first + r, t, products.data() + r * G * padded);
    }
  }

  void step(int64_t series, int64_t t, const scalar_t* __restrict recurrent) {
    const int64_t row = series * layer.steps + t;
    const scalar_t* __restrict projected = layer.gates + row * G * hidden;
    const scalar_t* __restrict c_previous = layer.state(layer.c, layer.c0, series, t - 1);
    scalar_t* __restrict c = layer.c + row * hidden, * __restrict h = layer.h + row * hidden;
    if (layer.missing[row]) {
      std::copy_n(c_previous, hidden, c);
      std::copy_n(layer.state(layer.h, layer.h0, series, t - 1), hidden, h);
      return;
    }
    const int64_t width = hidden, gate_stride = padded;
    COMMODITY_IVDEP  // otherwise the inlined pointers may alias, which prevents vectorization
    for (int64_t j = 0; j < width; ++j) {
      scalar_t z[G];
      for (int g = 0; g < G; ++g) z[g] = projected[g * width + j] + recurrent[g * gate_stride + j];
      Cell::step(z, c_previous[j], c[j], h[j]);
    }
  }

  // D_t = grad_t + d_gates_{t+1} W; where row t + 1 is missing, D_t = grad_t + D_{t+1}.
  void backward() {
    std::vector<scalar_t> d_h(count * padded_pair), d_h_total(count * hidden);
    std::vector<double> d_c(count * hidden);  // a sum over time
    for (int64_t t = layer.steps - 1; t >= 0; --t) {
      multiply_state(t);
      for (int64_t r = 0; r < count; ++r)
        backward(first + r, t, products.data() + r * G * padded, &d_h[r * padded_pair], &d_c[r * hidden],
                 &d_h_total[r * hidden]);
      for (int64_t r = 0; r < count; ++r) rows[r] = layer.d_gates + ((first + r) * layer.steps + t) * G * hidden;
      multiply_blocks<4, 2>(rows, count, weights_transposed, 0, padded_pair / (2 * L), d_h.data(), padded_pair, L,
                            2 * L);
      for (int64_t r = 0; r < count; ++r)
        if (layer.missing[(first + r) * layer.steps + t])
          std::copy_n(&d_h_total[r * hidden], hidden, &d_h[r * padded_pair]);
    }
    for (int64_t r = 0; r < count; ++r) {
      std::copy_n(&d_h[r * padded_pair], hidden, layer.d_h0 + (first + r) * hidden);
      std::copy_n(&d_c[r * hidden], hidden, layer.d_c0 + (first + r) * hidden);
    }
  }

  void backward(int64_t series, int64_t t, const scalar_t* __restrict recurrent, scalar_t* __restrict d_h,
                double* __restrict d_c, scalar_t* __restrict d_h_total) {
    const int64_t row = series * layer.steps + t;
    const scalar_t* __restrict projected = layer.gates + row * G * hidden;
    const scalar_t* __restrict c_previous = layer.state(layer.c, layer.c0, series, t - 1);
    const scalar_t* __restrict c = layer.c + row * hidden, * __restrict grad_h = layer.grad_h + row * hidden;
    const scalar_t* __restrict grad_c = layer.grad_c + row * hidden;
    scalar_t* __restrict to = layer.d_gates + row * G * hidden;
    for (int64_t j = 0; j < hidden; ++j) d_h_total[j] = d_h[j] + grad_h[j], d_c[j] += grad_c[j];
    if (layer.missing[row]) return void(std::fill_n(to, G * hidden, scalar_t(0)));
    const int64_t width = hidden, gate_stride = padded;
    COMMODITY_IVDEP
    for (int64_t j = 0; j < width; ++j) {
      scalar_t z[G], d_z[G];
      for (int g = 0; g < G; ++g) z[g] = projected[g * width + j] + recurrent[g * gate_stride + j];
      Cell::backward(z, c_previous[j], c[j], d_h_total[j], d_c[j], d_z, d_c[j]);
      for (int g = 0; g < G; ++g) to[g * width + j] = d_z[g];
    }
  }
};

template <typename Cell>
COMMODITY_SIMD void run(Block<Cell, float>& block) {
  block.run();
}
template <typename Cell>
COMMODITY_SIMD void run(Block<Cell, double>& block) {
  block.run();
}
template <typename Cell>
COMMODITY_SIMD void backward(Block<Cell, float>& block) {
  block.backward();
}
template <typename Cell>
COMMODITY_SIMD void backward(Block<Cell, double>& block) {
  block.backward();
}

// The weights (gates * hidden, hidden), packed for h W': a block holds the same units of kGateGroup gates.
template <typename Cell, typename scalar_t>
PackedMatrix<scalar_t> pack_forward(const scalar_t* weight, int64_t hidden) {
  const int64_t L = kLanes<scalar_t>, padded = round_up(hidden, L) / L;
  constexpr int C = kGateGroup<Cell>;
  return {hidden, padded * Cell::kGates / C, C, [=](int64_t k, int64_t block, int c, int64_t lane) {
            const int64_t gate = block / padded * C + c, j = block % padded * L + lane;
            return j < hidden ? weight[(gate * hidden + j) * hidden + k] : scalar_t(0);
          }};
}

// The weights, packed for d_gates W.
template <typename scalar_t>
PackedMatrix<scalar_t> pack_backward(const scalar_t* weight, int64_t hidden, int gates) {
  const int64_t L = kLanes<scalar_t>;
  return {gates * hidden, round_up(hidden, 2 * L) / (2 * L), 2,
          [=](int64_t k, int64_t block, int vector, int64_t lane) {
            const int64_t j = (2 * block + vector) * L + lane;
            return j < hidden ? weight[k * hidden + j] : scalar_t(0);
          }};
}

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
                  name, ": missing must be bool, all other tensors must have one dtype");
}

// Calls body(block) for every block of series, in parallel.
template <typename Cell, typename scalar_t, typename Body>
void for_each_block_of_series(const Layer<scalar_t>& layer, int64_t series, const scalar_t* weight, bool with_backward,
                              const Body& body) {
  const auto weights = pack_forward<Cell>(weight, layer.hidden);
  const auto weights_transposed = pack_backward(weight, with_backward ? layer.hidden : 0, Cell::kGates);
  const int64_t blocks = (series + kBlockSeries - 1) / kBlockSeries,
                work = kBlockSeries * layer.steps * layer.hidden * Cell::kGates;
  parallel_for(0, blocks, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Block<Cell, scalar_t> block{layer, weights, weights_transposed, i * kBlockSeries,
                                  std::min(kBlockSeries, series - i * kBlockSeries)};
      body(block);
    }
  });
}

// Calls body(scalar_t(0)); the dispatch macro accepts no commas.
template <typename Body>
void dispatch(const Tensor& x, const Body& body) {
  THO_DISPATCH_V2(x.scalar_type(), "recurrence", AT_WRAP([&] { body(scalar_t(0)); }), AT_EXPAND(AT_FLOATING_TYPES));
}

template <typename Cell>
std::tuple<Tensor, Tensor> run_layer(const char* name, const Tensor& gates_, const Tensor& missing_,
                                     const Tensor& weight_, const Tensor& h0_, const Tensor& c0_) {
  check_layer<Cell>(name, gates_, missing_, weight_, h0_, c0_);
  const Tensor gates = contiguous(gates_), missing = contiguous(missing_), weight = contiguous(weight_);
  const Tensor h0 = contiguous(h0_), c0 = contiguous(c0_);
  const int64_t hidden = h0.size(-1), series = h0.numel() / std::max<int64_t>(1, hidden);
  std::vector<int64_t> sizes(gates.sizes().begin(), gates.sizes().end());
  sizes.back() = hidden;
  Tensor h = new_empty(gates, sizes), c = new_empty(gates, sizes);
  dispatch(gates, [&](auto zero) {
    using scalar_t = decltype(zero);
    Layer<scalar_t> layer;
    layer.steps = gates.size(-2), layer.hidden = hidden;
    layer.gates = gates.const_data_ptr<scalar_t>(), layer.missing = missing.const_data_ptr<bool>();
    layer.h0 = h0.const_data_ptr<scalar_t>(), layer.c0 = c0.const_data_ptr<scalar_t>();
    layer.h = h.mutable_data_ptr<scalar_t>(), layer.c = c.mutable_data_ptr<scalar_t>();
    for_each_block_of_series<Cell>(layer, series, weight.const_data_ptr<scalar_t>(), false,
                                   [](auto& block) { run(block); });
  });
  return {h, c};
}

template <typename Cell>
std::tuple<Tensor, Tensor, Tensor> run_layer_backward(const char* name, const Tensor& grad_h_, const Tensor& grad_c_,
                                                      const Tensor& gates_, const Tensor& missing_,
                                                      const Tensor& weight_, const Tensor& h0_, const Tensor& c0_,
                                                      const Tensor& h_, const Tensor& c_) {
  check_layer<Cell>(name, gates_, missing_, weight_, h0_, c0_);
  for (const Tensor* x : {&grad_h_, &grad_c_, &h_}) check_same(name, *x, c_);
  STD_TORCH_CHECK(c_.numel() * Cell::kGates == gates_.numel() && c_.scalar_type() == gates_.scalar_type(), name,
                  ": h, c and their gradients must be (..., T, H), of the dtype of gates");
  const Tensor gates = contiguous(gates_), missing = contiguous(missing_), weight = contiguous(weight_);
  const Tensor h0 = contiguous(h0_), c0 = contiguous(c0_), h = contiguous(h_), c = contiguous(c_);
  const Tensor grad_h = contiguous(grad_h_), grad_c = contiguous(grad_c_);
  const int64_t hidden = h0.size(-1), series = h0.numel() / std::max<int64_t>(1, hidden);
  Tensor d_gates = new_empty(gates, gates.sizes()), d_h0 = new_empty(h0, h0.sizes()), d_c0 = new_empty(c0, c0.sizes());
  dispatch(gates, [&](auto zero) {
    using scalar_t = decltype(zero);
    Layer<scalar_t> layer;
    layer.steps = gates.size(-2), layer.hidden = hidden;
    layer.gates = gates.const_data_ptr<scalar_t>(), layer.missing = missing.const_data_ptr<bool>();
    layer.h0 = h0.const_data_ptr<scalar_t>(), layer.c0 = c0.const_data_ptr<scalar_t>();
    layer.h = const_cast<scalar_t*>(h.const_data_ptr<scalar_t>());  // read only
    layer.c = const_cast<scalar_t*>(c.const_data_ptr<scalar_t>());
    layer.grad_h = grad_h.const_data_ptr<scalar_t>(), layer.grad_c = grad_c.const_data_ptr<scalar_t>();
    layer.d_gates = d_gates.mutable_data_ptr<scalar_t>();
    layer.d_h0 = d_h0.mutable_data_ptr<scalar_t>(), layer.d_c0 = d_c0.mutable_data_ptr<scalar_t>();
    for_each_block_of_series<Cell>(layer, series, weight.const_data_ptr<scalar_t>(), true,
                                   [](auto& block) { backward(block); });
  });
  return {d_gates, d_h0, d_c0};
}

}  // namespace commodity
