// ATen's own operators, by name: convolutions and matrix products are theirs.
#pragma once
#include <array>

#include "native.h"

namespace commodity {

template <typename... Arguments>
Tensor aten(const char* name, const Arguments&... arguments) {
  std::array<StableIValue, sizeof...(arguments)> stack{torch::stable::detail::from(arguments)...};
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(name, "", stack.data(), TORCH_ABI_VERSION));
  return torch::stable::detail::to<Tensor>(stack[0]);
}

}  // namespace commodity
