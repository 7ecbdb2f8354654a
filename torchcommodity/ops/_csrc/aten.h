// Calls ATen operators by name, for convolutions and matrix products: call_aten("aten::convolution", x, weight, ...).
#pragma once
#include <array>
#include <utility>

#include "native.h"

namespace commodity {

// The results of an operator with so many of them.
template <size_t results, typename... Arguments>
std::array<Tensor, results> call_aten_for(const char* name, const Arguments&... arguments) {
  static_assert(results <= sizeof...(arguments));
  std::array<StableIValue, sizeof...(arguments)> stack{torch::stable::detail::from(arguments)...};
  TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(name, "", stack.data(), TORCH_ABI_VERSION));
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return std::array<Tensor, results>{torch::stable::detail::to<Tensor>(stack[i])...};
  }(std::make_index_sequence<results>());
}

template <typename... Arguments>
Tensor call_aten(const char* name, const Arguments&... arguments) {
  return call_aten_for<1>(name, arguments...)[0];
}

// Without a call of the dispatcher where there is nothing to do.
inline Tensor as_contiguous(const Tensor& x) { return x.is_contiguous() ? x : contiguous(x); }

// A view of the values of x as a matrix, from the value at `offset` on.
inline Tensor as_matrix(const Tensor& x, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                        int64_t offset = 0) {
  const int64_t sizes[] = {rows, columns}, strides[] = {row_stride, column_stride};
  AtenTensorHandle view;
  TORCH_ERROR_CODE_CHECK(aoti_torch__reinterpret_tensor(x.get(), 2, sizes, strides, offset, &view));
  return Tensor(view);
}

// out = a b
inline void multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  std::array<StableIValue, 3> stack{torch::stable::detail::from(a), torch::stable::detail::from(b),
                                    torch::stable::detail::from(out)};
  TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::mm", "out", stack.data(), TORCH_ABI_VERSION));
  torch::stable::detail::to<Tensor>(stack[0]);  // the result is `out` again, a reference to free
}

}  // namespace commodity
