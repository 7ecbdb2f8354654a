// For authors of kernels: LibTorch's stable ABI with the few conveniences that every kernel wants, CPU and CUDA.
#pragma once
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/core/TensorAccessor.h>
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#if defined(__CUDACC__)
#define OPKIT_INLINE __host__ __device__ __forceinline__
#else
#define OPKIT_INLINE inline
#endif

// OPKIT_CHECK(condition, "square: x must be a matrix; got ", x.dim(), " axes") raises RuntimeError in these words.
#define OPKIT_CHECK(...) STD_TORCH_CHECK(__VA_ARGS__)

namespace opkit {

using torch::stable::contiguous;
using torch::stable::empty_like;
using torch::stable::new_empty;
using torch::stable::new_zeros;
using torch::stable::Tensor;

constexpr int64_t kGrain = 1 << 15;  // elements below which a thread is not worth waking

// Calls body(begin, end) over parts of [0, items), in parallel; `elements` says how much work one item is.
// A grain counted in items would wake threads for nothing: with grain 1, 8 ms were measured in place of 0.3.
template <typename Body>
void parallel(int64_t items, int64_t elements, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements));
  torch::stable::parallel_for(0, items, grain, body);
}

// Calls body.operator()<scalar_t>() for the one of these types that x has:
//   dispatch<float, double>(x, "square", [&]<typename scalar_t>() { ... });
template <typename... Types, typename Body>
void dispatch(const Tensor& x, const char* operation, const Body& body) {
  using torch::headeronly::CppTypeToScalarType;
  const auto type = x.scalar_type();
  const auto fits = [&]<typename scalar_t>() {
    if (type != CppTypeToScalarType<scalar_t>::value) return false;
    body.template operator()<scalar_t>();
    return true;
  };
  STD_TORCH_CHECK((fits.template operator()<Types>() || ...), operation, ": has no kernel for ",
                  torch::headeronly::toString(type));
}

// x[i][j] by strides, for any layout. It refers to the memory of x and does not keep it alive: name the Tensor first,
// never `accessor<...>(contiguous(x))`.
template <typename scalar_t, size_t axes>
auto accessor(const Tensor& x) {
  STD_TORCH_CHECK(x.dim() == int64_t(axes), "accessor: expected ", axes, " axes; got ", x.dim());
  return torch::headeronly::HeaderOnlyTensorAccessor<scalar_t, axes>(static_cast<scalar_t*>(x.data_ptr()),
                                                                      x.sizes().data(), x.strides().data());
}

// The same for a CUDA kernel, to be passed by value.
template <typename scalar_t, size_t axes>
auto packed_accessor(const Tensor& x) {
  STD_TORCH_CHECK(x.dim() == int64_t(axes), "packed_accessor: expected ", axes, " axes; got ", x.dim());
  return torch::headeronly::HeaderOnlyGenericPackedTensorAccessor<scalar_t, axes>(
      static_cast<scalar_t*>(x.data_ptr()), x.sizes().data(), x.strides().data());
}

}  // namespace opkit
