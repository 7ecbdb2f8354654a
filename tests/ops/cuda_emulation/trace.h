// What a launch does, for benchmarks/cuda_model.py: trace.cpp counts it where COMMODITY_TRACE is defined. Tests of
// values do not count.
#pragma once
#include <cstdint>
#include <typeinfo>

namespace commodity {

#if defined(COMMODITY_TRACE)
// A launch of `units` that run apart, blocks or warps, of `threads` threads each; `serial`: how many of them wait for
// one another.
void trace_launch(const char* kernel, const char* body, int64_t units, int threads, int64_t serial = 1);
bool trace_runs(int64_t unit);                         // whether it is in the sample
void trace_thread(int number);                         // which thread of its unit runs from here on
void trace_barrier();                                  // all threads are here
void trace_shared(const void* memory, int64_t bytes);  // of the unit
void trace_end();                                      // no unit runs
#else
inline void trace_launch(const char*, const char*, int64_t, int, int64_t = 1) {}
inline bool trace_runs(int64_t) { return true; }
inline void trace_thread(int) {}
inline void trace_barrier() {}
inline void trace_shared(const void*, int64_t) {}
inline void trace_end() {}
#endif

}  // namespace commodity
