// A recurrent layer over a sequence, and its adjoint: what remains once the input is projected onto the gates.
// Threads share out blocks of series; each runs through all of time with the packed weights in its cache.
#pragma once
#include "cells.h"
#include "native.h"

namespace commodity {

constexpr int64_t kSeries = 8;  // series that go through time together, whatever the number of threads
constexpr int kBytes = 32;      // of a vector

template <typename scalar_t>
constexpr int64_t kLanes = kBytes / sizeof(scalar_t);

inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

// A matrix (depth, columns) in blocks of C vectors of columns, depth by depth: the order in which `multiply` reads it.
template <typename scalar_t>
struct Packed {
  int64_t depth, blocks;
  std::vector<scalar_t> values;

  template <typename At>
  Packed(int64_t depth, int64_t blocks, int C, const At& at)
      : depth(depth), blocks(blocks), values(depth * blocks * C * kLanes<scalar_t>) {
    scalar_t* to = values.data();
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t k = 0; k < depth; ++k)
        for (int c = 0; c < C; ++c)
          for (int64_t lane = 0; lane < kLanes<scalar_t>; ++lane) *to++ = at(k, block, c, lane);
  }
};

// R rows times C vectors of columns, in registers.
template <int R, int C, typename scalar_t>
inline void multiply(const scalar_t* const* rows, int64_t depth, const scalar_t* packed, scalar_t* to, int64_t row,
                     int64_t column) {
  typedef scalar_t Vector __attribute__((vector_size(kBytes), aligned(sizeof(scalar_t)), may_alias));
  Vector sum[R][C] = {};
  const Vector* w = reinterpret_cast<const Vector*>(packed);
  for (int64_t k = 0; k < depth; ++k, w += C)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) sum[r][c] += rows[r][k] * w[c];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) *reinterpret_cast<Vector*>(to + r * row + c * column) = sum[r][c];
}

// `blocks` of a packed matrix, from `block` on, times the rows; the products of a block stand `next` after the last's.
template <int R, int C, typename scalar_t>
inline void product(const scalar_t* const* rows, int64_t count, const Packed<scalar_t>& w, int64_t block,
                    int64_t blocks, scalar_t* to, int64_t row, int64_t column, int64_t next) {
  const scalar_t* packed = w.values.data() + block * w.depth * C * kLanes<scalar_t>;
  for (; blocks > 0; --blocks, to += next, packed += w.depth * C * kLanes<scalar_t>) {
    int64_t r = 0;
    for (; r + R <= count; r += R) multiply<R, C>(rows + r, w.depth, packed, to + r * row, row, column);
    for (; r < count; ++r) multiply<1, C>(rows + r, w.depth, packed, to + r * row, row, column);
  }
}

// Gates whose products are summed side by side: with four series as many sums as the registers hold.
template <typename Cell>
constexpr int kTogether = Cell::kGates % 3 ? 2 : 3;

template <typename scalar_t>
struct Layer {
  int64_t steps, hidden;
  const scalar_t *gates, *h0, *c0;
  const bool* missing;
  const scalar_t *grad_h, *grad_c;  // of the adjoint
  scalar_t *h, *c, *d_gates, *d_h0, *d_c0;

  const scalar_t* state(const scalar_t* sequence, const scalar_t* first, int64_t series, int64_t t) const {
    return t < 0 ? first + series * hidden : sequence + (series * steps + t) * hidden;
  }
};

template <typename Cell, typename scalar_t>
struct Block {
  static constexpr int G = Cell::kGates, C = kTogether<Cell>;
  static constexpr int64_t L = kLanes<scalar_t>;
  const Layer<scalar_t> of;
  const Packed<scalar_t>&forward, &backward;
  int64_t first, count;
  const int64_t hidden = of.hidden, wide = round_up(hidden, L), twice = round_up(hidden, 2 * L);
  std::vector<scalar_t> raw = std::vector<scalar_t>(count * G * wide);
  const scalar_t* rows[kSeries];

  // h_{t-1} times the weights, into `raw` (series, gates, wide).
  void recall(int64_t t) {
    for (int64_t r = 0; r < count; ++r) rows[r] = of.state(of.h, of.h0, first + r, t - 1);
    for (int g = 0; g < G; g += C)
      product<4, C>(rows, count, forward, g / C * wide / L, wide / L, raw.data() + g * wide, G * wide, wide, L);
  }

  void run() {
    for (int64_t t = 0; t < of.steps; ++t) {
      recall(t);
      for (int64_t r = 0; r < count; ++r) step(first + r, t, raw.data() + r * G * wide);
    }
  }

  void step(int64_t series, int64_t t, const scalar_t* __restrict own) {
    const int64_t at = series * of.steps + t;
    const scalar_t* __restrict given = of.gates + at * G * hidden;
    const scalar_t* __restrict before = of.state(of.c, of.c0, series, t - 1);
    scalar_t* __restrict c = of.c + at * hidden, * __restrict h = of.h + at * hidden;
    if (of.missing[at]) {
      std::copy_n(before, hidden, c);
      std::copy_n(of.state(of.h, of.h0, series, t - 1), hidden, h);
      return;
    }
    const int64_t width = hidden, apart = wide;
#pragma GCC ivdep  // or the inlined pointers may alias, and nothing is vectorized
    for (int64_t j = 0; j < width; ++j) {
      scalar_t z[G];
      for (int g = 0; g < G; ++g) z[g] = given[g * width + j] + own[g * apart + j];
      Cell::step(z, before[j], c[j], h[j]);
    }
  }

  // D_t = d loss / d h_t through all that follows: D_t = grad_t + d_gates_{t+1} W, or D_{t+1} where row t+1 is missing.
  void pull() {
    std::vector<scalar_t> d_h(count * twice), kept(count * hidden);
    std::vector<double> d_c(count * hidden);  // a sum over all of time
    for (int64_t t = of.steps - 1; t >= 0; --t) {
      recall(t);
      for (int64_t r = 0; r < count; ++r)
        pull(first + r, t, raw.data() + r * G * wide, &d_h[r * twice], &d_c[r * hidden], &kept[r * hidden]);
      for (int64_t r = 0; r < count; ++r) rows[r] = of.d_gates + ((first + r) * of.steps + t) * G * hidden;
      product<4, 2>(rows, count, backward, 0, twice / (2 * L), d_h.data(), twice, L, 2 * L);
      for (int64_t r = 0; r < count; ++r)
        if (of.missing[(first + r) * of.steps + t]) std::copy_n(&kept[r * hidden], hidden, &d_h[r * twice]);
    }
    for (int64_t r = 0; r < count; ++r) {
      std::copy_n(&d_h[r * twice], hidden, of.d_h0 + (first + r) * hidden);
      std::copy_n(&d_c[r * hidden], hidden, of.d_c0 + (first + r) * hidden);
    }
  }

  void pull(int64_t series, int64_t t, const scalar_t* __restrict own, scalar_t* __restrict d_h, double* __restrict d_c,
            scalar_t* __restrict kept) {
    const int64_t at = series * of.steps + t;
    const scalar_t* __restrict given = of.gates + at * G * hidden;
    const scalar_t* __restrict before = of.state(of.c, of.c0, series, t - 1);
    const scalar_t* __restrict c = of.c + at * hidden, * __restrict grad_h = of.grad_h + at * hidden;
    const scalar_t* __restrict grad_c = of.grad_c + at * hidden;
    scalar_t* __restrict to = of.d_gates + at * G * hidden;
    for (int64_t j = 0; j < hidden; ++j) kept[j] = d_h[j] + grad_h[j], d_c[j] += grad_c[j];
    if (of.missing[at]) return void(std::fill_n(to, G * hidden, scalar_t(0)));
    const int64_t width = hidden, apart = wide;
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j) {
      scalar_t z[G], d_z[G];
      for (int g = 0; g < G; ++g) z[g] = given[g * width + j] + own[g * apart + j];
      Cell::pull(z, before[j], c[j], kept[j], d_c[j], d_z, d_c[j]);
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
COMMODITY_SIMD void pull(Block<Cell, float>& block) {
  block.pull();
}
template <typename Cell>
COMMODITY_SIMD void pull(Block<Cell, double>& block) {
  block.pull();
}

// The weights (gates * hidden, hidden): h times their transpose, a block for the same units of some gates.
template <typename Cell, typename scalar_t>
Packed<scalar_t> packed_forward(const scalar_t* weight, int64_t hidden) {
  const int64_t L = kLanes<scalar_t>, wide = round_up(hidden, L) / L;
  constexpr int C = kTogether<Cell>;
  return {hidden, wide * Cell::kGates / C, C, [=](int64_t k, int64_t block, int c, int64_t lane) {
            const int64_t gate = block / wide * C + c, j = block % wide * L + lane;
            return j < hidden ? weight[(gate * hidden + j) * hidden + k] : scalar_t(0);
          }};
}

// The gradient of the gates times the weights.
template <typename scalar_t>
Packed<scalar_t> packed_backward(const scalar_t* weight, int64_t hidden, int gates) {
  const int64_t L = kLanes<scalar_t>;
  return {gates * hidden, round_up(hidden, 2 * L) / (2 * L), 2, [=](int64_t k, int64_t block, int half, int64_t lane) {
            const int64_t j = (2 * block + half) * L + lane;
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
                  name, ": missing must be bool, all others of one dtype");
}

// body(block) for every block of series, in parallel.
template <typename Cell, typename scalar_t, typename Body>
void for_each_series(const Layer<scalar_t>& layer, int64_t series, const scalar_t* weight, bool adjoint,
                     const Body& body) {
  const auto forward = packed_forward<Cell>(weight, layer.hidden);
  const auto backward = packed_backward(weight, adjoint ? layer.hidden : 0, Cell::kGates);
  const int64_t blocks = (series + kSeries - 1) / kSeries, work = kSeries * layer.steps * layer.hidden * Cell::kGates;
  torch::stable::parallel_for(
      0, blocks, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          Block<Cell, scalar_t> block{layer, forward, backward, i * kSeries, std::min(kSeries, series - i * kSeries)};
          body(block);
        }
      });
}

// body(scalar_t(0)): the macro takes no comma
template <typename Body>
void dispatch(const Tensor& x, const Body& body) {
  THO_DISPATCH_V2(x.scalar_type(), "recurrence", AT_WRAP([&] { body(scalar_t(0)); }), AT_EXPAND(AT_FLOATING_TYPES));
}

template <typename Cell>
std::tuple<Tensor, Tensor> layer(const char* name, const Tensor& gates_, const Tensor& missing_, const Tensor& weight_,
                                 const Tensor& h0_, const Tensor& c0_) {
  check_layer<Cell>(name, gates_, missing_, weight_, h0_, c0_);
  const Tensor gates = contiguous(gates_), missing = contiguous(missing_), weight = contiguous(weight_);
  const Tensor h0 = contiguous(h0_), c0 = contiguous(c0_);
  const int64_t hidden = h0.size(-1), series = h0.numel() / std::max<int64_t>(1, hidden);
  std::vector<int64_t> sizes(gates.sizes().begin(), gates.sizes().end());
  sizes.back() = hidden;
  Tensor h = new_empty(gates, sizes), c = new_empty(gates, sizes);
  dispatch(gates, [&](auto zero) {
    using scalar_t = decltype(zero);
    Layer<scalar_t> of;
    of.steps = gates.size(-2), of.hidden = hidden;
    of.gates = gates.const_data_ptr<scalar_t>(), of.missing = missing.const_data_ptr<bool>();
    of.h0 = h0.const_data_ptr<scalar_t>(), of.c0 = c0.const_data_ptr<scalar_t>();
    of.h = h.mutable_data_ptr<scalar_t>(), of.c = c.mutable_data_ptr<scalar_t>();
    for_each_series<Cell>(of, series, weight.const_data_ptr<scalar_t>(), false, [](auto& block) { run(block); });
  });
  return {h, c};
}

template <typename Cell>
std::tuple<Tensor, Tensor, Tensor> adjoint(const char* name, const Tensor& grad_h_, const Tensor& grad_c_,
                                           const Tensor& gates_, const Tensor& missing_, const Tensor& weight_,
                                           const Tensor& h0_, const Tensor& c0_, const Tensor& h_, const Tensor& c_) {
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
    Layer<scalar_t> of;
    of.steps = gates.size(-2), of.hidden = hidden;
    of.gates = gates.const_data_ptr<scalar_t>(), of.missing = missing.const_data_ptr<bool>();
    of.h0 = h0.const_data_ptr<scalar_t>(), of.c0 = c0.const_data_ptr<scalar_t>();
    of.h = const_cast<scalar_t*>(h.const_data_ptr<scalar_t>());  // read only
    of.c = const_cast<scalar_t*>(c.const_data_ptr<scalar_t>());
    of.grad_h = grad_h.const_data_ptr<scalar_t>(), of.grad_c = grad_c.const_data_ptr<scalar_t>();
    of.d_gates = d_gates.mutable_data_ptr<scalar_t>();
    of.d_h0 = d_h0.mutable_data_ptr<scalar_t>(), of.d_c0 = d_c0.mutable_data_ptr<scalar_t>();
    for_each_series<Cell>(of, series, weight.const_data_ptr<scalar_t>(), true, [](auto& block) { pull(block); });
  });
  return {d_gates, d_h0, d_c0};
}

}  // namespace commodity
