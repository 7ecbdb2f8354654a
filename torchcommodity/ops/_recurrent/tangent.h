// The tangents of a recurrent layer, on the CPU and on a GPU: how h and c change with the gates and the initial state.
// With z'_t the tangent of the gates apart from W_hh h_{t-1}, a step is a product with W_hh, then the cell. A GPU runs
// all steps in one kernel where the weights fit into a block.
#pragma once
#include "checks.h"
#include "recurrence_device.h"
#include "small_products.h"

namespace commodity {
inline namespace COMMODITY_DEVICE {

using torch::stable::clone;
using torch::stable::select;
using torch::stable::transpose;
using torch::stable::view;

// Sequences (series, steps, .) and states (series, hidden). Those of h and c that are written are tangents.
template <typename Cell, typename scalar_t>
struct TangentStep {
  static constexpr int G = Cell::kGates;
  int64_t t, steps, hidden;
  const scalar_t *d_gates, *recurrent, *gates, *c0, *c;
  scalar_t *h_state, *c_state, *h_rows, *c_rows;

  COMMODITY_INLINE void operator()(int64_t series, int64_t j, bool is_missing) const {
    const int64_t row = series * steps + t, at = row * hidden + j, i = series * hidden + j;
    scalar_t a[G], d_z[G], h_next, c_next;
    for (int g = 0; g < G; ++g) {
      const int64_t gate = g * hidden + j;
      a[g] = gates[row * G * hidden + gate];
      d_z[g] = d_gates[row * G * hidden + gate] + recurrent[series * G * hidden + gate];
    }
    const scalar_t h_previous = h_state[i], c_previous = c_state[i];
    Cell::tangent(a, t ? c[at - hidden] : c0[i], c[at], d_z, c_previous, c_next, h_next);
    h_rows[at] = h_state[i] = is_missing ? h_previous : h_next;
    c_rows[at] = c_state[i] = is_missing ? c_previous : c_next;
  }
};

template <typename Cell>
std::tuple<Tensor, Tensor> run_layer_tangent(const char* name, const Tensor& d_gates_, const Tensor& d_h0,
                                             const Tensor& d_c0, const Tensor& input_, const Tensor& c0_,
                                             const Tensor& weight_hh, const Tensor& c_, const Tensor& gates_) {
  check_states<Cell>(name, input_, c0_, {c_}, gates_);
  check_same(name, d_gates_, gates_), check_same(name, d_h0, c0_), check_same(name, d_c0, c0_);
  STD_TORCH_CHECK(c0_.dim() >= 1 && input_.dim() == c0_.dim() + 1 && weight_hh.dim() == 2 &&
                      weight_hh.size(0) == Cell::kGates * c0_.size(-1) && weight_hh.size(1) == c0_.size(-1) &&
                      weight_hh.scalar_type() == c0_.scalar_type(),
                  name, ": weight_hh must be (", int(Cell::kGates), " H, H)");
  const Tensor d_gates = as_contiguous(d_gates_), input = as_contiguous(input_), c0 = as_contiguous(c0_),
               c = as_contiguous(c_), gates = as_contiguous(gates_);
  const Tensor h_rows = new_empty(c, c.sizes()), c_rows = new_empty(c, c.sizes());
  if (!c.numel()) return {h_rows, c_rows};
#if defined(COMMODITY_GPU)
  if (run_tangent_blocks<Cell>(name, d_gates, {input, d_h0, c0}, d_c0, weight_hh, c, gates, h_rows, c_rows))
    return {h_rows, c_rows};
#endif
  const int64_t steps = input.size(-2), hidden = c0.size(-1);
  const Tensor missing = contiguous(transpose(view(find_missing(input), {c0.numel() / hidden, steps}), 0, 1));
  const Tensor h_state = as_contiguous(clone(d_h0)), c_state = as_contiguous(clone(d_c0));
  dispatch(name, c, [&]<typename scalar_t>() {
    TangentStep<Cell, scalar_t> step{0,
                                     steps,
                                     hidden,
                                     d_gates.const_data_ptr<scalar_t>(),
                                     nullptr,
                                     gates.const_data_ptr<scalar_t>(),
                                     c0.const_data_ptr<scalar_t>(),
                                     c.const_data_ptr<scalar_t>(),
                                     static_cast<scalar_t*>(h_state.data_ptr()),
                                     static_cast<scalar_t*>(c_state.data_ptr()),
                                     static_cast<scalar_t*>(h_rows.data_ptr()),
                                     static_cast<scalar_t*>(c_rows.data_ptr())};
    for (; step.t < steps; ++step.t) {
      const Tensor recurrent = project(h_state, weight_hh, std::nullopt);
      step.recurrent = recurrent.const_data_ptr<scalar_t>();
      for_each_unit(select(missing, 0, step.t), hidden, step);
    }
  });
  return {h_rows, c_rows};
}

}  // namespace COMMODITY_DEVICE
}  // namespace commodity
