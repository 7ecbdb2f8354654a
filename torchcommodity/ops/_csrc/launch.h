// How work reaches a GPU: the only file with a launch in it. Tests put a file of the same name before it, which runs
// the same bodies on the processor; so it is included in angle brackets.
#pragma once
#include <cuda_runtime.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>

#include "native.h"

#define COMMODITY_CUDA(name) \
  STABLE_TORCH_LIBRARY_IMPL(commodity, CUDA, m) { m.impl(#name, TORCH_BOX(&name)); }

namespace commodity {

constexpr int kThreads = 256, kWarp = 32;
constexpr int64_t kChunk = 64;        // rows that an item of a recurrence takes; a constant, for so are the bits
constexpr int64_t kBlocks = 1 << 20;  // the rest comes round again

// An input, which no kernel writes while it runs: it may be fetched before what was written above it.
template <typename T>
COMMODITY_INLINE T read(const T* at) {
#if defined(__CUDA_ARCH__)
  return __ldg(at);
#else
  return *at;
#endif
}

template <typename Body>
__global__ void __launch_bounds__(kThreads) each_item(int64_t items, Body body) {
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < items; i += stride) body(i);
}

// A warp to a row. The order of the additions does not depend on the launch.
template <typename Body>
__global__ void __launch_bounds__(kThreads) each_row(int64_t rows, int64_t terms, Body body) {
  const int64_t stride = int64_t(gridDim.x) * (kThreads / kWarp);
  for (int64_t row = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / kWarp; row < rows; row += stride) {
    double sums[Body::kSums] = {};
    for (int64_t k = threadIdx.x % kWarp; k < terms; k += kWarp) body.add(row, k, sums);
    for (int reach = kWarp / 2; reach > 0; reach /= 2)
      for (int s = 0; s < Body::kSums; ++s) sums[s] += __shfl_down_sync(0xffffffff, sums[s], reach);
    if (threadIdx.x % kWarp == 0) body.finish(row, sums);
  }
}

template <typename Kernel, typename... Arguments>
void on_stream(const Tensor& on, int64_t threads, Kernel kernel, const Arguments&... arguments) {
  if (threads == 0) return;
  const int32_t device = on.get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(device);
  void* stream = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
  const int64_t blocks = std::min((threads + kThreads - 1) / kThreads, kBlocks);
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(arguments...);
  const cudaError_t error = cudaGetLastError();
  STD_TORCH_CHECK(error == cudaSuccess, "torchcommodity: a CUDA kernel could not be launched on device ", device, ": ",
                  cudaGetErrorString(error));
}

// body(item) for every item in [0, items), on the device and the current stream of `on`, in any order.
template <typename Body>
void launch(const Tensor& on, int64_t items, const Body& body) {
  on_stream(on, items, each_item<Body>, items, body);
}

// body.add(row, k, sums) for every k in [0, terms), then body.finish(row, sums), for every row.
template <typename Body>
void launch_rows(const Tensor& on, int64_t rows, int64_t terms, const Body& body) {
  on_stream(on, rows * kWarp, each_row<Body>, rows, terms, body);
}

}  // namespace commodity
