// What the operators of one step check, on the CPU and on a GPU.
#pragma once
#include "cells.h"
#include "native.h"

namespace commodity {

template <typename Cell>
void check_cell(const char* name, const Tensor& gates, const Tensor& missing, const Tensor& h, const Tensor& c) {
  check_same(name, h, c);
  const int64_t hidden = h.size(-1), samples = hidden ? h.numel() / hidden : 0;
  STD_TORCH_CHECK(
      gates.numel() == Cell::kGates * h.numel() && missing.numel() == samples &&
          gates.scalar_type() == h.scalar_type() && missing.scalar_type() == torch::headeronly::ScalarType::Bool,
      name, ": gates must be (..., ", int(Cell::kGates), " H) in the dtype of the states (..., H), missing (...) bool");
}

template <typename Cell>
void check_inputs(const char* name, const Tensor& input, const Tensor& h, const Tensor& weight) {
  STD_TORCH_CHECK(input.dim() == 2 && h.dim() == 2 && input.size(0) == h.size(0) && weight.dim() == 2 &&
                      weight.size(0) == Cell::kGates * h.size(1) && weight.size(1) == h.size(1) + input.size(1) &&
                      input.scalar_type() == h.scalar_type() && weight.scalar_type() == h.scalar_type(),
                  name, ": input must be (B, F), h (B, H) and weight (", int(Cell::kGates),
                  " H, H + F), all of one dtype");
}

}  // namespace commodity
