// Kernel launches, all in this file. Tests compile the .cu files with a header of the same name that runs the bodies on
// the CPU; for it to be found first, this one is included in angle brackets.
#pragma once
#include <cuda_runtime.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>

#include "launch_sizes.h"
#include "native.h"
#include "team_size.h"

#define COMMODITY_CUDA(name) \
  STABLE_TORCH_LIBRARY_IMPL(commodity, CUDA, m) { m.impl(#name, COMMODITY_BOX(commodity::OnOneDevice<&name>::call)); }

namespace commodity {

// Reads an input through the read-only cache. The kernel must not write to this memory.
template <typename T>
COMMODITY_INLINE T read(const T* address) {
#if defined(__CUDA_ARCH__)
  return __ldg(address);
#else
  return *address;
#endif
}

// Asks for what a later row reads, so that it does not wait for the memory of the GPU.
COMMODITY_INLINE void prefetch_line(const void* address) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#endif
}

// x / y for a normal y: without the branch for others, which keeps the compiler from interleaving divisions.
COMMODITY_INLINE double divide(double x, double y) {
#if defined(__CUDA_ARCH__)
  double inverse;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(y));
  inverse = fma(inverse, fma(-y, inverse, 1.0), inverse);
  inverse = fma(inverse, fma(-y, inverse, 1.0), inverse);
  const double quotient = x * inverse;
  return fabs(quotient) < INFINITY ? fma(inverse, fma(-y, quotient, x), quotient) : quotient;
#else
  return x / y;
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
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < items; i += stride) body(i);
}

// One warp per row. The order of the additions does not depend on the launch configuration.
template <typename Body>
__global__ void __launch_bounds__(kThreads) each_row(int64_t rows, int64_t terms, Body body) {
  const int64_t stride = int64_t(gridDim.x) * (blockDim.x / kWarp);
  for (int64_t row = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp; row < rows; row += stride) {
    double sums[Body::kSums] = {};
    for (int64_t k = threadIdx.x % kWarp; k < terms; k += kWarp) body.add(row, k, sums);
    for (int offset = kWarp / 2; offset > 0; offset /= 2)
      for (int s = 0; s < Body::kSums; ++s) sums[s] += __shfl_down_sync(0xffffffff, sums[s], offset);
    if (threadIdx.x % kWarp == 0) body.finish(row, sums);
  }
}

// A chain is a sequence of blocks, its links, of which each waits for the state that the one before it publishes. A
// state is a few numbers, of which none is kNotPublished: neither a number nor the NaN that arithmetic yields.
constexpr unsigned long long kNotPublished = ~0ull;

COMMODITY_INLINE void publish(double* address, double value) {
#if defined(__CUDA_ARCH__)
  __stcg(address, value == value ? value : NAN);
#endif
}
COMMODITY_INLINE double await(const double* address) {
  double value = 0;
#if defined(__CUDA_ARCH__)
  do {
    value = *static_cast<const volatile double*>(address);
  } while (__double_as_longlong(value) == static_cast<long long>(kNotPublished));
#endif
  return value;
}

template <int phase = 0, typename Body>
__device__ __forceinline__ void run_phases(const Body& body, typename Body::Thread& thread,
                                           typename Body::Shared& shared, int chain, int link) {
  if constexpr (phase > 0) __syncthreads();
  body.template run<phase>(thread, shared, chain, link, threadIdx.x);
  if constexpr (phase + 1 < Body::kPhases) run_phases<phase + 1>(body, thread, shared, chain, link);
}

// Blocks number themselves in the order in which they start, so that none waits for one that has not started.
template <typename Body>
__global__ void __launch_bounds__(kScanThreads, kScanBlocks)
    each_link(int chains, Body body, unsigned long long* started) {
  __shared__ typename Body::Shared shared;
  __shared__ unsigned long long number;
  if (threadIdx.x == 0) number = atomicAdd(started, 1) + 1;  // they start from -1
  __syncthreads();
  const int block = static_cast<int>(number);
  typename Body::Thread thread;
  run_phases(body, thread, shared, block % chains, block / chains);
}

// How many blocks a multiprocessor holds at least, where a body says so: it limits the registers of a thread.
template <typename Body>
constexpr int kBlocksOf = 1;
template <typename Body>
  requires requires { Body::kBlocks; }
constexpr int kBlocksOf<Body> = Body::kBlocks;

template <typename Body>
__global__ void __launch_bounds__(Body::kThreads, kBlocksOf<Body>) each_loop(int steps, Body body) {
  __shared__ typename Body::Shared shared;
  const int block = static_cast<int>(blockIdx.x), number = static_cast<int>(threadIdx.x);
  typename Body::Thread thread;
  body.start(thread, shared, block, number);
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    run_phases(body, thread, shared, block, step);
  }
  __syncthreads();
  body.finish(thread, shared, block, number);
}

// Calls body(stream) on the device of `like` and its current stream, and checks for errors.
template <typename Body>
void on_stream(const Tensor& like, const Body& body) {
  const int32_t device = like.get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(device);
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
  body(static_cast<cudaStream_t>(stream));
  const cudaError_t error = cudaGetLastError();
  STD_TORCH_CHECK(error == cudaSuccess, "torchcommodity: launching a CUDA kernel on device ", device,
                  " failed: ", cudaGetErrorString(error));
}

template <typename Kernel, typename... Arguments>
void launch_threads(const Tensor& like, int64_t threads, Kernel kernel, const Arguments&... arguments) {
  if (threads == 0) return;
  const int in_block = threads < kFewThreads ? kWarp : kThreads;
  const int64_t blocks = std::min((threads + in_block - 1) / in_block, kBlocks);
  on_stream(like,
            [&](cudaStream_t stream) { kernel<<<static_cast<unsigned>(blocks), in_block, 0, stream>>>(arguments...); });
}

// Runs body.run<phase>(thread, shared, chain, link, number of the thread) for every phase, link and chain. All threads
// of a block finish a phase before any starts the next; thread and shared keep their values between phases. `memory`
// holds one double more than the states; body publishes them behind the first.
template <typename Body>
void launch_links(const Tensor& like, int chains, int64_t links, const Tensor& memory, const Body& body) {
  if (chains * links == 0) return;
  STD_TORCH_CHECK(chains * links <= std::numeric_limits<int>::max(),
                  "torchcommodity: too many blocks for one kernel: ", chains * links);
  on_stream(like, [&](cudaStream_t stream) {
    cudaMemsetAsync(memory.mutable_data_ptr(), 0xff, memory.numel() * sizeof(double), stream);
    each_link<<<static_cast<unsigned>(chains * links), kScanThreads, 0, stream>>>(
        chains, body, static_cast<unsigned long long*>(memory.mutable_data_ptr()));
  });
}

// For every block runs body.start(thread, shared, block, number of the thread), body.run<phase>(thread, shared, block,
// step, number) for every step and phase, and body.finish(thread, shared, block, number), as launch_links does.
template <typename Body>
void launch_loops(const Tensor& like, int64_t blocks, int threads, int64_t steps, const Body& body) {
  if (blocks == 0) return;
  STD_TORCH_CHECK(std::max(blocks, steps) <= std::numeric_limits<int>::max(),
                  "torchcommodity: too many series or steps for one kernel: ", blocks, ", ", steps);
  on_stream(like, [&](cudaStream_t stream) {
    each_loop<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(static_cast<int>(steps), body);
  });
}

// Calls body(item) for every item in [0, items), in any order, on the device of `like` and its current stream.
template <typename Body>
void launch(const Tensor& like, int64_t items, const Body& body) {
  launch_threads(like, items, each_item<Body>, items, body);
}

constexpr int kSharedBytes = 96 << 10;     // of a block, which every GPU from compute capability 8.0 on has
constexpr int64_t kGlobalBytes = 1 << 28;  // of a kernel, where the shared memory is not enough

// Memory of one item: arrays that begin at `begin` bytes. Element i of neighboring items are neighbors.
template <bool kShared>
struct ItemMemory {
  char* memory;
  int64_t item, items;

  template <typename T>
  struct Array {
    T* first;
    int64_t stride;
    COMMODITY_INLINE T& operator[](int i) const { return kShared ? first[i * kWarp] : first[i * stride]; }
  };
  template <typename T>
  COMMODITY_INLINE Array<T> array(int64_t begin) const {
    return {reinterpret_cast<T*>(memory + begin * items) + item, items};
  }
};

template <bool kShared, typename Body>
__global__ void __launch_bounds__(kWarp) each_item_with_memory(int64_t items, Body body, char* memory) {
  extern __shared__ double shared[];
  const int64_t stride = int64_t(gridDim.x) * kWarp, thread = int64_t(blockIdx.x) * kWarp + threadIdx.x;
  for (int64_t i = thread; i < items; i += stride)
    if constexpr (kShared)
      body(i, ItemMemory<true>{reinterpret_cast<char*>(shared), threadIdx.x, kWarp});
    else
      body(i, ItemMemory<false>{memory, thread, stride});
}

// Calls body(item, memory) with `bytes` bytes of memory for each item, a multiple of 8: shared memory if it is enough,
// else up to `global_bytes` for the items that run at a time.
template <typename Body>
void launch_with_memory(const Tensor& like, int64_t items, int64_t bytes, const Body& body,
                        int64_t global_bytes = kGlobalBytes) {
  if (items == 0) return;
  const bool in_shared = kWarp * bytes <= kSharedBytes;
  const int64_t most = in_shared ? kBlocks : std::max<int64_t>(1, global_bytes / (kWarp * bytes));
  const int64_t blocks = std::min((items + kWarp - 1) / kWarp, most);
  const Tensor memory =
      new_empty(like, {in_shared ? 0 : blocks * kWarp * bytes / 8}, torch::headeronly::ScalarType::Double);
  on_stream(like, [&](cudaStream_t stream) {
    const auto launch = [&](auto kernel, int64_t shared) {
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
      kernel<<<static_cast<unsigned>(blocks), kWarp, shared, stream>>>(items, body,
                                                                       static_cast<char*>(memory.mutable_data_ptr()));
    };
    in_shared ? launch(each_item_with_memory<true, Body>, kWarp * bytes)
              : launch(each_item_with_memory<false, Body>, 0);
  });
}

// The threads of a block as a matrix of `columns` columns: see for_each_matrix in kernel.h.
struct Team {
  int thread, threads, row, rows, column, columns;

  template <typename Iteration>
  COMMODITY_INLINE void each(int64_t n, const Iteration& iteration) const {
    for (int64_t i = thread; i < n; i += threads) iteration(i);
    synchronize();
  }
  template <typename Iteration>
  COMMODITY_INLINE void each_row(int64_t n, const Iteration& iteration) const {
    for (int64_t i = row; i < n; i += rows) iteration(i);
    synchronize();
  }
  template <typename Iteration>
  COMMODITY_INLINE void each_column(int64_t n, const Iteration& iteration) const {
    for (int64_t j = column; j < n; j += columns) iteration(j);
  }
  template <typename T>
  COMMODITY_INLINE void prefetch(const T* address) const {
    prefetch_line(address);
  }

 private:
  COMMODITY_INLINE static void synchronize() {
#if defined(__CUDA_ARCH__)
    __syncthreads();
#endif
  }
};

template <bool kShared, typename Body>
__global__ void __launch_bounds__(kThreads)
    each_team(int64_t panels, int columns, int64_t bytes, Body body, char* memory) {
  extern __shared__ double shared[];
  const int thread = threadIdx.x, threads = blockDim.x;
  const Team team{thread, threads, thread / columns, threads / columns, thread % columns, columns};
  for (int64_t panel = blockIdx.x; panel < panels; panel += gridDim.x)
    body(team, panel, kShared ? shared : reinterpret_cast<double*>(memory + blockIdx.x * bytes));
}

// Calls body(team, panel, memory) with `bytes` bytes of memory for each panel, shared memory if it is enough.
template <typename Body>
void launch_teams(const Tensor& like, int64_t panels, int64_t n, int64_t bytes, const Body& body) {
  if (panels == 0) return;
  const TeamSize size(n);
  const bool in_shared = bytes <= kSharedBytes;
  const int64_t blocks =
      std::min(panels, in_shared ? kBlocks : std::max<int64_t>(1, kGlobalBytes / std::max<int64_t>(1, bytes)));
  const Tensor memory = new_empty(like, {in_shared ? 0 : blocks * bytes / 8}, torch::headeronly::ScalarType::Double);
  on_stream(like, [&](cudaStream_t stream) {
    const auto launch = [&](auto kernel, int64_t shared) {
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
      kernel<<<static_cast<unsigned>(blocks), size.threads, shared, stream>>>(
          panels, size.columns, bytes, body, static_cast<char*>(memory.mutable_data_ptr()));
    };
    in_shared ? launch(each_team<true, Body>, bytes) : launch(each_team<false, Body>, 0);
  });
}

// For every row, calls body.add(row, k, sums) for every k in [0, terms), then body.finish(row, sums).
template <typename Body>
void launch_rows(const Tensor& like, int64_t rows, int64_t terms, const Body& body) {
  launch_threads(like, rows * kWarp, each_row<Body>, rows, terms, body);
}

}  // namespace commodity
