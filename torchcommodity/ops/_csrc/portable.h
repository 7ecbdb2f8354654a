// For headers with the arithmetic of one step or one element, which the CPU and CUDA kernels of an operator share.
#pragma once
#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define COMMODITY_INLINE __host__ __device__ __forceinline__
#else
#define COMMODITY_INLINE inline
#endif
