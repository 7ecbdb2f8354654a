// Calls ATen operators by name, for convolutions and matrix products: call_aten("aten::mm", a, b).
#pragma once
#include <array>

#include "native.h"

namespace commodity {

template <typename... Arguments>
Tensor call_aten(const char* name, const Arguments&... arguments) {
  std::array<StableIValue, sizeof...(arguments)> stack{torch::stable::detail::from(arguments)...};
  TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(name, "", stack.data(), TORCH_ABI_VERSION));
  return torch::stable::detail::to<Tensor>(stack[0]);
}

}  // namespace commodity
