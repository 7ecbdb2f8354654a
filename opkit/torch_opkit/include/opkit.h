// For authors of kernels: LibTorch's stable ABI with helpers for parallel loops, dtype dispatch, access and launches.
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
#include <cuda_runtime.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#define OPKIT_INLINE __host__ __device__ __forceinline__
#else
#define OPKIT_INLINE inline
#endif

// OPKIT_CHECK(condition, "square: x must be a matrix; got ", x.dim(), " axes") raises RuntimeError with this message.
#define OPKIT_CHECK(...) STD_TORCH_CHECK(__VA_ARGS__)

namespace opkit {

using torch::stable::contiguous;
using torch::stable::empty_like;
using torch::stable::new_empty;
using torch::stable::new_zeros;
using torch::stable::Tensor;

constexpr int64_t kGrain = 1 << 15;  // elements per thread; for fewer, starting a thread costs more than it saves

// Calls body(begin, end) on ranges that cover [0, items), in parallel; one item is `elements` elements of work.
// The grain is in elements: with a grain of one item a small loop was measured at 8 ms instead of 0.3 ms.
template <typename Body>
void parallel(int64_t items, int64_t elements, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements));
  torch::stable::parallel_for(0, items, grain, body);
}

// Calls body.operator()<scalar_t>() with the one of these types that x has, or raises an error:
//   dispatch<float, double>(x, "square", [&]<typename scalar_t>() { ... });
template <typename... Types, typename Body>
void dispatch(const Tensor& x, const char* operation, const Body& body) {
  using torch::headeronly::CppTypeToScalarType;
  const auto type = x.scalar_type();
  const auto try_type = [&]<typename scalar_t>() {
    if (type != CppTypeToScalarType<scalar_t>::value) return false;
    body.template operator()<scalar_t>();
    return true;
  };
  STD_TORCH_CHECK((try_type.template operator()<Types>() || ...), operation, ": has no kernel for ",
                  torch::headeronly::toString(type));
}

// Element access x[i][j] by strides, for any layout. It does not keep x alive, so a temporary does not compile: name
// the Tensor first, never `accessor<...>(contiguous(x))`.
template <typename scalar_t, size_t axes>
auto accessor(const Tensor& x) {
  STD_TORCH_CHECK(x.dim() == int64_t(axes), "accessor: expected ", axes, " axes; got ", x.dim());
  return torch::headeronly::HeaderOnlyTensorAccessor<scalar_t, axes>(static_cast<scalar_t*>(x.data_ptr()),
                                                                     x.sizes().data(), x.strides().data());
}
template <typename scalar_t, size_t axes>
auto accessor(const Tensor&& x) = delete;

// The same for a CUDA kernel, which takes it by value.
template <typename scalar_t, size_t axes>
auto packed_accessor(const Tensor& x) {
  STD_TORCH_CHECK(x.dim() == int64_t(axes), "packed_accessor: expected ", axes, " axes; got ", x.dim());
  return torch::headeronly::HeaderOnlyGenericPackedTensorAccessor<scalar_t, axes>(static_cast<scalar_t*>(x.data_ptr()),
                                                                                  x.sizes().data(), x.strides().data());
}
template <typename scalar_t, size_t axes>
auto packed_accessor(const Tensor&& x) = delete;

#if defined(__CUDACC__)

template <typename Body>
__global__ void run_items(int64_t items, Body body) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < items; i += stride) body(i);
}

// Runs body(i) for every i in [0, items) on the device of `like`, on its current stream; `body` is copied to the
// device.
template <typename Body>
void launch(const Tensor& like, int64_t items, const Body& body) {
  constexpr int64_t threads = 256, max_blocks = 1 << 20;
  if (items == 0) return;  // an empty grid is an error
  const int32_t device = like.get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(device);
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
  const int64_t blocks = std::min((items + threads - 1) / threads, max_blocks);
  run_items<<<unsigned(blocks), threads, 0, static_cast<cudaStream_t>(stream)>>>(items, body);
  const cudaError_t error = cudaGetLastError();
  STD_TORCH_CHECK(error == cudaSuccess, "could not launch a kernel on device ", device, ": ",
                  cudaGetErrorString(error));
}

#endif

}  // namespace opkit
