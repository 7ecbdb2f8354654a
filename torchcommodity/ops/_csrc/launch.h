// Kernel launches, all in this file. Tests compile the .cu files with a header of the same name that runs the bodies on
// the CPU; for it to be found first, this one is included in angle brackets.
#pragma once
#include <cuda_runtime.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>

#include "native.h"

#define COMMODITY_CUDA(name) \
  STABLE_TORCH_LIBRARY_IMPL(commodity, CUDA, m) { m.impl(#name, COMMODITY_BOX(commodity::OnOneDevice<&name>::call)); }

namespace commodity {

constexpr int kThreads = 256, kWarp = 32;
constexpr int64_t kChunk = 64;  // rows per item of a recurrence; a constant, so that results do not depend on the GPU
constexpr int64_t kBlocks = 1 << 20;  // at most; each thread then takes several items

// Reads an input through the read-only cache. The kernel must not write to this memory.
template <typename T>
COMMODITY_INLINE T read(const T* address) {
#if defined(__CUDA_ARCH__)
  return __ldg(address);
#else
  return *address;
#endif
}

// The first tensor decides on which GPU; without this check, an address of another device would end its use.
template <typename T>
void check_device(const T&, std::optional<int32_t>&) {}
inline void check_device(const Tensor& x, std::optional<int32_t>& gpu) {
  STD_TORCH_CHECK(x.is_cuda() && x.get_device_index() == gpu.value_or(x.get_device_index()),
                  "torchcommodity: all tensors of a CUDA kernel must be on one GPU");
  gpu = x.get_device_index();
}
inline void check_device(const std::optional<Tensor>& x, std::optional<int32_t>& gpu) {
  if (x) check_device(*x, gpu);
}

template <auto kernel>
struct OnOneDevice;
template <typename Result, typename... Arguments, Result (*kernel)(Arguments...)>
struct OnOneDevice<kernel> {
  static Result call(Arguments... arguments) {
    std::optional<int32_t> gpu;
    (check_device(arguments, gpu), ...);
    return kernel(arguments...);
  }
};

template <typename Body>
__global__ void __launch_bounds__(kThreads) each_item(int64_t items, Body body) {
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < items; i += stride) body(i);
}

// One warp per row. The order of the additions does not depend on the launch configuration.
template <typename Body>
__global__ void __launch_bounds__(kThreads) each_row(int64_t rows, int64_t terms, Body body) {
  const int64_t stride = int64_t(gridDim.x) * (kThreads / kWarp);
  for (int64_t row = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / kWarp; row < rows; row += stride) {
    double sums[Body::kSums] = {};
    for (int64_t k = threadIdx.x % kWarp; k < terms; k += kWarp) body.add(row, k, sums);
    for (int offset = kWarp / 2; offset > 0; offset /= 2)
      for (int s = 0; s < Body::kSums; ++s) sums[s] += __shfl_down_sync(0xffffffff, sums[s], offset);
    if (threadIdx.x % kWarp == 0) body.finish(row, sums);
  }
}

template <typename Kernel, typename... Arguments>
void launch_threads(const Tensor& like, int64_t threads, Kernel kernel, const Arguments&... arguments) {
  if (threads == 0) return;
  const int32_t device = like.get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(device);
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
  const int64_t blocks = std::min((threads + kThreads - 1) / kThreads, kBlocks);
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(arguments...);
  const cudaError_t error = cudaGetLastError();
  STD_TORCH_CHECK(error == cudaSuccess, "torchcommodity: launching a CUDA kernel on device ", device,
                  " failed: ", cudaGetErrorString(error));
}

// Calls body(item) for every item in [0, items), in any order, on the device of `like` and its current stream.
template <typename Body>
void launch(const Tensor& like, int64_t items, const Body& body) {
  launch_threads(like, items, each_item<Body>, items, body);
}

// For every row, calls body.add(row, k, sums) for every k in [0, terms), then body.finish(row, sums).
template <typename Body>
void launch_rows(const Tensor& like, int64_t rows, int64_t terms, const Body& body) {
  launch_threads(like, rows * kWarp, each_row<Body>, rows, terms, body);
}

}  // namespace commodity
