// For headers with the arithmetic of one step or one element, which the CPU and CUDA kernels of an operator share.
#pragma once
#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define COMMODITY_INLINE __host__ __device__ __forceinline__
#else
#define COMMODITY_INLINE inline __attribute__((always_inline))
#endif

// Iterations of the loop that follows do not depend on each other, whatever the compiler can prove.
#if defined(__clang__)
#define COMMODITY_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define COMMODITY_IVDEP _Pragma("GCC ivdep")
#endif

// The loop that follows has at most 8 iterations, and is written out.
#if defined(__CUDACC__) || defined(__clang__)
#define COMMODITY_UNROLL _Pragma("unroll")
#else
#define COMMODITY_UNROLL _Pragma("GCC unroll 8")
#endif
