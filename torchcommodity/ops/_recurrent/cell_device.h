// One step of a cell of cells.h from its gates on, forward and backward, on a GPU; the products are done in Python.
// The names differ from those of cell.h: the linker takes one of two functions of the same name and arguments.
#pragma once
#include "cell_check.h"
#include "device.h"

namespace commodity {

template <typename Cell, typename scalar_t>
struct CellStep {
  const scalar_t *gates, *h, *c;
  const bool* missing;
  scalar_t *h_next, *c_next;
  int64_t hidden;

  COMMODITY_INLINE void operator()(int64_t i) const {
    const int64_t sample = i / hidden, first = Cell::kGates * sample * hidden + i % hidden;
    scalar_t z[Cell::kGates], c_value, h_value;
    for (int g = 0; g < Cell::kGates; ++g) z[g] = read(gates + first + g * hidden);
    Cell::step(z, read(c + i), c_value, h_value);
    c_next[i] = missing[sample] ? read(c + i) : c_value;
    h_next[i] = missing[sample] ? read(h + i) : h_value;
  }
};

template <typename Cell, typename scalar_t>
struct CellStepBackward {
  const scalar_t *grad_h, *grad_c, *gates, *c;
  const bool* missing;
  scalar_t *d_gates, *d_h, *d_c;
  int64_t hidden;

  COMMODITY_INLINE void operator()(int64_t i) const {
    const int64_t sample = i / hidden, first = Cell::kGates * sample * hidden + i % hidden;
    scalar_t z[Cell::kGates], d_z[Cell::kGates], c_next, h, d_c_previous;
    for (int g = 0; g < Cell::kGates; ++g) z[g] = read(gates + first + g * hidden);
    Cell::step(z, read(c + i), c_next, h);
    Cell::backward(z, read(c + i), c_next, read(grad_h + i), read(grad_c + i), d_z, d_c_previous);
    const bool is_missing = missing[sample];
    for (int g = 0; g < Cell::kGates; ++g) d_gates[first + g * hidden] = is_missing ? 0 : d_z[g];
    d_h[i] = is_missing ? read(grad_h + i) : 0;
    d_c[i] = is_missing ? read(grad_c + i) : d_c_previous;
  }
};

template <typename Cell>
std::tuple<Tensor, Tensor> launch_cell(const char* name, const Tensor& gates_, const Tensor& missing_, const Tensor& h_,
                                       const Tensor& c_) {
  check_cell<Cell>(name, gates_, missing_, h_, c_);
  const Tensor gates = contiguous(gates_), missing = contiguous(missing_), h = contiguous(h_), c = contiguous(c_);
  Tensor h_next = new_empty(h, h.sizes()), c_next = new_empty(c, c.sizes());
  dispatch(name, h, [&]<typename scalar_t>() {
    launch(h, h.numel(),
           CellStep<Cell, scalar_t>{gates.const_data_ptr<scalar_t>(), h.const_data_ptr<scalar_t>(),
                                    c.const_data_ptr<scalar_t>(), missing.const_data_ptr<bool>(),
                                    data_ptr<scalar_t>(h_next), data_ptr<scalar_t>(c_next), h.size(-1)});
  });
  return {h_next, c_next};
}

template <typename Cell>
std::tuple<Tensor, Tensor, Tensor> launch_cell_backward(const char* name, const Tensor& grad_h_, const Tensor& grad_c_,
                                                        const Tensor& gates_, const Tensor& missing_,
                                                        const Tensor& c_) {
  check_cell<Cell>(name, gates_, missing_, grad_h_, c_);
  check_same(name, grad_c_, c_);
  const Tensor gates = contiguous(gates_), missing = contiguous(missing_), c = contiguous(c_);
  const Tensor grad_h = contiguous(grad_h_), grad_c = contiguous(grad_c_);
  Tensor d_gates = new_empty(gates, gates.sizes()), d_h = new_empty(c, c.sizes()), d_c = new_empty(c, c.sizes());
  dispatch(name, c, [&]<typename scalar_t>() {
    launch(c, c.numel(),
           CellStepBackward<Cell, scalar_t>{grad_h.const_data_ptr<scalar_t>(), grad_c.const_data_ptr<scalar_t>(),
                                            gates.const_data_ptr<scalar_t>(), c.const_data_ptr<scalar_t>(),
                                            missing.const_data_ptr<bool>(), data_ptr<scalar_t>(d_gates),
                                            data_ptr<scalar_t>(d_h), data_ptr<scalar_t>(d_c), c.size(-1)});
  });
  return {d_gates, d_h, d_c};
}

}  // namespace commodity
