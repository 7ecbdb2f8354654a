// One step of a cell of cells.h: the products by BLAS, then the gates, on the CPU and on a GPU. The backward pass goes
// from the gates on; its products are done in Python.
#pragma once
#include "aten.h"
#include "checks.h"
#include "units.h"

namespace commodity {
inline namespace COMMODITY_DEVICE {

// Pointers to samples (., H) and their gates (., gates * H); `gates` becomes gates + recurrent.
template <typename Cell, typename scalar_t>
struct CellStep {
  static constexpr int G = Cell::kGates;
  const scalar_t *recurrent, *h, *c;
  scalar_t *gates, *h_next, *c_next;
  int64_t hidden;

  COMMODITY_INLINE void operator()(int64_t sample, int64_t j, bool is_missing) const {
    const int64_t first = G * sample * hidden + j, i = sample * hidden + j;
    scalar_t z[G], c_value, h_value;
    for (int g = 0; g < G; ++g) z[g] = gates[first + g * hidden] + recurrent[first + g * hidden];
    const scalar_t c_previous = c[i], h_previous = h[i];
    Cell::step(z, c_previous, c_value, h_value);
    for (int g = 0; g < G; ++g) gates[first + g * hidden] = is_missing ? scalar_t(0) : z[g];
    c_next[i] = is_missing ? c_previous : c_value;
    h_next[i] = is_missing ? h_previous : h_value;
  }
};

template <typename Cell, typename scalar_t>
struct CellStepBackward {
  static constexpr int G = Cell::kGates;
  const scalar_t *grad_h, *grad_c, *gates, *c;
  scalar_t *d_gates, *d_h, *d_c;
  int64_t hidden;

  COMMODITY_INLINE void operator()(int64_t sample, int64_t j, bool is_missing) const {
    const int64_t first = G * sample * hidden + j, i = sample * hidden + j;
    scalar_t z[G], d_z[G], c_next, h, d_c_previous;
    for (int g = 0; g < G; ++g) z[g] = gates[first + g * hidden];
    const scalar_t c_previous = c[i], g_h = grad_h[i], g_c = grad_c[i];
    Cell::step(z, c_previous, c_next, h);
    Cell::backward(z, c_previous, c_next, g_h, g_c, d_z, d_c_previous);
    for (int g = 0; g < G; ++g) d_gates[first + g * hidden] = is_missing ? scalar_t(0) : d_z[g];
    d_h[i] = is_missing ? g_h : scalar_t(0);
    d_c[i] = is_missing ? g_c : d_c_previous;
  }
};

// The states (..., H), the gates (..., gates * H) and whether a sample is missing (...).
using CellOutputs = std::tuple<Tensor, Tensor, Tensor, Tensor>;

template <typename Cell>
CellOutputs run_cell(const char* name, const Tensor& input_, const Tensor& h_, const Tensor& c_,
                     const Tensor& weight_ih, const Tensor& weight_hh, const std::optional<Tensor>& bias) {
  check_layer<Cell>(name, input_, h_, c_, weight_ih, weight_hh, bias, false);
  const Tensor input = as_contiguous(input_), h = as_contiguous(h_), c = as_contiguous(c_);
  const std::optional<Tensor> none;
  const Tensor gates = call_aten("aten::linear", input, weight_ih, bias);
  const Tensor recurrent = call_aten("aten::linear", h, weight_hh, none);
  const int64_t hidden = h.size(-1);
  Tensor h_next = new_empty(h, h.sizes()), c_next = new_empty(h, h.sizes()), missing = find_missing(input);
  dispatch(name, h, [&]<typename scalar_t>() {
    for_each_unit(
        missing, hidden,
        CellStep<Cell, scalar_t>{recurrent.const_data_ptr<scalar_t>(), h.const_data_ptr<scalar_t>(),
                                 c.const_data_ptr<scalar_t>(), gates.mutable_data_ptr<scalar_t>(),
                                 h_next.mutable_data_ptr<scalar_t>(), c_next.mutable_data_ptr<scalar_t>(), hidden});
  });
  return {h_next, c_next, gates, missing};
}

template <typename Cell>
std::tuple<Tensor, Tensor, Tensor> run_cell_backward(const char* name, const Tensor& grad_h_, const Tensor& grad_c_,
                                                     const Tensor& gates_, const Tensor& missing_, const Tensor& c_) {
  check_cell_backward<Cell>(name, grad_h_, grad_c_, gates_, missing_, c_);
  const Tensor grad_h = as_contiguous(grad_h_), grad_c = as_contiguous(grad_c_), gates = as_contiguous(gates_);
  const Tensor missing = as_contiguous(missing_), c = as_contiguous(c_);
  const int64_t hidden = c.size(-1);
  Tensor d_gates = new_empty(gates, gates.sizes()), d_h = new_empty(c, c.sizes()), d_c = new_empty(c, c.sizes());
  dispatch(name, c, [&]<typename scalar_t>() {
    for_each_unit(
        missing, hidden,
        CellStepBackward<Cell, scalar_t>{grad_h.const_data_ptr<scalar_t>(), grad_c.const_data_ptr<scalar_t>(),
                                         gates.const_data_ptr<scalar_t>(), c.const_data_ptr<scalar_t>(),
                                         d_gates.mutable_data_ptr<scalar_t>(), d_h.mutable_data_ptr<scalar_t>(),
                                         d_c.mutable_data_ptr<scalar_t>(), hidden});
  });
  return {d_gates, d_h, d_c};
}

}  // namespace COMMODITY_DEVICE
}  // namespace commodity
