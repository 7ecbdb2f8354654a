// For formula headers: arithmetic of one step or one element that the CPU and the CUDA kernel of an operator share.
#pragma once
#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define COMMODITY_INLINE __host__ __device__ __forceinline__
#else
#define COMMODITY_INLINE inline
#endif
