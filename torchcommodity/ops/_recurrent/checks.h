// What the operators of recurrent layers and cells check.
#pragma once
#include "cells.h"
#include "kernel.h"

namespace commodity {

inline Tensor with_contiguous_rows(const Tensor& weight) {
  return weight.dim() == 2 && weight.stride(1) == 1 ? weight : contiguous(weight);
}

// One step (B, F) or a sequence (..., T, F), and the states (B, H) or (..., H).
template <typename Cell>
void check_layer(const char* name, const Tensor& input, const Tensor& h, const Tensor& c, const Tensor& weight_ih,
                 const Tensor& weight_hh, const std::optional<Tensor>& bias, bool sequence = true) {
  check_same(name, h, c);
  STD_TORCH_CHECK(h.dim() >= 1 && input.dim() == h.dim() + sequence, name,
                  ": input must be (..., F) or (..., T, F), h and c (..., H)");
  for (int64_t axis = 0; axis < h.dim() - 1; ++axis)
    STD_TORCH_CHECK(input.size(axis) == h.size(axis), name, ": input and the states must have the same leading axes");
  const int64_t gates = Cell::kGates * h.size(-1);
  const auto is_matrix = [&](const Tensor& weight, int64_t columns) {
    return weight.dim() == 2 && weight.size(0) == gates && weight.size(1) == columns;
  };
  STD_TORCH_CHECK(
      is_matrix(weight_ih, input.size(-1)) && is_matrix(weight_hh, h.size(-1)) && (!bias || bias->numel() == gates),
      name, ": the weights must be (", int(Cell::kGates), " H, F) and (", int(Cell::kGates), " H, H), the bias (",
      int(Cell::kGates), " H)");
  const auto dtype = h.scalar_type();
  STD_TORCH_CHECK(input.scalar_type() == dtype && weight_ih.scalar_type() == dtype &&
                      weight_hh.scalar_type() == dtype && (!bias || bias->scalar_type() == dtype),
                  name, ": all tensors must have one dtype");
}

// Gates (..., gates * H) and missing samples (...) of states (..., H), and the gradients of outputs that have one.
template <typename Cell>
void check_cell_backward(const char* name, const std::optional<Tensor>& grad_h, const std::optional<Tensor>& grad_c,
                         const std::optional<Tensor>& grad_gates, const Tensor& gates, const Tensor& missing,
                         const Tensor& c) {
  if (grad_h) check_same(name, *grad_h, c);
  if (grad_c) check_same(name, *grad_c, c);
  if (grad_gates) check_same(name, *grad_gates, gates);
  STD_TORCH_CHECK(
      c.dim() >= 1 && gates.dim() == c.dim() && gates.size(-1) == Cell::kGates * c.size(-1) &&
          gates.numel() == Cell::kGates * c.numel() && missing.numel() * c.size(-1) == c.numel() &&
          gates.scalar_type() == c.scalar_type() && missing.scalar_type() == torch::headeronly::ScalarType::Bool,
      name, ": gates must be (..., ", int(Cell::kGates), " H) in the dtype of the states (..., H), missing (...) bool");
}

// States of every row (..., T, H), their gradients, and the activations of its gates.
template <typename Cell>
void check_states(const char* name, const Tensor& input, const Tensor& h0, std::initializer_list<Tensor> states,
                  const Tensor& gates) {
  for (const Tensor& x : states) {
    check_same(name, x, *states.begin());
    STD_TORCH_CHECK(x.dim() == input.dim() && x.numel() == h0.numel() * input.size(-2) && x.size(-1) == h0.size(-1) &&
                        x.size(-2) == input.size(-2) && x.scalar_type() == input.scalar_type(),
                    name, ": c and the gradients of h and c must be (..., T, H), in the dtype of the input");
  }
  STD_TORCH_CHECK(gates.dim() == input.dim() && gates.numel() == Cell::kGates * states.begin()->numel() &&
                      gates.size(-1) == Cell::kGates * h0.size(-1) && gates.scalar_type() == input.scalar_type(),
                  name, ": gates must be (..., T, ", int(Cell::kGates), " H), in the dtype of the input");
}

// h and c of every row (..., T, H); the activations of its gates, none where they are not saved.
using LayerOutputs = std::tuple<Tensor, Tensor, Tensor>;

template <typename Cell>
LayerOutputs new_layer_outputs(const Tensor& input, int64_t hidden, bool save_gates) {
  const auto rows = [&](int64_t width) {
    std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
    sizes.back() = width;
    return new_empty(input, sizes);
  };
  return {rows(hidden), rows(hidden), rows(save_gates ? Cell::kGates * hidden : 0)};
}

}  // namespace commodity
