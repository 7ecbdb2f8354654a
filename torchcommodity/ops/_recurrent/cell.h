// One step of a cell of cells.h from its gates on, forward and backward; the products are done in Python.
#pragma once
#include "cell_check.h"

namespace commodity {

constexpr int64_t kCellCost = 16;  // cost of a unit relative to copying an element, for kGrain

template <typename Cell, typename scalar_t>
COMMODITY_SIMD void cell_step(int64_t hidden, const scalar_t* __restrict gates, const scalar_t* __restrict c,
                              scalar_t* __restrict h_next, scalar_t* __restrict c_next) {
  for (int64_t j = 0; j < hidden; ++j) {
    scalar_t z[Cell::kGates];
    for (int g = 0; g < Cell::kGates; ++g) z[g] = gates[g * hidden + j];
    Cell::step(z, c[j], c_next[j], h_next[j]);
  }
}

template <typename Cell, typename scalar_t>
COMMODITY_SIMD void cell_step_backward(int64_t hidden, const scalar_t* __restrict grad_h,
                                       const scalar_t* __restrict grad_c, const scalar_t* __restrict gates,
                                       const scalar_t* __restrict c, scalar_t* __restrict d_gates,
                                       scalar_t* __restrict d_c) {
  for (int64_t j = 0; j < hidden; ++j) {
    scalar_t z[Cell::kGates], d_z[Cell::kGates], c_next, h;
    for (int g = 0; g < Cell::kGates; ++g) z[g] = gates[g * hidden + j];
    Cell::step(z, c[j], c_next, h);
    Cell::backward(z, c[j], c_next, grad_h[j], grad_c[j], d_z, d_c[j]);
    for (int g = 0; g < Cell::kGates; ++g) d_gates[g * hidden + j] = d_z[g];
  }
}

template <typename Body>
void for_each_sample(int64_t samples, int64_t hidden, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / kCellCost / std::max<int64_t>(1, hidden));
  parallel_for(0, samples, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i, i * hidden);
  });
}

template <typename scalar_t, typename Cell>
void cell_forward(Cell, const Tensor& gates, const Tensor& missing, const Tensor& h, const Tensor& c, Tensor& h_next,
                  Tensor& c_next) {
  const int64_t hidden = h.size(-1);
  const bool* is_missing = missing.const_data_ptr<bool>();
  const scalar_t *z = gates.const_data_ptr<scalar_t>(), *h_in = h.const_data_ptr<scalar_t>();
  const scalar_t* c_in = c.const_data_ptr<scalar_t>();
  scalar_t *h_out = h_next.mutable_data_ptr<scalar_t>(), *c_out = c_next.mutable_data_ptr<scalar_t>();
  for_each_sample(missing.numel(), hidden, [&](int64_t i, int64_t offset) {
    if (!is_missing[i])
      return cell_step<Cell>(hidden, z + Cell::kGates * offset, c_in + offset, h_out + offset, c_out + offset);
    std::copy_n(h_in + offset, hidden, h_out + offset);
    std::copy_n(c_in + offset, hidden, c_out + offset);
  });
}

template <typename scalar_t, typename Cell>
void cell_backward(Cell, const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                   const Tensor& c, Tensor& d_gates, Tensor& d_h, Tensor& d_c) {
  constexpr int64_t G = Cell::kGates;
  const int64_t hidden = c.size(-1);
  const bool* is_missing = missing.const_data_ptr<bool>();
  const scalar_t *g_h = grad_h.const_data_ptr<scalar_t>(), *g_c = grad_c.const_data_ptr<scalar_t>();
  const scalar_t *z = gates.const_data_ptr<scalar_t>(), *c_in = c.const_data_ptr<scalar_t>();
  scalar_t *d_gates_out = d_gates.mutable_data_ptr<scalar_t>(), *d_h_out = d_h.mutable_data_ptr<scalar_t>();
  scalar_t* d_c_out = d_c.mutable_data_ptr<scalar_t>();
  for_each_sample(missing.numel(), hidden, [&](int64_t i, int64_t offset) {
    if (is_missing[i]) {
      std::fill_n(d_gates_out + G * offset, G * hidden, scalar_t(0));
      std::copy_n(g_h + offset, hidden, d_h_out + offset);
      std::copy_n(g_c + offset, hidden, d_c_out + offset);
    } else {
      std::fill_n(d_h_out + offset, hidden, scalar_t(0));
      cell_step_backward<Cell>(hidden, g_h + offset, g_c + offset, z + G * offset, c_in + offset,
                               d_gates_out + G * offset, d_c_out + offset);
    }
  });
}

template <typename Cell>
std::tuple<Tensor, Tensor> run_cell(const char* name, const Tensor& gates, const Tensor& missing, const Tensor& h,
                                    const Tensor& c) {
  check_cell<Cell>(name, gates, missing, h, c);
  Tensor h_next = new_empty(h, h.sizes()), c_next = new_empty(c, c.sizes());
  THO_DISPATCH_V2(h.scalar_type(), "recurrent cell", AT_WRAP([&] {
                    cell_forward<scalar_t>(Cell(), contiguous(gates), contiguous(missing), contiguous(h), contiguous(c),
                                           h_next, c_next);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {h_next, c_next};
}

template <typename Cell>
std::tuple<Tensor, Tensor, Tensor> run_cell_backward(const char* name, const Tensor& grad_h, const Tensor& grad_c,
                                                     const Tensor& gates, const Tensor& missing, const Tensor& c) {
  check_cell<Cell>(name, gates, missing, grad_h, c);
  check_same(name, grad_c, c);
  Tensor d_gates = new_empty(gates, gates.sizes()), d_h = new_empty(c, c.sizes()), d_c = new_empty(c, c.sizes());
  THO_DISPATCH_V2(c.scalar_type(), "recurrent cell", AT_WRAP([&] {
                    cell_backward<scalar_t>(Cell(), contiguous(grad_h), contiguous(grad_c), contiguous(gates),
                                            contiguous(missing), contiguous(c), d_gates, d_h, d_c);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {d_gates, d_h, d_c};
}

}  // namespace commodity
