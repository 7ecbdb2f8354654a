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

}  // namespace commodity
